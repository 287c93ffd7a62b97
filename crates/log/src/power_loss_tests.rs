//! A log that cannot write its journal, and a start that is cut short between journal and state file.

use crate::device::{Device, MemoryDevice, Space};
use crate::sync::Arc;
use crate::{
    AlignedBuffer, Consumer, CrashPolicy, Framing, Geometry, Log, OnWriteError, Options, SealedBlocks,
    SegmentId, SlotOrder, SummarySource,
};
use std::io;
use std::ops::Range;
use std::path::Path;

/// Segments of one block with nothing but their sequence number.
#[derive(Clone)]
struct Bare;

impl Framing for Bare {
    type Builder = ();
    type Summary = (u64, u64);

    fn begin(&self, _: &SegmentId) {}
    fn bytes_allocated((): &()) -> usize {
        0
    }
    fn seal(&self, id: &SegmentId, (): &mut (), blocks: &mut [u8]) -> SealedBlocks {
        blocks[..8].copy_from_slice(&id.sequence.to_le_bytes());
        SealedBlocks { data: 0..1, summary: 0..0 }
    }
    fn used(&self, _: &Geometry, (): &()) -> [Range<usize>; 2] {
        [0..1, 0..0]
    }
    fn summarize(&self, id: &SegmentId, (): &()) -> (u64, u64) {
        (id.sequence, id.first_block)
    }
    fn position(summary: &(u64, u64)) -> (u64, u64) {
        *summary
    }
    fn read(&self, source: &SummarySource<'_>, slots: Range<u64>) -> Vec<Option<(u64, u64)>> {
        let read = |slot| {
            let mut bytes = AlignedBuffer::zeroed(512);
            source.device.read_at(source.geometry.offset(slot), &mut bytes).ok()?;
            Some((u64::from_le_bytes(bytes[..8].try_into().ok()?), slot))
                .filter(|(sequence, _)| *sequence > 0)
        };
        slots.map(read).collect()
    }
    fn sequence_of_block(&self, _: &SummarySource<'_>, _: u64, bytes: &[u8]) -> Option<u64> {
        Some(u64::from_le_bytes(bytes[..8].try_into().ok()?)).filter(|sequence| *sequence > 0)
    }
}

struct Nobody;

impl Consumer<Bare> for Nobody {
    fn reclaim(&self, _: &(u64, u64)) {}
    fn reclaim_unread(&self, _: Range<u64>) {}
    fn on_write_error(&self, _: &(u64, u64), _: &io::Error) -> OnWriteError {
        OnWriteError::Drop
    }
}

fn write_segments(log: &Log<Bare>, segments: u64) {
    for _ in 0..segments {
        log.writer().fill(|_, (), _| Some(())).unwrap();
        log.flush().unwrap();
    }
}

fn options(folder: &Path, crash_policy: CrashPolicy) -> Options {
    Options {
        path: folder.join("d.bin"),
        state_path: folder.join("d"),
        geometry: Geometry::new(64 * 512, 512, 512).unwrap(),
        fingerprint: 1,
        salt: Some(0),
        depends_on: 0,
        shared_memory: Vec::new(),
        slots: SlotOrder::Fifo,
        space: Space::Reserved,
        crash_policy,
    }
}

#[test]
fn a_log_that_starts_over_beside_an_old_journal_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), CrashPolicy::StartEmpty);
    let says_nothing = || std::fs::read(folder.path().join("d.state")).unwrap().iter().all(|byte| *byte == 0);
    let device: Box<dyn Device> = Box::new(MemoryDevice::new(64 * 512));
    let (log, _) = Log::open_on(Bare, device, &options).unwrap();
    log.writer().journal(1, &[6]);
    log.writer.lock().unwrap().journal.fail(&options.state_path, true);
    log.writer().clear().unwrap_err();
    assert!(says_nothing(), "behind the old entries no deletion would be found");
    log.writer.lock().unwrap().journal.fail(&options.state_path, false);
    log.writer().clear().unwrap();
    assert!(!says_nothing());
}

#[test]
fn a_journal_that_lacks_words_is_not_trusted_again_at_the_next_sync() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), CrashPolicy::ServeOlder);
    let state = || std::fs::read(folder.path().join("d.state")).unwrap();
    let says_nothing = || state().iter().all(|byte| *byte == 0);
    let device: Box<dyn Device> = Box::new(MemoryDevice::new(64 * 512));
    let (log, _) = Log::open_on(Bare, device, &options).unwrap();
    let log = Arc::new(log);
    let served = Arc::clone(&log);
    let flusher = std::thread::spawn(move || served.run_flusher(&Nobody));
    write_segments(&log, 2);
    log.writer.lock().unwrap().journal.fail(&options.state_path, true);
    log.writer().journal(3, &[6]);
    assert!(says_nothing(), "the next start finds nothing");
    assert!(!state().is_empty(), "it can be written again on a full device");
    log.sync_journal().unwrap();
    write_segments(&log, 40);
    assert!(says_nothing(), "it was synced meanwhile, which says nothing of the journal");
    log.writer.lock().unwrap().journal.fail(&options.state_path, false);
    log.writer().clear().unwrap();
    assert!(says_nothing(), "nor is the journal whole now");
    log.stop().unwrap();
    assert!(!says_nothing(), "all is on the device");
    flusher.join().unwrap();
}

