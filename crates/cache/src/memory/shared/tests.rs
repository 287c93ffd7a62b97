//! A shard of a RAM tier that is killed at every store.

use super::Arena;
use super::abandoned::remove_abandoned;
use super::file::{Claim, remove_all};
use super::header::{ArenaHeader, PATH_BYTES_MAX, encode_path, parse_path};
use crate::codec::StoredValue;
use crate::key::KeyHasher;
use crate::memory::{
    EntryFilter, EntryState, Eviction, FlashCopy, Memory, Pool, Protected, Role, ShrinkTarget,
};
use std::collections::HashMap;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const SALT: u64 = 5;
const MEMORY_ID: u64 = 77;

/// A folder on tmpfs, or `None` if there is none: the test is skipped then.
fn folder() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir_in(crate::limits::DEFAULT_MEMORY_FOLDER).ok();
    if folder.is_none() {
        crate::skip::skipped("a folder on tmpfs");
    }
    folder
}

fn pool(bytes: u64) -> Arc<Pool> {
    Arc::new(Pool::of(bytes, None, 1))
}

/// Opens the tier as the next process does.
fn open(folder: &Path, bytes: u64, memory_id: u64) -> (Memory, Arc<Arena>) {
    let pool = pool(bytes);
    let claim = Claim::new(folder, Path::new("c"), 0, pool.layout(u64::MAX)).unwrap();
    let (arena, mut chunks) = Arena::open(claim, memory_id, SALT).unwrap();
    let hasher = KeyHasher::with_seed(SALT);
    let mut memory = Memory::new(pool, u64::MAX, Role::InFrontOfFlash, hasher, 0, Some(Arc::clone(&arena)));
    memory.adopt(chunks.swap_remove(0), |_| FlashCopy::AsFlagged);
    memory.validate();
    (memory, arena)
}

type State = HashMap<Vec<u8>, (Option<Vec<u8>>, u32)>;

fn state(memory: &Memory) -> State {
    let mut state = State::new();
    memory.for_each(EntryFilter::All, |entry| {
        let value = (entry.value().map(|value| value.bytes.to_vec()), entry.expires_at);
        assert!(state.insert(entry.key.to_vec(), value).is_none(), "a key is there once");
    });
    state
}

/// The state that another process would recover from the file's present bytes.
fn recovered(bytes: &[u8], memory_bytes: u64, copies: &Path, path: &Path) -> State {
    use std::io::Write;
    let path = copies.join(path.file_name().unwrap());
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path).unwrap();
    file.write_all(bytes).unwrap();
    drop(file);
    state(&open(copies, memory_bytes, MEMORY_ID).0)
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 8
}

