//! Commands and their replies, byte by byte.

mod common;

use common::bytes::*;
use common::late::LateExport;
use common::random::Random;
use common::spoken::Spoken;
use granary_nbd::limits::{
    BYTES_IN_FLIGHT_MAX, COMMANDS_IN_FLIGHT_MAX, OUTPUT_BYTES_SOFT, PAYLOAD_BYTES_MAX,
};
use granary_nbd::protocol::{Ending, Need};
use granary_nbd::{Command, Completions, Errno, Export, ExtentState, MemoryExport, Session, Tag};
use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const KIB: u64 = 1024;
const SIZE: u64 = 256 * KIB;

fn disk() -> Arc<dyn Export> {
    Arc::new(MemoryExport::new("disk", SIZE))
}

/// Each BLOCK_STATUS may look at much: whoever drives the conversation looks at other things between a few of them.
#[test]
fn many_block_statuses_take_several_turns() {
    let mut spoken = Spoken::transmitting(disk(), true);
    let said: Vec<u8> =
        (0..100).flat_map(|cookie| request(0, BLOCK_STATUS, cookie, 0, SIZE as u32)).collect();
    let space = spoken.0.space();
    space[..said.len()].copy_from_slice(&said);
    spoken.0.arrived(said.len());
    assert_eq!(spoken.0.advance(), Need::AnotherCall);
    let heard = [spoken.hear(), spoken.ask(&[])].concat();
    let mut heard = Heard(&heard);
    (0..100).for_each(|cookie| assert_eq!(heard.chunk().2, cookie));
    assert!(heard.0.is_empty());
}

/// The outcome of a command without data.
fn outcome(spoken: &mut Spoken, said: &[u8]) -> u32 {
    let heard = spoken.ask(said);
    let mut heard = Heard(&heard);
    let (error, cookie) = heard.outcome();
    assert!(heard.0.is_empty(), "there is one reply");
    assert_eq!(cookie, u64::from_be_bytes(said[8..16].try_into().unwrap()));
    error
}

#[test]
fn simple_replies() {
    let mut spoken = Spoken::transmitting(disk(), false);
    assert_eq!(outcome(&mut spoken, &write(FUA, 1, 100, b"data")), 0);
    let heard = spoken.ask(&request(0, READ, 2, 98, 8));
    let mut heard = Heard(&heard);
    assert_eq!((heard.simple(), heard.0), ((0, 2), &b"\0\0data\0\0"[..]));
    assert_eq!(outcome(&mut spoken, &request(0, READ, 3, SIZE, 1)), EINVAL);
    assert_eq!(outcome(&mut spoken, &request(DF, READ, 4, 0, 1)), EINVAL, "DF was not offered");
    assert_eq!(outcome(&mut spoken, &request(0, READ, 5, 0, 0)), 0);
    assert_eq!(outcome(&mut spoken, &request(0, BLOCK_STATUS, 6, 0, 1)), EINVAL);
}

#[test]
fn structured_reads_tell_of_holes() {
    let mut spoken = Spoken::transmitting(disk(), true);
    assert_eq!(outcome(&mut spoken, &write(0, 1, 64 * KIB, &[7; 1000])), 0);
    let heard = spoken.ask(&request(0, READ, 9, 0, 200 << 10));
    let mut heard = Heard(&heard);
    let hole = |offset: u64, len: u32| [&offset.to_be_bytes()[..], &len.to_be_bytes()].concat();
    assert_eq!(heard.chunk(), (0, 2, 9, &hole(0, 64 << 10)[..]));
    let mut data = vec![0; 64 << 10];
    data[..1000].fill(7);
    assert_eq!(heard.chunk(), (0, 1, 9, &[&(64 * KIB).to_be_bytes()[..], &data].concat()[..]));
    assert_eq!(heard.chunk(), (1, 2, 9, &hole(128 * KIB, 72 << 10)[..]), "two parts are one hole");
    assert!(heard.0.is_empty());
    // In one piece.
    let heard = spoken.ask(&request(DF, READ, 10, 64 * KIB - 5, 10));
    assert_eq!(
        Heard(&heard).chunk(),
        (1, 1, 10, &[&(64 * KIB - 5).to_be_bytes()[..], &[0, 0, 0, 0, 0, 7, 7, 7, 7, 7]].concat()[..])
    );
    // Short runs are not sent as holes.
    let heard = spoken.ask(&request(0, READ, 11, 10, 3));
    assert_eq!(Heard(&heard).chunk(), (1, 1, 11, &[&10_u64.to_be_bytes()[..], &[0; 3]].concat()[..]));
    // A READ of 0 bytes has no data.
    let heard = spoken.ask(&request(0, READ, 12, 10, 0));
    assert_eq!(Heard(&heard).chunk(), (1, 0, 12, &[][..]));
}

