//! Clients that vanish, stall or lie, and the server's own limits: their effects on these clients and on others.

mod common;

use common::bytes::*;
use common::late::LateExport;
use common::random::Random;
use common::serving::Serving;
use granary_nbd::limits::STOP_SECONDS;
use granary_nbd::{
    Export, Figures, MemoryExport, Options, Server, ServerError, SingleExport, Stop, UnixSocket, serve,
};
use std::io::{self, Read, Seek, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

const SIZE: u64 = 4 << 20;

/// Write-locked by the test that measures RAM, read-locked by those that take much of it.
static RAM: RwLock<()> = RwLock::new(());

fn disk() -> Arc<dyn Export> {
    Arc::new(MemoryExport::new("disk", SIZE))
}

fn connect(serving: &Serving) -> TcpStream {
    let stream = TcpStream::connect(serving.server.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// A client after its handshake.
fn client(serving: &Serving, structured: bool) -> TcpStream {
    try_client(serving, structured).unwrap()
}

fn try_client(serving: &Serving, structured: bool) -> io::Result<TcpStream> {
    let mut stream = connect(serving);
    stream.write_all(&handshake("disk", structured))?;
    let mut heard = vec![0; handshake_answer(structured)];
    stream.read_exact(&mut heard)?;
    assert!(heard.starts_with(GREETING));
    Ok(stream)
}

/// The length of the answers to a handshake.
fn handshake_answer(structured: bool) -> usize {
    let reply = 20;
    let options = if structured { reply + (reply + 4 + "base:allocation".len()) + reply } else { 0 };
    GREETING.len() + options + (reply + 12) + reply
}

fn take(stream: &mut impl Read, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Everything until the server closes the connection.
fn rest(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}"),
    }
    bytes
}

/// A client writes and reads as if nothing had happened.
fn is_well(serving: &Serving) {
    is_served(client(serving, true));
}

fn is_served(mut stream: TcpStream) {
    stream.write_all(&write(FUA, 1, 1000, b"well")).unwrap();
    assert_eq!(Heard(&take(&mut stream, 16)).simple(), (0, 1));
    stream.write_all(&request(DF, READ, 2, 1000, 4)).unwrap();
    assert_eq!(&Heard(&take(&mut stream, 28 + 4)).chunk().3[8..], b"well");
    stream.write_all(&request(0, DISC, 3, 0, 0)).unwrap();
    assert_eq!(rest(&mut stream), b"");
}

fn waits_for(serving: &Serving, what: impl Fn(Figures) -> bool) {
    // Less than the 30 s after which the server ends connections by itself.
    let until = Instant::now() + Duration::from_secs(25);
    while !what(serving.server.figures()) {
        assert!(Instant::now() < until, "{:?}", serving.server.figures());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn clients_that_vanish_at_any_byte_leave_nothing_behind() {
    let _shared = RAM.read();
    for disk in [disk(), Arc::new(LateExport::new(disk(), true)) as Arc<dyn Export>] {
        let serving = Serving::new(disk);
        let requests = [
            write(0, 1, 0, &[1; 100]),
            request(0, READ, 2, 0, 1 << 20),
            request(0, BLOCK_STATUS, 3, 0, 4096),
            request(0, DISC, 4, 0, 0),
        ];
        let said = [handshake("disk", true), requests.concat()].concat();
        for len in 0..=said.len() {
            let mut stream = UnixStream::connect(serving.socket()).unwrap();
            stream.write_all(&said[..len]).unwrap();
            drop(stream);
            if len % 4 == 0 {
                // As a TCP reset, too, which unread bytes cause.
                let mut stream = connect(&serving);
                stream.write_all(&said[..len]).unwrap();
                drop(stream);
            }
        }
        waits_for(&serving, |figures| figures.connections == 0);
        is_well(&serving);
    }
}

#[test]
fn a_client_that_hangs_up_gets_its_replies() {
    let serving = Serving::new(Arc::new(LateExport::new(disk(), true)));
    let mut stream = client(&serving, false);
    let said: Vec<u8> = (0..100).flat_map(|i| write(0, i, i * 512, &[i as u8; 512])).collect();
    stream.write_all(&said).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&mut stream).len(), 100 * 16);
    // Likewise with a goodbye.
    let mut stream = client(&serving, false);
    stream.write_all(&[said, request(0, DISC, 0, 0, 0)].concat()).unwrap();
    assert_eq!(rest(&mut stream).len(), 100 * 16);
}

#[test]
fn what_was_answered_before_the_end_arrives() {
    let serving = Serving::new(disk());
    let mut stream = client(&serving, false);
    // The following bytes are not read as requests; a reset would drop the reply.
    let said = [request(0, FLUSH, 1, 0, 0), vec![7; 300 << 10]].concat();
    stream.write_all(&said).unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).expect("it ends without a reset");
    assert_eq!((Heard(&heard).simple(), heard.len()), ((0, 1), 16));
}

#[test]
fn any_bytes_end_in_peace() {
    let serving = Serving::with(disk(), |options, _| options.stall_timeout = Duration::from_millis(50));
    let mut random = Random(5);
    for round in 0..300 {
        let good = [handshake("disk", round % 2 == 0), write(0, 1, 0, &[2; 300]), request(0, READ, 2, 0, 9)]
            .concat();
        let mut said = good.repeat(2);
        for _ in 0..1 + random.below(5) {
            let at = random.below(said.len() as u64) as usize;
            said[at] = random.next() as u8;
        }
        let mut stream = UnixStream::connect(serving.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // The server may close it before everything is sent.
        let _ = stream.write_all(&said);
        let _ = stream.shutdown(Shutdown::Write);
        rest(&mut stream);
    }
    waits_for(&serving, |figures| figures.connections == 0);
    is_well(&serving);
}

#[test]
fn handshakes_that_take_too_long_are_ended() {
    let serving = Serving::with(disk(), |options, _| options.handshake_timeout = Duration::from_millis(400));
    // One that sends nothing. A server without processor time may send nothing either.
    let silent = rest(&mut connect(&serving));
    assert!(silent.is_empty() || silent == GREETING, "{silent:?}");
    // One that sends small requests again and again.
    let mut busy = connect(&serving);
    busy.write_all(&flags(FIXED_NEWSTYLE)).unwrap();
    let began = Instant::now();
    while busy.write_all(&option(99, &[])).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(60), "a handshake without end");
        std::thread::sleep(Duration::from_millis(5));
    }
    // One whose option is as long as an option can be.
    let mut long = connect(&serving);
    long.write_all(&[flags(FIXED_NEWSTYLE), option(GO, &[])[..12].to_owned(), vec![0xFF; 4]].concat())
        .unwrap();
    let (zeroes, mut said) = (vec![0; 1 << 16], 0);
    while long.write_all(&zeroes).is_ok() {
        said += zeroes.len();
        assert!(said < u32::MAX as usize, "a handshake without end");
    }
    waits_for(&serving, |figures| figures.disconnected == 3);
    // Clients that are in time are served; a slow machine may need several tries.
    let until = Instant::now() + Duration::from_secs(60);
    let stream = loop {
        match try_client(&serving, true) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    };
    is_served(stream);
}