/// After a kill at any store each key has its state before the operation or after it.
#[test]
fn a_kill_at_any_store_leaves_the_state_before_an_operation_or_after_it() {
    for (seed, memory_bytes, values) in
        [(1, 64 << 10, 200), (2, 24 << 10, 300), (3, 1 << 20, 90_000), (4, 2 << 20, 60)]
    {
        let (Some(folder), Some(copies)) = (folder(), folder()) else { return };
        let (mut memory, mut arena) = open(folder.path(), memory_bytes, MEMORY_ID);
        let path: PathBuf = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let mut seed: u64 = seed * 0x9E37_79B9_7F4A_7C15;
        let (mut before, mut kills, mut operations_tried) = (State::new(), 0, 0);
        for step in 0..4000u32 {
            let is_tried = step.is_multiple_of(16);
            let copied: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
            if is_tried {
                let (copied, path) = (Arc::clone(&copied), path.clone());
                let copy = move || copied.lock().unwrap().push(std::fs::read(&path).unwrap());
                *arena.before_store.lock().unwrap() = Some(Box::new(copy));
            }
            let name = format!("key-{}", random(&mut seed) % 150).into_bytes();
            let key = KeyHasher::with_seed(SALT).key(&name);
            let value = vec![step as u8; (random(&mut seed) % values) as usize];
            let most = memory_bytes * 3 / 4;
            let protected = if step.is_multiple_of(2) { Protected::Fresh } else { Protected::Nothing };
            let aim = ShrinkTarget { shard: most, pool: most, protected };
            let operation = random(&mut seed) % 20;
            match operation {
                0..3 => _ = memory.remove(key),
                3..11 => {
                    memory.insert(key, Some(StoredValue::raw(&value)), step, EntryState::Dirty, 0);
                    // As the evictor does: chunks beyond the tier's size may lie in private memory.
                    memory.shrink(aim, 0, |_| Eviction::Drop);
                }
                11 => _ = memory.insert(key, None, step, EntryState::Clean, 0),
                12..17 => _ = memory.candidate(key.hash()).map(|at| memory.get(key, at).is_some()),
                17 if step % 50 == 0 => memory.clear(),
                _ => memory.shrink(aim, 0, |_| Eviction::Drop),
            }
            *arena.before_store.lock().unwrap() = None;
            let after = state(&memory);
            for bytes in copied.lock().unwrap().drain(..) {
                let found = recovered(&bytes, memory_bytes, copies.path(), &path);
                let keys = before.keys().chain(after.keys()).chain(found.keys());
                for key in keys {
                    let now = found.get(key);
                    let is_right = now == before.get(key) || now == after.get(key)
                        // For a copy, room is made first.
                        || now.is_none() && *key == name && operation == 11;
                    assert!(is_right, "step {step}: {}", key.escape_ascii());
                }
                kills += 1;
            }
            operations_tried += u32::from(is_tried);
            before = after;
            if step % 300 == 299 {
                // The process is killed, and the next one goes on.
                drop(memory);
                drop(arena);
                (memory, arena) = open(folder.path(), memory_bytes, MEMORY_ID);
                assert!(state(&memory) == before, "a kill between two operations costs nothing");
            }
        }
        memory.validate();
        assert!(kills > operations_tried / 2 && before.len() > 3, "{kills} kills, {} entries", before.len());
    }
}

/// A file of another content, or of another shape, is not taken over.
#[test]
fn a_file_that_does_not_belong_to_the_cache_is_begun_anew() {
    let Some(folder) = folder() else { return };
    let key = KeyHasher::with_seed(SALT).key(b"key");
    let put = |memory_id| {
        let (mut memory, _) = open(folder.path(), 1 << 20, memory_id);
        memory.insert(key, Some(StoredValue::raw(b"value")), 0, EntryState::Dirty, 0);
        assert_eq!(memory.len(), 1);
    };
    put(MEMORY_ID);
    assert_eq!(open(folder.path(), 1 << 20, MEMORY_ID).0.len(), 1);
    assert_eq!(open(folder.path(), 1 << 20, MEMORY_ID + 1).0.len(), 0);
    assert_eq!(open(folder.path(), 1 << 20, MEMORY_ID).0.len(), 0, "it was begun anew");
    put(MEMORY_ID);
    assert_eq!(open(folder.path(), 2 << 20, MEMORY_ID).0.len(), 0);
    put(MEMORY_ID);
    let claim = Claim::new(folder.path(), Path::new("c"), 0, pool(1 << 20).layout(u64::MAX)).unwrap();
    let (_, chunks) = Arena::open(claim, MEMORY_ID, SALT + 1).unwrap();
    assert!(chunks.iter().all(Vec::is_empty), "another salt hashes otherwise");
    // Somebody else's file, one that others may read, and a lock.
    let first = Claim::new(folder.path(), Path::new("d"), 0, pool(1 << 20).layout(u64::MAX)).unwrap();
    let second = Claim::new(folder.path(), Path::new("d"), 0, pool(1 << 20).layout(u64::MAX)).map(|_| ());
    assert_eq!(second.unwrap_err().to_string(), "another process has it");
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    std::fs::set_permissions(first.path(), permissions).unwrap();
    drop(first);
    assert!(Claim::new(folder.path(), Path::new("d"), 0, pool(1 << 20).layout(u64::MAX)).is_err());
    assert!(Claim::new(Path::new("/proc"), Path::new("d"), 0, pool(1 << 20).layout(u64::MAX)).is_err());
}