#[test]
fn block_status_tells_of_extents() {
    let mut spoken = Spoken::transmitting(disk(), true);
    assert_eq!(outcome(&mut spoken, &write(0, 1, 64 * KIB, &[7; 100_000])), 0);
    let extents = |spoken: &mut Spoken, flags, offset, len| {
        let heard = spoken.ask(&request(flags, BLOCK_STATUS, 2, offset, len));
        let mut heard = Heard(&heard);
        let (done, kind, cookie, payload) = heard.chunk();
        assert_eq!((done, kind, cookie, &payload[..4]), (1, 5, 2, &[0, 0, 0, 1][..]));
        let extent = |bytes: &[u8]| {
            let mut bytes = Heard(bytes);
            (bytes.u32(), bytes.u32())
        };
        payload[4..].chunks_exact(8).map(extent).collect::<Vec<_>>()
    };
    let all = extents(&mut spoken, 0, 0, SIZE as u32);
    assert_eq!(all, [(64 << 10, 3), (128 << 10, 0), (64 << 10, 3)]);
    assert_eq!(extents(&mut spoken, REQ_ONE, 0, SIZE as u32), [(64 << 10, 3)]);
    assert_eq!(extents(&mut spoken, REQ_ONE, 100, 1000), [(1000, 3)]);
    assert_eq!(extents(&mut spoken, FUA, 65_000, 1000), [(536, 3), (464, 0)]);
    assert_eq!(outcome(&mut spoken, &request(0, BLOCK_STATUS, 3, 1, SIZE as u32)), EINVAL);
    assert_eq!(outcome(&mut spoken, &request(0, BLOCK_STATUS, 3, 1, 0)), EINVAL);
    assert_eq!(outcome(&mut spoken, &request(DF, BLOCK_STATUS, 3, 1, 1)), EINVAL);
}

#[test]
fn ranges_and_flags_have_their_errors() {
    for structured in [false, true] {
        let mut spoken = Spoken::transmitting(disk(), structured);
        let end = SIZE - 10;
        for (kind, error) in
            [(READ, EINVAL), (WRITE, ENOSPC), (TRIM, EINVAL), (CACHE, EINVAL), (WRITE_ZEROES, ENOSPC)]
        {
            let data = if kind == WRITE { &[1; 11][..] } else { &[] };
            for offset in [end, SIZE + 1, u64::MAX, u64::MAX - 10] {
                let said = [&request(FUA, kind, 5, offset, 11)[..], data].concat();
                assert_eq!(outcome(&mut spoken, &said), error, "{kind} at {offset}");
            }
            // A flag of another command, and unknown flags.
            for flag in [REQ_ONE, 1 << 5, 1 << 15] {
                let said = [&request(flag, kind, 6, 0, 11)[..], data].concat();
                assert_eq!(outcome(&mut spoken, &said), EINVAL, "{kind} with {flag}");
            }
        }
        assert_eq!(outcome(&mut spoken, &request(FAST_ZERO, TRIM, 7, 0, 1)), EINVAL);
        assert_eq!(outcome(&mut spoken, &request(FUA, FLUSH, 8, 0, 0)), 0);
        assert_eq!(outcome(&mut spoken, &request(0, FLUSH, 8, 1, 0)), EINVAL);
        assert_eq!(outcome(&mut spoken, &request(0, FLUSH, 8, 0, 1)), EINVAL);
        assert_eq!(outcome(&mut spoken, &request(0, 8, 9, 0, 0)), EINVAL);
        assert_eq!(outcome(&mut spoken, &request(0, 0xFFFF, 9, 0, 0)), EINVAL);
        for kind in [WRITE, TRIM, CACHE, WRITE_ZEROES] {
            assert_eq!(outcome(&mut spoken, &request(0, kind, 10, SIZE, 0)), 0, "nothing at the end");
        }
        let zeroes = request(NO_HOLE | FAST_ZERO | FUA, WRITE_ZEROES, 11, 0, SIZE as u32);
        assert_eq!(outcome(&mut spoken, &zeroes), 0);
    }
}