#[test]
fn clients_that_stall_are_disconnected() {
    let _shared = RAM.read();
    let serving = Serving::with(disk(), |options, _| options.stall_timeout = Duration::from_millis(400));
    // One that stops within a header; one that stops within its data.
    for said in [&write(0, 1, 0, &[1; 512])[..20], &write(0, 1, 0, &[1; 512])[..100]] {
        let mut stream = client(&serving, true);
        stream.write_all(said).unwrap();
        assert_eq!(rest(&mut stream), b"");
    }
    // One that asks for a lot and takes nothing.
    let mut deaf = client(&serving, true);
    let reads: Vec<u8> = (0..100).flat_map(|i| request(DF, READ, i, 0, SIZE as u32)).collect();
    deaf.write_all(&reads).unwrap();
    waits_for(&serving, |figures| figures.disconnected == 3);
    // One that just waits is fine.
    let mut idle = client(&serving, true);
    std::thread::sleep(Duration::from_millis(1000));
    idle.write_all(&request(0, FLUSH, 1, 0, 0)).unwrap();
    assert_eq!(Heard(&take(&mut idle, 16)).simple(), (0, 1));
    is_well(&serving);
}

#[test]
fn claims_of_great_lengths_cost_the_server_nothing() {
    let _alone = RAM.write();
    let serving = Serving::new(Arc::new(MemoryExport::new("disk", 1 << 40)));
    let before = resident_kib();
    let mut clients = Vec::new();
    for i in 0..100 {
        // Valid and too long claims; the data does not come.
        let mut stream = client(&serving, true);
        let claim = if i % 2 == 0 { 32 << 20 } else { u32::MAX };
        stream.write_all(&request(0, WRITE, 1, 0, claim)).unwrap();
        stream.write_all(&vec![0; 300 << 10]).unwrap();
        clients.push(stream);
        let mut stream = connect(&serving);
        let mut claim = option(GO, &[]);
        claim[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
        stream.write_all(&[flags(FIXED_NEWSTYLE), claim, vec![0; 1000]].concat()).unwrap();
        clients.push(stream);
    }
    is_well(&serving);
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 200 * 600, "200 connections take {grown} KiB");
}

