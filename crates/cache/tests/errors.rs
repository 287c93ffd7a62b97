//! What goes wrong says where, and what was lost.

mod common;

use common::options;
use granary_cache::{Cache, Entry, Error, OpenError, Refusal};
use granary_log::device::{Fault, Faults, FaultyDevice, MemoryDevice};

#[test]
fn errors_name_the_option_or_the_path() {
    let error = Cache::builder().memory(1 << 20).block_size(4096).open().unwrap_err();
    assert!(error.to_string().starts_with("flash: "), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let opened = Cache::builder().memory(1 << 20).flash(&path, 8 << 20).open().unwrap();
    let error: Error = Cache::builder().memory(1 << 20).flash(&path, 8 << 20).open().unwrap_err().into();
    assert!(matches!(error, Error::Open(OpenError::InUse { .. })));
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    opened.close().unwrap();
}

#[test]
fn a_batch_says_which_entries_were_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(options(folder.path(), 64, 64, 16 << 10)).unwrap();
    let long = vec![0; 1 << 20];
    let values = [&b"1"[..], &long, b"3"];
    let entry = |i: usize| Entry { key: cache.key(&b"abc"[i..=i]), value: Some(values[i]), expires_at: 0 };
    assert_eq!(cache.put_many(&[entry(0), entry(1), entry(2)]), [(1, Refusal::TooLong)]);
    assert_eq!(cache.put_many(&[entry(0)]), []);
    assert!(cache.contains(b"a") && !cache.contains(b"b") && cache.contains(b"c"));
}

#[test]
fn a_flush_says_how_many_entries_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults { seed: 1, chances: vec![(Fault::Enospc, 65_536)], crash_after_writes: None };
    let options = options(folder.path(), 64, 64, 0);
    let path = options.flash.as_ref().unwrap().path.clone();
    let device = FaultyDevice::new(MemoryDevice::new(64 * 64 * 512), 512, faults);
    let cache = Cache::open_on(Box::new(device), options).unwrap();
    for key in 0..9u8 {
        cache.insert(&[key], b"value").unwrap();
    }
    let error = cache.flush().unwrap_err();
    assert!(matches!(error, Error::Flush { lost: 9, .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with(path.to_str().unwrap()) && text.contains("9 entries are lost"), "{text}");
    assert!(std::io::Error::from(error).to_string() == text);
    assert!((0..9u8).all(|key| cache.get(&[key]).is_none()));
}