#[test]
fn what_is_refused_changes_nothing_and_its_data_is_skipped() {
    let disk = MemoryExport::new("disk", 64 << 20).with_minimum_block(512);
    let mut spoken = Spoken::transmitting(Arc::new(disk), true);
    assert_eq!(outcome(&mut spoken, &write(0, 1, 0, &[3; 512])), 0);
    let long = write(0, 2, 0, &vec![4; PAYLOAD_BYTES_MAX as usize + 512]);
    assert_eq!(outcome(&mut spoken, &long), EINVAL);
    assert_eq!(outcome(&mut spoken, &write(0, 3, 1, &[4; 512])), EINVAL);
    assert_eq!(outcome(&mut spoken, &write(0, 4, 0, &[4; 511])), EINVAL);
    assert_eq!(outcome(&mut spoken, &write(1 << 9, 5, 0, &[4; 512])), EINVAL);
    assert_eq!(outcome(&mut spoken, &request(0, READ, 6, 0, PAYLOAD_BYTES_MAX + 512)), EOVERFLOW);
    let heard = spoken.ask(&request(0, READ, 7, 0, 512));
    assert_eq!(Heard(&heard).chunk().3[8..], [3; 512]);
    // The longest WRITE.
    let longest = write(0, 8, 512, &vec![5; PAYLOAD_BYTES_MAX as usize]);
    assert_eq!(outcome(&mut spoken, &longest), 0);
    let heard = spoken.ask(&request(DF, READ, 9, 0, PAYLOAD_BYTES_MAX));
    let (_, _, _, data) = Heard(&heard).chunk();
    assert!(data[8..520].iter().all(|byte| *byte == 3) && data[520..].iter().all(|byte| *byte == 5));
    // Simple replies have only EINVAL for this.
    let disk = Arc::new(MemoryExport::new("disk", 64 << 20));
    let mut spoken = Spoken::transmitting(disk, false);
    assert_eq!(outcome(&mut spoken, &request(0, READ, 6, 0, PAYLOAD_BYTES_MAX + 1)), EINVAL);
}

#[test]
fn a_read_only_export_is_not_changed() {
    let mut spoken = Spoken::transmitting(Arc::new(MemoryExport::new("disk", SIZE).read_only()), true);
    assert_eq!(outcome(&mut spoken, &write(0, 1, 0, &[4; 512])), EPERM);
    assert_eq!(outcome(&mut spoken, &write(0, 1, SIZE, &[4; 512])), EPERM);
    assert_eq!(outcome(&mut spoken, &request(0, TRIM, 2, 0, 512)), EPERM);
    assert_eq!(outcome(&mut spoken, &request(0, WRITE_ZEROES, 3, 0, 512)), EPERM);
    assert_eq!(outcome(&mut spoken, &request(0, CACHE, 4, 0, 512)), 0);
    assert_eq!(outcome(&mut spoken, &request(0, FLUSH, 4, 0, 0)), 0);
}

