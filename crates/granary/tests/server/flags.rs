//! Flags of memcached and of volumes, each tested by its effect on a client.

use crate::access::certificate;
use crate::program::granary;
use crate::served::Served;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A server of memcached's protocol on a socket, in RAM.
fn with_memcached(flags: &[&str]) -> (tempfile::TempDir, Served, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("memcached.sock");
    let begun = ["--memcached-flash", "0", "--memcached-socket", socket.to_str().unwrap()];
    let served = Served::start(folder.path(), &[&begun, flags].concat());
    served.wait_for("Granary serves memcached on");
    (folder, served, socket)
}

/// A connection with a timeout for reads.
fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends commands of memcached's protocol and `quit`, and returns the replies.
fn say(socket: &Path, commands: &str) -> String {
    let mut stream = connect(socket);
    stream.write_all(format!("{commands}quit\r\n").as_bytes()).unwrap();
    rest(&mut stream)
}

/// Everything received until the connection ends.
fn rest(stream: &mut impl Read) -> String {
    let mut heard = Vec::new();
    let end = stream.read_to_end(&mut heard);
    let heard = String::from_utf8_lossy(&heard).into_owned();
    assert!(end.is_ok(), "it goes on behind {heard:?}: {end:?}");
    heard
}

#[test]
fn memcached_socket_mode() {
    let (_folder, _served, socket) = with_memcached(&["--memcached-socket-mode", "660"]);
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o660);
    assert!(say(&socket, "version\r\n").starts_with("VERSION "));
}

#[test]
fn memcached_in_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let [file, users] = ["granary.toml", "users"].map(|name| folder.path().join(name));
    std::fs::write(&users, "ann:secret\n").unwrap();
    std::fs::write(&file, format!("[memcached]\nauth-file = '{}'\nno-flush = true", users.display()))
        .unwrap();
    let (_folder, _served, socket) = with_memcached(&["--config", file.to_str().unwrap()]);
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let mut stranger = connect(&socket);
    stranger.write_all(b"get a\r\n").unwrap();
    let mut heard = [0; 30];
    stranger.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"CLIENT_ERROR unauthenticated\r\n");
    let heard = say(&socket, "set user 0 0 10\r\nann secret\r\nflush_all\r\n");
    assert_eq!(heard, "STORED\r\nCLIENT_ERROR flush_all not allowed\r\n");
}

#[test]
fn memcached_no_flush() {
    let (_folder, _served, socket) = with_memcached(&["--memcached-no-flush"]);
    let heard = say(&socket, "set a 0 0 1\r\nx\r\nflush_all\r\nget a\r\n");
    assert_eq!(heard, "STORED\r\nCLIENT_ERROR flush_all not allowed\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn memcached_idle_timeout() {
    let (_folder, _served, socket) = with_memcached(&["--memcached-idle-timeout", "1"]);
    let started = Instant::now();
    let mut idle = connect(&socket);
    assert_eq!(rest(&mut idle), "");
    assert!(started.elapsed() >= Duration::from_millis(900), "{:?}", started.elapsed());
}

#[test]
fn memcached_connections() {
    let (_folder, _served, socket) = with_memcached(&["--memcached-connections", "1"]);
    let mut first = connect(&socket);
    first.write_all(b"version\r\n").unwrap();
    let mut begun = [0; 8];
    first.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"VERSION ");
    assert_eq!(rest(&mut connect(&socket)), "ERROR Too many open connections\r\n");
}

#[test]
fn memcached_compression() {
    let value = "the same again, ".repeat(1000);
    let item = format!("set a 0 0 {}\r\n{value}\r\n", value.len());
    let kept = |flags: &[&str]| {
        let (_folder, _served, socket) = with_memcached(flags);
        let heard = say(&socket, &format!("{item}get a\r\nstats granary\r\n"));
        assert!(heard.contains(&value), "it comes back");
        let line = heard.lines().find_map(|line| line.strip_prefix("STAT value_bytes_kept "));
        line.map(|bytes| bytes.trim().parse::<usize>().unwrap())
    };
    let compressed = kept(&["--memcached-compression", "zstd"]).unwrap();
    assert!(compressed > 0 && compressed < value.len() / 8, "{compressed}");
    assert!(kept(&[]).is_none_or(|bytes| bytes == 0 || bytes >= value.len()), "off unless asked for");
}

