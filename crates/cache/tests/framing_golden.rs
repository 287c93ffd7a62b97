//! The bytes on disk: what is written today is what the golden files hold, and these are read.

mod framing;
#[path = "../../log/tests/common/skip.rs"]
mod skip;

use framing::golden::{compare, fix_boot_id, fix_instance, read, without_boot_id};
use framing::{Store, append, intact, options, summary_entry};
use granary_cache::framing::Log;
use granary_log::device::MemoryDevice;
use granary_log::{Geometry, Io, Options};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/framing/golden")
}

/// A log of four segments of 16 blocks, which have summaries, or of 4 blocks, which have none.
fn geometry(blocks: u64) -> Geometry {
    Geometry::new(4 * blocks * 512, blocks * 512, 512).unwrap()
}

fn start(options: &Options) -> Store {
    Store::open(None, options).stop();
    fix_instance(&options.state_path.with_extension("state"));
    Store::open(None, options)
}

/// Two segments on the device, a third in RAM only; then it is stopped by `stop`.
fn write(options: &Options, stop: impl FnOnce(Store)) {
    let store = start(options);
    append(&store.log, summary_entry(1, false), 1, 30);
    append(&store.log, summary_entry(2, false), 1, 500);
    append(&store.log, summary_entry(3, false), 1, 40);
    store.log.flush().unwrap();
    append(&store.log, summary_entry(1, false), 2, 30);
    append(&store.log, summary_entry(3, true), 2, 16);
    store.log.flush().unwrap();
    append(&store.log, summary_entry(2, false), 3, 16);
    append(&store.log, summary_entry(4, false), 3, 16);
    stop(store);
}

type Stop = fn(Store);

/// Compares or writes the files of a log.
fn compare_all(options: &Options, name: &str) {
    let file = |suffix: &str| options.state_path.with_extension(suffix);
    let compare = |suffix: &str, bytes: &[u8]| compare(&folder(), &format!("{name}.{suffix}.txt"), bytes);
    compare("bin", &std::fs::read(file("bin")).unwrap());
    compare("state", &without_boot_id(&file("state")));
    compare("journal.0", &std::fs::read(file("journal.0")).unwrap());
    compare("journal.1", &std::fs::read(file("journal.1")).unwrap());
}

/// Puts the golden files of `name` where the log looks for its own.
fn unpack(options: &Options, name: &str) {
    for suffix in ["bin", "state", "journal.0", "journal.1"] {
        let bytes = read(&folder(), &format!("{name}.{suffix}.txt"));
        std::fs::write(options.state_path.with_extension(suffix), bytes).unwrap();
    }
}

#[test]
fn what_is_written_is_what_was_agreed() {
    for (blocks, shape) in [(16, "summaries"), (4, "short")] {
        let stops: [(&str, Stop); 2] = [("killed", Store::abandon), ("clean", Store::stop)];
        for (name, stop) in stops {
            let temporary = tempfile::tempdir().unwrap();
            let options = options(temporary.path(), geometry(blocks));
            write(&options, stop);
            compare_all(&options, &format!("{shape}-{name}"));
        }
    }
}

#[test]
fn what_was_agreed_is_read() {
    for (blocks, shape) in [(16, "summaries"), (4, "short")] {
        for name in ["clean", "killed"] {
            let temporary = tempfile::tempdir().unwrap();
            let options = options(temporary.path(), geometry(blocks));
            unpack(&options, &format!("{shape}-{name}"));
            let killed = name == "killed";
            if killed && fix_boot_id(&options.state_path.with_extension("state")).is_none() {
                skip::skipped("no boot id: what was killed is not read");
                continue;
            }
            let store = Store::open(None, &options);
            let mut io = Io::new();
            let found = [1, 2, 3, 4].map(|key| store.get(&mut io, key));
            // After the kill the newest versions of 2 and 4 are gone, and no older ones come back.
            let expected =
                if killed { [Some(2), None, None, None] } else { [Some(2), Some(3), None, Some(3)] };
            assert_eq!(found, expected, "{shape}-{name}");
            store.stop();
        }
    }
}

/// Another fingerprint, another geometry, a byte changed: the golden content is not served.
#[test]
fn what_was_not_agreed_is_not_read() {
    type Change = fn(&mut Options);
    let changes: [Change; 4] = [
        |options| options.fingerprint += 1,
        |options| options.geometry = Geometry::new(4 * 16 * 512, 8 * 16 * 128, 1024).unwrap(),
        |options| options.geometry = Geometry::new(8 * 16 * 512, 16 * 512, 512).unwrap(),
        |options| {
            let state = options.state_path.with_extension("state");
            let mut bytes = std::fs::read(&state).unwrap();
            bytes[80] ^= 1;
            std::fs::write(state, bytes).unwrap();
        },
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let temporary = tempfile::tempdir().unwrap();
        let mut options = options(temporary.path(), geometry(16));
        unpack(&options, "summaries-clean");
        change(&mut options);
        let (log, recovered) = Log::open(framing::framing(), &options).unwrap();
        assert!(recovered.segments.is_empty() && recovered.lost.is_empty(), "change {i}");
        assert_eq!(log.head(), 0, "change {i}");
        assert_ne!(log.instance(), framing::golden::INSTANCE, "change {i}");
    }
}

/// Reads the golden data only by the description in docs/format.md.
#[test]
fn the_documentation_reads_the_golden_data() {
    for (blocks, shape) in [(16, "summaries"), (4, "short")] {
        let bytes = read(&folder(), &format!("{shape}-clean.bin.txt"));
        let device = MemoryDevice::new(bytes.len() as u64);
        granary_log::device::Device::write_at(&device, 0, &[&bytes]).unwrap();
        let found = intact(&device, &geometry(blocks), framing::golden::INSTANCE);
        assert_eq!(found, [1, 2, 3], "{shape}");
    }
}