#[test]
fn conversations_end() {
    let (heard, ending) =
        Spoken::transmitting(disk(), false).last(&[write(0, 1, 0, b"x"), request(0, DISC, 2, 0, 0)].concat());
    assert_eq!((Heard(&heard).simple(), ending), ((0, 1), Ending::Goodbye));
    let (_, ending) = Spoken::transmitting(disk(), false).last(&[0; 28]);
    assert!(matches!(ending, Ending::Violation(_)), "{ending:?}");
    let mut spoken = Spoken::transmitting(disk(), true);
    spoken.0.stop();
    assert_eq!(outcome(&mut spoken, &write(0, 1, 0, b"x")), ESHUTDOWN);
    assert_eq!(outcome(&mut spoken, &request(0, READ, 2, 0, 1)), ESHUTDOWN);
    let (_, ending) = spoken.last(&request(0, DISC, 3, 0, 0));
    assert_eq!(ending, Ending::Goodbye);
}

#[test]
fn commands_are_completed_late_and_in_any_order() {
    let late = Arc::new(LateExport::new(Arc::new(MemoryExport::new("disk", SIZE)), true));
    for structured in [false, true] {
        let mut spoken = Spoken::transmitting(Arc::clone(&late) as Arc<dyn Export>, structured);
        let mut said: Vec<u8> = (0..64).flat_map(|i| write(0, i, i * 512, &[i as u8 + 1; 512])).collect();
        let mut heard = finish(&mut spoken, &said);
        assert_eq!(heard.len(), 64 * 16);
        // Cookies need not be unique: matching replies is up to the client.
        said = (0..64).flat_map(|i| request(DF * u16::from(structured), READ, i, i * 512, 512)).collect();
        heard = finish(&mut spoken, &said);
        let mut rest = Heard(&heard);
        let mut order = Vec::new();
        while !rest.0.is_empty() {
            let (cookie, data) = match structured {
                true => {
                    let (_, _, cookie, payload) = rest.chunk();
                    (cookie, &payload[8..])
                }
                false => (rest.simple().1, rest.bytes(512)),
            };
            assert_eq!(data, [cookie as u8 + 1; 512]);
            order.push(cookie);
        }
        assert!(!order.is_sorted(), "late and in any order");
        order.sort();
        assert!(order.into_iter().eq(0..64), "each is answered once");
    }
}

/// Sends `said` and returns the answers until nothing is in flight.
fn finish(spoken: &mut Spoken, said: &[u8]) -> Vec<u8> {
    let mut heard = spoken.say(said).0;
    while spoken.0.in_flight() > 0 {
        heard.extend(spoken.say(&[]).0);
    }
    heard
}

#[test]
fn what_is_in_flight_is_bounded() {
    let late = Arc::new(LateExport::new(Arc::new(MemoryExport::new("disk", 64 << 20)), true));
    let mut spoken = Spoken::transmitting(Arc::clone(&late) as Arc<dyn Export>, true);
    let said: Vec<u8> = (0..2000).flat_map(|i| request(0, CACHE, i, i * 512, 512)).collect();
    assert_eq!(finish(&mut spoken, &said).len(), 2000 * 16);
    assert_eq!(late.most_in_flight.swap(0, Ordering::Relaxed), COMMANDS_IN_FLIGHT_MAX);
    // Long reads are few.
    let said: Vec<u8> = (0..12).flat_map(|i| request(DF, READ, i, 0, PAYLOAD_BYTES_MAX)).collect();
    let heard = finish(&mut spoken, &said);
    assert_eq!(heard.len(), 12 * (28 + PAYLOAD_BYTES_MAX as usize));
    let most = BYTES_IN_FLIGHT_MAX / u64::from(PAYLOAD_BYTES_MAX);
    assert_eq!(late.most_in_flight.load(Ordering::Relaxed) as u64, most);
}