/// Files that root makes for a cache in another user's folder are that user's, and root opens it again.
#[test]
fn the_file_is_of_the_user_whose_folder_the_cache_is_in() {
    use std::os::unix::fs::{MetadataExt, chown};
    let (Some(folder), Ok(caches)) = (folder(), tempfile::tempdir()) else { return };
    if chown(caches.path(), Some(65_534), Some(65_533)).is_err() {
        return crate::skip::skipped("not root: whose the RAM tiers are that root makes");
    }
    let open = || {
        let path = caches.path().join("c");
        Claim::new(folder.path(), &path, 0, pool(1 << 20).layout(u64::MAX)).unwrap()
    };
    for _ in 0..2 {
        let found = open().file().metadata().unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (65_534, 65_533, 0o600));
    }
    remove_all(folder.path(), &caches.path().join("c"), 0..1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Damaged entries are dropped: nothing panics, and every entry found was once put.
#[test]
fn a_damaged_file_costs_entries_only() {
    let (Some(folder), Some(copies)) = (folder(), folder()) else { return };
    let (mut memory, arena) = open(folder.path(), 128 << 10, MEMORY_ID);
    let path: PathBuf = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    for i in 0..400u32 {
        let name = format!("key-{}", i % 300).into_bytes();
        memory.insert(
            KeyHasher::with_seed(SALT).key(&name),
            Some(StoredValue::raw(&[i as u8; 100])),
            i,
            EntryState::Dirty,
            0,
        );
    }
    drop((memory, arena));
    let whole = std::fs::read(&path).unwrap();
    let (mut seed, mut lost) = (9, 0);
    for _ in 0..2000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random(&mut seed) % 4 {
            let at = random(&mut seed) as usize % bytes.len();
            bytes[at] ^= 1 << (random(&mut seed) % 8);
        }
        let found = recovered(&bytes, 128 << 10, copies.path(), &path);
        lost += 300 - found.len();
        for (key, (value, expires_at)) in found {
            let number: u32 = String::from_utf8(key).unwrap().strip_prefix("key-").unwrap().parse().unwrap();
            assert!(expires_at % 300 == number && value == Some(vec![expires_at as u8; 100]));
        }
    }
    assert!(lost > 0, "some of the damage was seen");
}

/// A file is removed with its cache, unless it is in use or does not name its cache.
#[test]
fn the_files_of_caches_that_are_gone_are_removed() {
    let (Some(folder), Ok(caches)) = (folder(), tempfile::tempdir()) else { return };
    let path = caches.path().join("c");
    let state = caches.path().join("c.state");
    let layout = pool(1 << 20).layout(u64::MAX);
    let open = || {
        let claim = Claim::new(folder.path(), &path, 2, layout).unwrap();
        Arena::open(claim, MEMORY_ID, SALT).unwrap().0
    };
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    std::fs::write(&state, "").unwrap();
    drop(open());
    remove_abandoned(folder.path());
    assert_eq!(files(), 1, "the cache is there");
    std::fs::remove_file(&state).unwrap();
    let arena = open();
    remove_abandoned(folder.path());
    assert_eq!(files(), 1, "it is in use");
    drop(arena);
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let other = folder.path().join("granary-0123456789abcdef.2");
    std::fs::copy(&file, &other).unwrap();
    std::fs::write(folder.path().join("granary-short"), "GRANRAM1").unwrap();
    remove_abandoned(folder.path());
    assert_eq!(files(), 2, "those that are not what their name says are left");
    assert!(!file.exists() && other.exists());
}

#[test]
fn a_page_says_whose_it_is_or_nothing() {
    let layout = pool(1 << 20).layout(u64::MAX);
    let header = ArenaHeader { memory_id: MEMORY_ID, salt: SALT, checksum_seed: 1, boot_id: [7; 16], layout };
    let page = |path: &[u8]| [&header.encode()[..], &encode_path(path)].concat();
    assert_eq!(page(b"/a/b")[96..], *b"\x04\x00/a/b");
    assert_eq!(parse_path(&page(b"/a/b")), Some(&b"/a/b"[..]));
    let longest = vec![b'p'; PATH_BYTES_MAX];
    assert_eq!(parse_path(&page(&longest)), Some(&longest[..]));
    assert_eq!(parse_path(&page(&[longest, vec![b'p']].concat())), None);
    assert_eq!(parse_path(&page(b"")), None);
    assert_eq!(parse_path(&page(b"/a/b")[..101]), None);
    let mut other = page(b"/a/b");
    other[7] = b'0';
    assert_eq!(parse_path(&other), None);
}