/// On a file system that became read-only, a change that cannot be recorded is not reported as synced, under any
/// policy.
#[test]
fn a_change_that_neither_journal_nor_state_can_tell_of_is_not_synced() {
    for crash_policy in [CrashPolicy::StartEmpty, CrashPolicy::ServeOlder] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), crash_policy);
        let says_nothing =
            || std::fs::read(folder.path().join("d.state")).unwrap().iter().all(|byte| *byte == 0);
        let device: Box<dyn Device> = Box::new(MemoryDevice::new(64 * 512));
        let (log, _) = Log::open_on(Bare, device, &options).unwrap();
        let fail = |fails| {
            log.writer.lock().unwrap().journal.fail(&options.state_path, fails);
            log.state.lock().unwrap().fail(&options.state_path, fails);
        };
        log.writer().journal(1, &[5]);
        log.sync_journal().unwrap();
        fail(true);
        log.writer().journal(1, &[6]);
        log.sync_journal().unwrap_err();
        log.sync_journal().unwrap_err();
        assert!(!says_nothing());
        fail(false);
        log.sync_journal().unwrap();
        assert!(says_nothing(), "the next start finds nothing: the journal lacks an entry");
        log.sync_journal().unwrap();
    }
}

/// Opens a log, calls `work` with it, and ends as a killed process does.
fn with_killed(options: &Options, work: impl FnOnce(&Log<Bare>)) {
    let (log, _) = Log::<Bare>::open(Bare, options).unwrap();
    let log = Arc::new(log);
    let served = Arc::clone(&log);
    let flusher = std::thread::spawn(move || served.run_flusher(&Nobody));
    work(&log);
    log.abandon();
    flusher.join().unwrap();
}

/// A start that gives up the content and fails after replacing the journal leaves no content without a journal.
#[test]
fn a_start_with_other_options_that_fails_brings_nothing_back() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), CrashPolicy::ServeOlder);
    with_killed(&options, |log| {
        write_segments(log, 1);
        log.writer().journal(2, &[6]);
    });
    // The first of the two files of the journal is replaced, the second one cannot be.
    let second = folder.path().join("d.journal.1");
    std::fs::remove_file(&second).unwrap();
    std::fs::create_dir(&second).unwrap();
    assert!(Log::<Bare>::open(Bare, &Options { fingerprint: 2, ..options.clone() }).is_err());
    std::fs::remove_dir(&second).unwrap();
    let (_, recovered) = Log::<Bare>::open(Bare, &options).unwrap();
    assert!(recovered.segments.is_empty(), "{:?} came back without what voids it", recovered.segments);
}

/// A segment lost by the kill is missing between two others: the first start reports its entries as lost, and later
/// starts still serve older segments.
#[test]
fn a_gap_is_filled() {
    for crash_policy in [CrashPolicy::StartEmpty, CrashPolicy::ServeOlder] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), crash_policy);
        with_killed(&options, |log| {
            write_segments(log, 4);
            log.writer().journal(5, &[6]);
        });
        let data = std::fs::File::options().write(true).open(&options.path).unwrap();
        let sixth = options.geometry.offset(options.geometry.first_block(6));
        std::os::unix::fs::FileExt::write_all_at(&data, &6u64.to_le_bytes(), sixth).unwrap();
        drop(data);
        for start in 0..3 {
            let (log, recovered) = Log::<Bare>::open(Bare, &options).unwrap();
            let sequences: Vec<u64> = recovered.segments.iter().map(|(sequence, _)| *sequence).collect();
            let expected: &[u64] = if start == 0 { &[1, 2, 3, 4, 6] } else { &[1, 2, 3, 4, 5, 6] };
            assert_eq!(sequences, expected, "start {start}");
            assert!(recovered.lost.values().flatten().eq(&[6]), "until it was appended as a deletion");
            log.abandon();
        }
    }
}

/// Shared memory without room.
#[derive(Debug, Default)]
struct Full(std::sync::atomic::AtomicU64);

impl crate::SharedMemory for Full {
    fn previous_id(&self) -> u64 {
        0
    }
    fn open(&self, _: u64, _: u64) -> Vec<(u64, AlignedBuffer)> {
        Vec::new()
    }
    fn buffer(&self, _: usize) -> Option<AlignedBuffer> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        None
    }
}

/// A private buffer, which a kill would lose, is not reused: shared memory may have room by then.
#[test]
fn each_segment_asks_for_memory_that_outlives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let full = std::sync::Arc::new(Full::default());
    let options =
        Options { shared_memory: vec![full.clone()], ..options(folder.path(), CrashPolicy::StartEmpty) };
    with_killed(&options, |log| write_segments(log, 10));
    assert_eq!(full.0.load(std::sync::atomic::Ordering::Relaxed), 10);
}

/// Segments older than a missing one are not served: neither by the start that finds it missing nor by the next one, if
/// the first is killed before it writes its state.
#[test]
fn a_start_that_was_killed_before_it_wrote_its_state_forgets_no_hole() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), CrashPolicy::StartEmpty);
    let (log, _) = Log::<Bare>::open(Bare, &options).unwrap();
    let log = Arc::new(log);
    let served = Arc::clone(&log);
    let flusher = std::thread::spawn(move || served.run_flusher(&Nobody));
    write_segments(&log, 4);
    // The entry's durable mark says that four segments are there; its own segment is found.
    log.writer().journal(5, &[10]);
    write_segments(&log, 1);
    log.abandon();
    flusher.join().unwrap();
    let hole = log.geometry().offset(log.geometry().first_block(4));
    drop(log);
    let data = std::fs::File::options().write(true).open(&options.path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&data, &[0; 512], hole).unwrap();
    drop(data);
    let state_path = folder.path().join("d.state");
    let before = std::fs::read(&state_path).unwrap();
    for _ in 0..3 {
        let (log, recovered) = Log::<Bare>::open(Bare, &options).unwrap();
        let sequences: Vec<u64> = recovered.segments.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(sequences, [5]);
        log.abandon();
        drop((log, recovered));
        std::fs::write(&state_path, &before).unwrap();
    }
}
