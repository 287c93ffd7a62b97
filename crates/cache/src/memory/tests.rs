use super::*;
use crate::codec::StoredValue;
use crate::key::KeyHasher;
use crate::limits::MEMORY_CHUNK_BYTES_MIN;
use std::collections::HashMap;

/// The only shard of a pool.
fn memory(bytes: u64, entries: u64) -> Memory {
    let bound = (entries < u64::MAX).then_some(entries);
    own(Arc::new(Pool::of(bytes, bound, 1)), entries)
}

fn own(pool: Arc<Pool>, entries: u64) -> Memory {
    Memory::new(pool, entries, Role::Alone, KeyHasher::with_seed(0), 0, None)
}

fn get<'a>(memory: &'a mut Memory, key: &[u8]) -> Option<(Option<&'a [u8]>, u32)> {
    let key = KeyHasher::with_seed(0).key(key);
    let candidate = memory.candidate(key.hash())?;
    let stored = memory.get(key, candidate)?;
    Some((stored.value.map(|value| value.bytes), stored.expires_at))
}

#[test]
fn agrees_with_a_map_and_keeps_its_budget() {
    for (bytes, entries) in [(64 << 10, u64::MAX), (u64::MAX, 300), (5_000, u64::MAX), (1 << 30, u64::MAX)] {
        let mut memory = memory(bytes, entries);
        let mut map: HashMap<u64, (Option<Vec<u8>>, u32)> = HashMap::new();
        let mut random = 9u64;
        for step in 0..30_000u32 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let number = random % 700;
            let bytes_of_key = format!("k{number}").into_bytes();
            let key = KeyHasher::with_seed(0).key(&bytes_of_key);
            match random >> 32 & 7 {
                0 => {
                    memory.remove(key);
                    map.remove(&number);
                }
                1..4 => {
                    let value =
                        (random >> 40 & 7 != 0).then(|| vec![step as u8; (random >> 44 & 255) as usize]);
                    memory.insert(key, value.as_deref().map(StoredValue::raw), step, EntryState::Clean, 0);
                    map.insert(number, (value, step));
                }
                _ => {
                    if let Some(stored) = get(&mut memory, &bytes_of_key) {
                        let (value, expires_at) = &map[&number];
                        assert_eq!(stored, (value.as_deref(), *expires_at));
                    }
                }
            }
            assert!(
                memory.bytes_allocated() as u64 <= budget_with_slack(bytes),
                "{}",
                memory.bytes_allocated()
            );
            assert!(memory.len() as u64 <= entries);
            if step % 1000 == 0 {
                memory.validate();
            }
        }
        if bytes == 1 << 30 {
            assert_eq!(memory.len(), map.len(), "with room for all, all are there");
        }
        assert!(memory.len() > 10, "{bytes} bytes hold something: {}", memory.len());
    }
}

const ALL: ShrinkTarget = ShrinkTarget { shard: 0, pool: 0, protected: Protected::Nothing };

/// The budget plus the chunk that is kept for reuse.
fn budget_with_slack(bytes: u64) -> u64 {
    bytes.saturating_add(2 * MEMORY_CHUNK_BYTES_MIN as u64)
}

#[test]
fn entries_that_are_put_again_and_again_take_no_more_room() {
    let mut memory = memory(u64::MAX, 10_000);
    let keys: Vec<Vec<u8>> = (0..3000u32).map(|i| format!("key{i}").into_bytes()).collect();
    let value = [7; 100];
    let live: usize = keys.iter().map(|key| key.len() + value.len() + 30).sum();
    for round in 0..50u32 {
        // Some are put once: they stay among those that die.
        let step = if round == 0 { 1 } else { 3 };
        for key in keys.iter().step_by(step) {
            memory.insert(
                KeyHasher::with_seed(0).key(key),
                Some(StoredValue::raw(&value)),
                round,
                EntryState::Clean,
                0,
            );
        }
        assert_eq!(memory.len(), keys.len());
        let most = 2 * live + memory.table.allocation_size() + 3 * memory.next_chunk_bytes();
        assert!(memory.bytes_allocated() <= most, "{} bytes for {live}", memory.bytes_allocated());
        memory.validate();
    }
    for (i, key) in keys.iter().enumerate() {
        let expires_at = if i % 3 == 0 { 49 } else { 0 };
        assert_eq!(get(&mut memory, key), Some((Some(&value[..]), expires_at)));
    }
}