/// A client that takes bytes now and then, but fewer than count as progress.
#[test]
fn large_replies_are_taken_in_time() {
    let _shared = RAM.read();
    let disk = Arc::new(MemoryExport::new("disk", 64 << 20));
    let serving = Serving::with(disk, |options, _| options.stall_timeout = Duration::from_secs(2));
    let mut slow = UnixStream::connect(serving.socket()).unwrap();
    slow.write_all(&[handshake("disk", false), request(0, READ, 1, 0, 32 << 20)].concat()).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while serving.server.figures().disconnected == 0 {
        assert!(Instant::now() < until, "others wait for what it has");
        // It may have been disconnected.
        let _ = slow.read(&mut [0; 4096]);
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn large_requests_share_what_memory_there_is_and_all_are_served() {
    let _shared = RAM.read();
    let serving = Serving::new(Arc::new(MemoryExport::new("disk", 64 << 20)));
    std::thread::scope(|scope| {
        for i in 0..24 {
            let serving = &serving;
            scope.spawn(move || {
                let mut stream = client(serving, false);
                let len = 32 << 20;
                let reads = [request(0, READ, i, 0, len), request(0, READ, i, 1, len)].concat();
                stream.write_all(&reads).unwrap();
                let total = 2 * (16 + u64::from(len));
                assert_eq!(io::copy(&mut stream.take(total), &mut io::sink()).unwrap(), total);
            });
        }
    });
    is_well(&serving);
}

#[test]
fn connections_are_bounded() {
    let serving = Serving::with(disk(), |options, _| options.connections_max = 3);
    let clients: Vec<TcpStream> = (0..3).map(|_| client(&serving, true)).collect();
    assert_eq!(rest(&mut connect(&serving)), b"");
    assert_eq!(serving.server.figures().refused, 1);
    drop(clients);
    waits_for(&serving, |figures| figures.connections == 0);
    is_well(&serving);
    assert_eq!(serving.server.figures().accepted, 4);
}

#[test]
fn a_server_that_stops_completes_what_was_begun() {
    let late = Arc::new(LateExport::new(disk(), true));
    late.is_held.store(true, Ordering::Relaxed);
    let serving = Serving::new(Arc::clone(&late) as Arc<dyn Export>);
    let mut idle = client(&serving, true);
    let mut greeted = connect(&serving);
    take(&mut greeted, GREETING.len());
    let mut busy = client(&serving, false);
    let said: Vec<u8> = (0..200).flat_map(|i| write(0, i, i * 512, &[i as u8; 512])).collect();
    busy.write_all(&said).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while late.most_in_flight.load(Ordering::Relaxed) < 200 {
        assert!(Instant::now() < until, "all are begun");
        std::thread::sleep(Duration::from_millis(2));
    }
    let (stopped, began) = (std::thread::spawn(move || serving.server.stop()), Instant::now());
    assert_eq!(rest(&mut idle), b"");
    assert_eq!(rest(&mut greeted), b"");
    // A client that still waits for replies and sends requests gets an error.
    for _ in 0..10 {
        busy.write_all(&write(0, 1, 0, b"late")).unwrap();
        assert_eq!(Heard(&take(&mut busy, 16)).simple(), (ESHUTDOWN, 1), "nobody said that it ends");
    }
    late.is_held.store(false, Ordering::Relaxed);
    let heard = take(&mut busy, 16 * 200);
    let mut replies = Heard(&heard);
    let mut completed: Vec<(u32, u64)> = (0..200).map(|_| replies.simple()).collect();
    completed.sort();
    assert!(completed.into_iter().eq((0..200).map(|cookie| (0, cookie))), "each is completed once");
    // A client that goes on sending requests gets errors until it is disconnected.
    while busy.write_all(&write(0, 1, 0, b"late")).is_ok() {
        let mut reply = [0; 16];
        if busy.read_exact(&mut reply).is_err() {
            break;
        }
        assert_eq!(Heard(&reply).simple(), (ESHUTDOWN, 1));
    }
    stopped.join().unwrap();
    // It did not wait as long as for clients that do not take their replies.
    assert!(began.elapsed() < Duration::from_secs(STOP_SECONDS), "it took {:?}", began.elapsed());
}

/// A client whose next bytes are always there is never waited for: a server that stops ends all the same. Its input is
/// a file of refused WRITEs, whose data are holes.
#[test]
fn a_server_stops_while_a_client_keeps_sending() {
    let file = tempfile::tempfile().unwrap();
    let said = handshake("disk", false);
    file.write_all_at(&said, 0).unwrap();
    let len = 32_u64 << 20;
    for number in 0..2048 {
        let header = request(0, WRITE, number, SIZE, len as u32);
        file.write_all_at(&header, said.len() as u64 + number * (28 + len)).unwrap();
    }
    let all = said.len() as u64 + 2048 * (28 + len);
    file.set_len(all).unwrap();
    let (input, output) = (file.try_clone().unwrap(), std::fs::File::create("/dev/null").unwrap());
    let (stop, options) = (Stop::new().unwrap(), Options::new(Arc::new(SingleExport(disk()))));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let until = Instant::now() + Duration::from_secs(60);
            while (&file).stream_position().unwrap() <= said.len() as u64 + 28 + len {
                assert!(Instant::now() < until, "the first of these is read");
                std::thread::sleep(Duration::from_millis(1));
            }
            stop.give();
        });
        serve(&options, input.into(), Some(output.into()), &stop).unwrap();
    });
    let read = (&file).stream_position().unwrap();
    assert!(read > said.len() as u64 && read < all, "{read} of {all} bytes were read");
}

