//! Errors name the path, and what was lost.

mod common;

use common::options;
use granary_cache::{Cache, Entry, Error, OpenError, Refusal};
use granary_log::device::{Device, Fault, Faults, FaultyDevice, MemoryDevice};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
fn an_error_stays_itself_as_one_of_the_operating_system() {
    let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error = std::io::Error::from(Error::Sync { path: "/a/cache".into(), source });
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert!(error.to_string().starts_with("/a/cache: cannot sync"), "{error}");
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

/// The write buffer was full, and the device refused it before the flush.
#[test]
fn a_flush_tells_of_what_was_lost_before_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults { seed: 1, chances: vec![(Fault::Eio, 65_536)], crash_after_writes: None };
    let device = Arc::new(FaultyDevice::new(MemoryDevice::new(64 * 64 * 512), 512, faults));
    let cache = Cache::open_on(Box::new(Arc::clone(&device)), options(folder.path(), 64, 64, 0)).unwrap();
    // More than one segment of 32 KiB, and less than two.
    for key in 0..100u32 {
        cache.insert(&key.to_le_bytes(), &[7; 400]).unwrap();
    }
    let until = Instant::now() + Duration::from_secs(60);
    while cache.stats().write_errors == 0 {
        assert!(Instant::now() < until, "nothing is written");
        std::thread::sleep(Duration::from_millis(1));
    }
    device.set_faults(Faults::default());
    cache.insert(b"key", b"value").unwrap();
    let error = cache.flush().unwrap_err();
    assert!(matches!(error, Error::Flush { lost: 1.., .. }), "{error}");
    cache.flush().unwrap();
    assert!(cache.get(b"key").is_some());
}

/// A lost write buffer may have held newer versions of any older entry: the next start serves none of these, and the
/// stop before it reports that.
#[test]
fn a_stop_says_that_older_entries_are_not_there_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let options = || options(folder.path(), 64, 64, 0);
    let device = Arc::new(FaultyDevice::new(MemoryDevice::new(64 * 64 * 512), 512, Faults::default()));
    let open = || {
        let device: Box<dyn Device> = Box::new(Arc::clone(&device));
        Cache::open_on(device, options()).unwrap()
    };
    let put = |cache: &Cache, keys: std::ops::Range<u8>| {
        keys.for_each(|key| cache.insert(&[key], b"value").unwrap());
        cache.flush()
    };
    let cache = open();
    put(&cache, 0..9).unwrap();
    device.set_faults(Faults { seed: 1, chances: vec![(Fault::Enospc, 65_536)], crash_after_writes: None });
    put(&cache, 9..12).unwrap_err();
    device.set_faults(Faults::default());
    put(&cache, 12..20).unwrap();
    let found = |cache: &Cache| (0..20u8).filter(|key| cache.contains(&[*key])).collect::<Vec<_>>();
    assert_eq!(found(&cache), Vec::from_iter((0..9).chain(12..20)));
    let error = cache.close().unwrap_err().to_string();
    assert!(error.contains("not there at the next start"), "{error}");
    let cache = open();
    assert_eq!(found(&cache), Vec::from_iter(12..20));
    cache.close().unwrap();
    // Only entries behind the hole are there.
    let cache = open();
    put(&cache, 0..20).unwrap();
    cache.close().unwrap();
    assert_eq!(found(&open()).len(), 20);
}

#[test]
fn patience_without_end_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(options(folder.path(), 64, 64, 0)).unwrap();
    let entry = Entry { key: cache.key(b"a"), value: Some(b"1"), expires_at: 0 };
    cache.put_many_waiting(&[entry], Duration::MAX, |_, why| panic!("{why}"));
    assert!(cache.contains(b"a"));
}

#[test]
fn a_device_is_for_a_cache_on_flash() {
    let options = granary_cache::Options { memory_bytes: 1 << 20, ..Default::default() };
    let error = Cache::open_on(Box::new(MemoryDevice::new(1 << 20)), options).unwrap_err();
    assert!(matches!(error, OpenError::Invalid { option: "flash", .. }), "{error}");
}

/// Destructors of other thread-locals may run after the cache's own buffers are gone.
#[test]
fn a_thread_that_ends_may_still_use_the_cache() {
    use granary_cache::TypedCache;
    use std::cell::RefCell;

    struct AtEnd(Arc<TypedCache<str, u32>>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            assert_eq!(self.0.get("a"), Some(1));
            self.0.insert("b", &2).unwrap();
        }
    }
    thread_local!(static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) });

    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(options(folder.path(), 64, 64, 0)).unwrap();
    let cache: Arc<TypedCache<str, u32>> = Arc::new(TypedCache::new(cache));
    cache.insert("a", &1).unwrap();
    let ended = Arc::clone(&cache);
    let thread = std::thread::spawn(move || {
        // Registered first, it is destroyed last.
        AT_END.set(Some(AtEnd(Arc::clone(&ended))));
        assert_eq!(ended.get("a"), Some(1));
        ended.insert("c", &3).unwrap();
    });
    thread.join().unwrap();
    assert_eq!(cache.get("b"), Some(2));
}