#[test]
fn replies_that_are_not_taken_hold_requests_back() {
    let mut spoken = Spoken::transmitting(disk(), true);
    let said: Vec<u8> = (0..1000).flat_map(|i| request(DF, READ, i, 0, 4096)).collect();
    let space = spoken.0.space();
    space[..said.len()].copy_from_slice(&said);
    spoken.0.arrived(said.len());
    for _ in 0..3 {
        assert_eq!(spoken.0.advance(), Need::Room);
        let waiting = spoken.0.pending().len();
        assert!((OUTPUT_BYTES_SOFT..OUTPUT_BYTES_SOFT + 4124).contains(&waiting), "{waiting}");
    }
    let mut total = 0;
    while spoken.0.advance() == Need::Room {
        total += spoken.hear().len();
    }
    assert_eq!(total + spoken.hear().len(), 1000 * 4124);
}

#[test]
fn a_model_is_told_the_same() {
    let size = 300_001_u64;
    for (structured, late) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut export: Arc<dyn Export> = Arc::new(MemoryExport::new("disk", size));
        if late {
            export = Arc::new(LateExport::new(export, true));
        }
        let mut spoken = Spoken::transmitting(export, structured);
        let mut model = vec![0_u8; size as usize];
        let mut random = Random(u64::from(structured) + 1);
        for cookie in 0..3000 {
            let offset = random.below(size);
            let len = (1 + random.below(70_000)).min(size - offset) as u32;
            let range = offset as usize..offset as usize + len as usize;
            let (said, reads) = match random.below(5) {
                0 | 1 => (request(0, READ, cookie, offset, len), true),
                2 => {
                    model[range.clone()].fill(cookie as u8 | 1);
                    (write(0, cookie, offset, &model[range.clone()]), false)
                }
                3 => {
                    model[range.clone()].fill(0);
                    (request(NO_HOLE * (cookie as u16 & 1), WRITE_ZEROES, cookie, offset, len), false)
                }
                // This export's trims write zeroes.
                _ => {
                    model[range.clone()].fill(0);
                    (request(0, TRIM, cookie, offset, len), false)
                }
            };
            let heard = finish(&mut spoken, &said);
            if reads {
                assert!(
                    read_data(&heard, structured, offset, len) == model[range],
                    "at {offset}, {len} bytes"
                );
            } else {
                assert_eq!(Heard(&heard).outcome(), (0, cookie));
            }
        }
    }
}

/// The data of a reply to a READ.
fn read_data(heard: &[u8], structured: bool, offset: u64, len: u32) -> Vec<u8> {
    let mut heard = Heard(heard);
    if !structured {
        assert_eq!(heard.simple().0, 0);
        return heard.0.to_owned();
    }
    let mut parts = HashMap::new();
    loop {
        let (flags, kind, _, payload) = heard.chunk();
        let mut payload = Heard(payload);
        let at = (payload.u64() - offset) as usize;
        match kind {
            1 => parts.insert(at, payload.0.to_owned()),
            2 => parts.insert(at, vec![0; payload.u32() as usize]),
            other => panic!("a chunk of type {other}"),
        };
        if flags == 1 {
            break;
        }
    }
    assert!(heard.0.is_empty());
    let mut data = Vec::new();
    while data.len() < len as usize {
        data.extend(parts.remove(&data.len()).expect("the chunks join"));
    }
    assert!(parts.is_empty());
    data
}

/// A disk that fails half-way, in a way chosen by the offset.
struct FailingDisk;

impl Export for FailingDisk {
    fn name(&self) -> String {
        "failing".into()
    }
    fn size(&self) -> u64 {
        SIZE
    }
    fn session(self: Arc<Self>) -> io::Result<Box<dyn Session>> {
        Ok(Box::new(FailingDisk))
    }
}