/// The only client of a server on standard input: the reason of its end is reported, and is no failure to start.
#[test]
fn the_end_of_an_only_client_is_told() {
    let ended = |said: Vec<u8>| {
        let (server, mut client) = UnixStream::pair().unwrap();
        let serving = std::thread::spawn(move || {
            let mut options = Options::new(Arc::new(SingleExport(disk())));
            options.stall_timeout = Duration::from_millis(100);
            serve(&options, server.into(), None, &Stop::new().unwrap())
        });
        client.write_all(&said).unwrap();
        let ended = serving.join().unwrap();
        ended.map_err(|error| {
            assert!(matches!(error, ServerError::Disconnected(_)), "{error}");
            error.to_string()
        })
    };
    let transmitting = |said: &[u8]| [&handshake("disk", false), said].concat();
    assert_eq!(ended(transmitting(&request(0, DISC, 1, 0, 0))), Ok(()));
    for (said, reason) in [
        (flags(1 << 7), "unknown client flags"),
        ([flags(FIXED_NEWSTYLE), option(EXPORT_NAME, b"none")].concat(), "an export that it cannot have"),
        (transmitting(&[7; 28]), "magic number"),
        (transmitting(&request(0, READ, 1, 0, 1)[..20]), "it stalled"),
    ] {
        let error = ended(said).unwrap_err();
        assert!(error.contains("the client was disconnected") && error.contains(reason), "{error}");
    }
}

/// A TCP socket that the server did not accept itself has its replies sent at once, too.
#[test]
fn an_only_clients_replies_are_not_held_back() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    let same = server.try_clone().unwrap();
    let serving = std::thread::spawn(move || {
        let options = Options::new(Arc::new(SingleExport(disk())));
        serve(&options, server.into(), None, &Stop::new().unwrap())
    });
    client.read_exact(&mut [0; GREETING.len()]).unwrap();
    assert!(same.nodelay().unwrap());
    client.write_all(&[flags(FIXED_NEWSTYLE), option(ABORT, &[])].concat()).unwrap();
    client.read_to_end(&mut Vec::new()).unwrap();
    drop(client);
    serving.join().unwrap().unwrap();
}

#[test]
fn places_that_cannot_be_listened_on_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let start = |change: &dyn Fn(&mut Options)| {
        let mut options = Options::new(Arc::new(SingleExport(disk())));
        change(&mut options);
        Server::start(options).err()
    };
    assert!(matches!(start(&|_| {}), Some(ServerError::Nowhere)));
    // Nothing was opened for this process.
    assert!(matches!(start(&|options| options.is_activated = true), Some(ServerError::Nowhere)));
    let socket = folder.path().join("nbd.sock");
    let add = |options: &mut Options| options.sockets.push(UnixSocket::new(&socket));
    std::fs::write(&socket, "a file").unwrap();
    assert!(matches!(start(&add), Some(ServerError::Socket { .. })));
    assert_eq!(std::fs::read(&socket).unwrap(), b"a file");
    std::fs::remove_file(&socket).unwrap();
    let mut options = Options::new(Arc::new(SingleExport(disk())));
    add(&mut options);
    let server = Server::start(options).unwrap();
    assert!(matches!(start(&add), Some(ServerError::Socket { .. })), "another server serves there");
    UnixStream::connect(&socket).unwrap();
    server.stop();
    assert!(!socket.exists());
    // A socket that a killed server has left behind.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(start(&add).is_none());
    assert!(matches!(
        start(&|options| {
            add(options);
            options.requires_tls = true
        }),
        Some(ServerError::NoCertificate)
    ));
    assert!(matches!(
        start(&|options| {
            add(options);
            options.connections_max = 0
        }),
        Some(ServerError::NoConnections)
    ));
}