#[test]
fn memcached_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let tls = ["--memcached-tls", "--tls-certificate", &certificate, "--tls-key", &key];
    let memcached = ["--memcached", "127.0.0.1:0", "--memcached-flash", "0"];
    let served = Served::start(folder.path(), &[&memcached[..], &tls].concat());
    let address = served.behind("Granary serves memcached on ").trim().to_owned();
    let ask = "printf 'version\\r\\nquit\\r\\n' | openssl s_client -quiet -CAfile \"$0\" -connect \"$1\"";
    let output = Command::new("sh").args(["-c", ask, &certificate, &address]).output().unwrap();
    assert!(output.stdout.starts_with(b"VERSION "), "{output:?}");
    let mut plain = TcpStream::connect(&address).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    plain.write_all(b"version\r\n").unwrap();
    let heard = rest(&mut plain);
    assert!(!heard.contains("VERSION"), "{heard}");
}

/// A server of a volume, with this configuration.
fn with_volume(flags: &[&str], configuration: &str) -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    let create = ["volume", "create", "scratch", "--size", "16MiB", "--path"];
    let created = granary().args(create).arg(folder.path()).output();
    assert!(created.as_ref().is_ok_and(|output| output.status.success()), "{created:?}");
    let file = folder.path().join("granary.toml");
    let socket = folder.path().join("nbd.sock");
    std::fs::write(&file, configuration.replace("SOCKET", socket.to_str().unwrap())).unwrap();
    let served = Served::start(folder.path(), &[&["--config", file.to_str().unwrap()], flags].concat());
    served.wait_for("Granary serves the volumes scratch");
    (folder, served)
}

/// A connection that the server has greeted.
fn greeted(socket: &Path) -> UnixStream {
    let mut stream = connect(socket);
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
    stream
}

/// The type of the reply to NBD_OPT_LIST.
fn listed(stream: &mut UnixStream) -> u32 {
    let option = [&3_u32.to_be_bytes()[..], b"IHAVEOPT", &3_u32.to_be_bytes(), &0_u32.to_be_bytes()];
    stream.write_all(&option.concat()).unwrap();
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).unwrap();
    u32::from_be_bytes(reply[12..16].try_into().unwrap())
}

#[test]
fn nbd_connections_and_socket_of_a_configuration() {
    let (folder, _served) = with_volume(&[], "[nbd]\nsocket = 'SOCKET'\nconnections = 1");
    let socket = folder.path().join("nbd.sock");
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let mut first = greeted(&socket);
    assert_eq!(listed(&mut first), 2, "NBD_REP_SERVER");
    assert_eq!(rest(&mut connect(&socket)), "", "a second one is turned away");
}

#[test]
fn nbd_connections_of_a_flag() {
    let (folder, _served) =
        with_volume(&["--nbd-connections", "2"], "[nbd]\nsocket = 'SOCKET'\nconnections = 1");
    let socket = folder.path().join("nbd.sock");
    let _two = [greeted(&socket), greeted(&socket)];
    assert_eq!(rest(&mut connect(&socket)), "", "a third one is turned away");
}

#[test]
fn nbd_tls() {
    let keys = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(keys.path());
    let flags = ["--nbd-tls", "--tls-certificate", &certificate, "--tls-key", &key];
    let (folder, _served) = with_volume(&flags, "[nbd]\nsocket = 'SOCKET'");
    let refused = listed(&mut greeted(&folder.path().join("nbd.sock")));
    assert_eq!(refused, (1 << 31) + 5, "NBD_REP_ERR_TLS_REQD");
}