#[test]
fn a_lookup_marks_the_entry_it_finds_and_no_other() {
    let mut memory = memory(1 << 20, u64::MAX);
    let name = |i: u32| format!("key{i}").into_bytes();
    for i in 0..2000 {
        memory.insert(
            KeyHasher::with_seed(0).key(&name(i)),
            Some(StoredValue::raw(&[1; 20])),
            0,
            EntryState::Dirty,
            0,
        );
    }
    // Absent keys have candidates, too: other keys' entries.
    let strangers = (2000..20_000)
        .filter(|i| memory.candidate(KeyHasher::with_seed(0).key(&name(*i)).hash()).is_some())
        .count();
    assert!(strangers > 100, "{strangers}");
    (2000..20_000).for_each(|i| assert!(get(&mut memory, &name(i)).is_none()));
    for i in (0..2000).step_by(2) {
        get(&mut memory, &name(i)).unwrap();
    }
    let mut counts = Vec::new();
    memory.shrink(ALL, 0, |leaving| {
        counts.push((leaving.entry.key.to_vec(), leaving.reads));
        Eviction::Drop
    });
    counts.sort();
    let mut expected: Vec<_> = (0..2000).map(|i| (name(i), u8::from(i % 2 == 0))).collect();
    expected.sort();
    assert_eq!(counts, expected);
}

#[test]
fn what_is_read_outlives_what_is_not() {
    let mut memory = memory(64 << 10, u64::MAX);
    let hot: Vec<Vec<u8>> = (0..50).map(|i| format!("hot{i}").into_bytes()).collect();
    for key in &hot {
        memory.insert(
            KeyHasher::with_seed(0).key(key),
            Some(StoredValue::raw(&[1; 100])),
            0,
            EntryState::Clean,
            0,
        );
    }
    for i in 0..5_000 {
        memory.insert(
            KeyHasher::with_seed(0).key(format!("cold{i}").as_bytes()),
            Some(StoredValue::raw(&[2; 100])),
            0,
            EntryState::Clean,
            0,
        );
        get(&mut memory, &hot[i % 50]);
    }
    let kept = hot.iter().filter(|key| get(&mut memory, key).is_some()).count();
    assert!(kept >= 45, "{kept} of 50 hot entries are left");
}

/// Chunks are numbered with 16 bits.
#[test]
fn there_are_numbers_for_all_chunks() {
    let mut memory = memory(64 << 20, 1);
    let keys: Vec<[u8; 8]> = (0..140_000_u64).map(u64::to_le_bytes).collect();
    for key in &keys {
        memory.insert(
            KeyHasher::with_seed(0).key(key),
            Some(StoredValue::raw(&[7; 470])),
            0,
            EntryState::Dirty,
            0,
        );
    }
    assert!(memory.chunks.len() < CHUNKS_MAX);
    memory.validate();
    let found = keys.iter().filter(|key| get(&mut memory, &key[..]).is_some()).count();
    assert_eq!(found, keys.len());
    let pool = Pool::new(u64::MAX, None);
    assert!(pool.share() / (pool.chunk_bytes(u64::MAX) as u64) < CHUNKS_MAX as u64);
}

/// The entry put last is always there: an older one makes room, even if it was read.
#[test]
fn what_was_just_put_is_there() {
    for (bytes, entries, len) in [
        (1 << 20, u64::MAX, 10_000),
        (1 << 20, u64::MAX, 100),
        (1 << 20, u64::MAX, 500_000),
        (1 << 20, u64::MAX, 70_000),
        (u64::MAX, 1, 100),
        (u64::MAX, 100, 100),
    ] {
        let mut memory = memory(bytes, entries);
        let mut put = 0;
        for i in 0..20_000_u32 {
            let name = i.to_le_bytes();
            assert!(memory.insert(
                KeyHasher::with_seed(0).key(&name),
                Some(StoredValue::raw(&vec![1; len])),
                0,
                EntryState::Clean,
                0
            ));
            put += 1;
            assert!(get(&mut memory, &name).is_some(), "{bytes} {entries} {len}: {i}");
            assert!(memory.bytes_allocated() as u64 <= budget_with_slack(bytes));
            if i % 1000 == 0 {
                memory.validate();
            }
            if put * len > 64 << 20 {
                break;
            }
        }
        assert_eq!(memory.evictions().evicted + memory.len() as u64, put as u64, "all are there or counted");
        assert_eq!(memory.evictions().evicted_unfetched, 0);
        let too_long = vec![1; bytes.min(8 << 20) as usize / 2 + 1];
        assert_eq!(
            memory.insert(
                KeyHasher::with_seed(0).key(b"long"),
                Some(StoredValue::raw(&too_long)),
                0,
                EntryState::Clean,
                0
            ),
            bytes > 16 << 20
        );
    }
}