impl Session for FailingDisk {
    fn begin(&mut self, tag: Tag, command: Command<'_>, completions: &mut Completions) {
        match command {
            Command::Read { offset, .. } => {
                let mut reply = completions.read(tag);
                reply.data(b"some");
                reply.zeroes(1000);
                reply.buffer(4).copy_from_slice(b"more");
                reply.data(b"data");
                match offset {
                    0 => reply.fail(Errno::Io),
                    1 => drop(reply),
                    _ => {
                        let missing = reply.missing();
                        reply.zeroes(missing);
                        reply.finish();
                    }
                }
            }
            Command::BlockStatus { offset, .. } => {
                let mut reply = completions.extents(tag);
                match offset {
                    0 => {
                        reply.push(512, ExtentState::Hole);
                        reply.push(512, ExtentState::Data);
                        reply.fail(Errno::NoMemory);
                    }
                    1 => drop(reply),
                    _ => {
                        let pushed =
                            [(0, ExtentState::Data), (9, ExtentState::Zero), (u64::MAX, ExtentState::Zero)];
                        let wanted = pushed.map(|(len, state)| reply.push(len, state));
                        assert_eq!(wanted, [true, true, false]);
                    }
                }
            }
            Command::WriteZeroes { fast: true, .. } => completions.fail(tag, Errno::NotSupported),
            Command::Trim { .. } => completions.finish(tag, Err(Errno::Shutdown)),
            _ => completions.finish(tag, Err(Errno::NoSpace)),
        }
    }
    fn poll(&mut self, _: &mut Completions) {}
    fn event(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// ENOTSUP is for zeroes that would not be fast: the protocol wants no other command to fail with it.
#[test]
fn what_a_device_does_not_support_is_an_io_error() {
    for kind in [io::ErrorKind::Unsupported, io::ErrorKind::Other] {
        assert_eq!(Errno::from(&io::Error::from(kind)), Errno::Io);
    }
}

#[test]
fn what_fails_half_way_is_an_error_and_nothing_else() {
    for structured in [false, true] {
        let mut spoken = Spoken::transmitting(Arc::new(FailingDisk), structured);
        for offset in [0, 1] {
            assert_eq!(outcome(&mut spoken, &request(0, READ, 1, offset, 2000)), EIO);
        }
        let heard = spoken.ask(&request(0, READ, 2, 2, 2000));
        let expected = [b"some", &[0; 1000][..], b"moredata", &[0; 988]].concat();
        assert!(read_data(&heard, structured, 2, 2000) == expected);
        assert_eq!(
            heard.len(),
            if structured { 28 + 4 + 32 + 28 + 8 + 32 } else { 2016 },
            "chunks are joined"
        );
        assert_eq!(outcome(&mut spoken, &write(0, 3, 0, b"x")), ENOSPC);
        assert_eq!(outcome(&mut spoken, &request(FAST_ZERO, WRITE_ZEROES, 4, 0, 9)), ENOTSUP);
        assert_eq!(outcome(&mut spoken, &request(0, WRITE_ZEROES, 4, 0, 9)), ENOSPC);
        assert_eq!(outcome(&mut spoken, &request(0, TRIM, 4, 0, 9)), ESHUTDOWN);
        assert_eq!(outcome(&mut spoken, &request(0, FLUSH, 4, 0, 0)), ENOSPC);
    }
    let mut spoken = Spoken::transmitting(Arc::new(FailingDisk), true);
    assert_eq!(outcome(&mut spoken, &request(0, BLOCK_STATUS, 5, 0, 2000)), ENOMEM);
    assert_eq!(outcome(&mut spoken, &request(0, BLOCK_STATUS, 5, 1, 2000)), EIO);
    let heard = spoken.ask(&request(0, BLOCK_STATUS, 5, 2, 2000));
    assert_eq!(Heard(&heard).chunk(), (1, 5, 5, &[0, 0, 0, 1, 0, 0, 7, 208, 0, 0, 0, 2][..]));
}