/// Others may evict dirty entries at any moment; an entry that was put a moment ago stays.
#[test]
fn what_was_put_a_moment_ago_does_not_leave_before_older_entries() {
    let mut memory = memory(1 << 20, u64::MAX);
    let name = |i: u32| format!("key{i}").into_bytes();
    for i in 0..20_000 {
        memory.insert(
            KeyHasher::with_seed(0).key(&name(i)),
            Some(StoredValue::raw(&[1; 1000])),
            0,
            EntryState::Dirty,
            0,
        );
        let aim = ShrinkTarget { shard: 900 << 10, pool: 900 << 10, protected: Protected::Fresh };
        memory.shrink(aim, 0, |_| Eviction::Drop);
        assert!(memory.bytes_allocated() <= 900 << 10);
        // All recent puts are there; then everything is read.
        let all_is_there = (i.saturating_sub(60)..=i).all(|i| get(&mut memory, &name(i)).is_some());
        assert!(all_is_there, "{i}");
        (0..i).for_each(|i| _ = get(&mut memory, &name(i)));
        if i > 3000 {
            break;
        }
    }
}

#[test]
fn what_leaves_at_its_end_or_unread_is_counted_apart() {
    let mut memory = memory(1 << 20, u64::MAX);
    for i in 0..100_u32 {
        let expires_at = if i < 40 { 10 } else { 0 };
        memory.insert(
            KeyHasher::with_seed(0).key(&i.to_le_bytes()),
            Some(StoredValue::raw(&[1; 100])),
            expires_at,
            EntryState::Dirty,
            0,
        );
    }
    (0..10_u32).chain(40..60).for_each(|i| assert!(get(&mut memory, &i.to_le_bytes()).is_some()));
    memory.shrink(ALL, 11, |_| Eviction::Drop);
    let expected = EvictionCounts { evicted: 60, evicted_unfetched: 40, expired: 40, expired_unfetched: 30 };
    assert_eq!(memory.evictions(), expected);
}

/// An expired entry leaves, however often it was read.
#[test]
fn what_has_expired_is_not_kept_for_having_been_read() {
    let mut memory = memory(192 << 10, u64::MAX);
    let insert = |memory: &mut Memory, i: u32, expires_at, now| {
        let bytes = i.to_le_bytes();
        let key = KeyHasher::with_seed(0).key(&bytes);
        memory.insert(key, Some(StoredValue::raw(&[1; 100])), expires_at, EntryState::Dirty, now);
    };
    (0..1000).for_each(|i| insert(&mut memory, i, 10, 0));
    for _ in 0..2 {
        (0..1000u32).for_each(|i| assert!(get(&mut memory, &i.to_le_bytes()).is_some(), "{i} fits"));
    }
    (1000..1800).for_each(|i| insert(&mut memory, i, 0, 11));
    let there = (1000..1800u32).filter(|i| get(&mut memory, &i.to_le_bytes()).is_some()).count();
    assert_eq!(there, 800);
}

/// A shard that takes far more than its share has more chunks than there are numbers for.
#[test]
fn numbers_of_chunks_do_not_come_round() {
    for kept in [EntryState::Dirty, EntryState::Clean, EntryState::Readmitted] {
        let pool = Arc::new(Pool::of(256 << 20, None, 16 << 10));
        let mut memory = own(pool, u64::MAX);
        let mut last = HashMap::new();
        // Two thirds are put once, the others over and over.
        for i in 0..3 * CHUNKS_MAX as u64 {
            let number = if i % 3 == 0 { i % 999 } else { i };
            let bytes = number.to_le_bytes();
            let value = [&i.to_le_bytes()[..], &[0; 400]].concat();
            let is_kept = memory.insert(
                KeyHasher::with_seed(0).key(&bytes),
                Some(StoredValue::raw(&value)),
                0,
                kept,
                0,
            );
            assert!(is_kept || kept != EntryState::Clean, "others leave for a copy");
            if is_kept {
                _ = last.insert(number, i)
            } else {
                _ = last.remove(&number)
            };
        }
        memory.validate();
        assert!(memory.chunks.len() + 2 >= CHUNKS_MAX, "{} chunks", memory.chunks.len());
        for (number, i) in last {
            let found = get(&mut memory, &number.to_le_bytes());
            let value = found.map(|(value, _)| u64::from_le_bytes(value.unwrap()[..8].try_into().unwrap()));
            assert!(value == Some(i) || value.is_none() && kept == EntryState::Clean, "{value:?} for {i}");
        }
    }
}
