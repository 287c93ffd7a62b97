//! Keys and values of the caller's types.

mod common;

use common::options;
use granary_cache::{Cache, CodecError, Decode, Encode, Error, Plain, Refusal, TypedCache};
use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn open(folder: &tempfile::TempDir) -> Cache {
    Cache::open(options(folder.path(), 64, 64, 16 << 10)).unwrap()
}

#[test]
fn it_is_a_map_that_outlives_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let cache: TypedCache<str, i64> = TypedCache::new(open(&folder));
    let mut map = HashMap::new();
    for i in 0..3_000i64 {
        let key = format!("key {}", i % 700);
        if i % 5 == 4 {
            cache.remove(&key);
            map.remove(&key);
        } else {
            cache.insert(&key, &-i).unwrap();
            map.insert(key, -i);
        }
    }
    let check = |cache: &TypedCache<str, i64>| {
        let keys: Vec<String> = (0..700).map(|i| format!("key {i}")).collect();
        let together = cache.get_many(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        for (key, found) in keys.iter().zip(together) {
            assert_eq!(cache.get(key), map.get(key).copied(), "{key}");
            assert_eq!(found, map.get(key).copied(), "{key}");
            assert_eq!(cache.contains(key), map.contains_key(key), "{key}");
        }
        assert_eq!(cache.len(), map.len() as u64);
        assert_eq!(cache.undecodable(), 0);
    };
    check(&cache);
    cache.close().unwrap();
    let cache = TypedCache::new(open(&folder));
    check(&cache);
    cache.clear().unwrap();
    assert!(cache.is_empty() && cache.get("key 1").is_none());
}

#[test]
fn what_is_not_kept_is_said_and_leaves_nothing_older() {
    let folder = tempfile::tempdir().unwrap();
    let cache: TypedCache<u32, Vec<u8>> = TypedCache::new(open(&folder));
    let (short, long) = (vec![1; 10], vec![2; 1 << 20]);
    assert!(cache.insert_many(&[(&1, &short), (&2, &short), (&3, &short)]).is_empty());
    let refused = cache.insert_many(&[(&1, &short), (&2, &long), (&3, &short)]);
    assert!(matches!(refused[..], [(1, Error::Refused(Refusal::TooLong))]), "{refused:?}");
    assert_eq!(cache.get_many(&[&1, &2, &3, &4]), [Some(short.clone()), None, Some(short.clone()), None]);
    assert!(matches!(cache.insert(&1, &long), Err(Error::Refused(Refusal::TooLong))));
    assert_eq!(cache.get(&1), None);
}

/// A value that must be even.
#[derive(Debug, PartialEq)]
struct Even(u64);

impl Encode<Even> for Plain {
    fn encode<'a>(value: &'a Even, room: &'a mut Vec<u8>) -> Result<&'a [u8], CodecError> {
        if !value.0.is_multiple_of(2) {
            return Err(CodecError::new(format!("{} is odd", value.0)));
        }
        Plain::encode(&value.0, room)
    }
}

impl Decode<Even> for Plain {
    fn decode(bytes: &[u8]) -> Result<Even, CodecError> {
        let number: u64 = Plain::decode(bytes)?;
        if number.is_multiple_of(2) { Ok(Even(number)) } else { Err(CodecError::new("odd")) }
    }
}

#[test]
fn what_does_not_encode_is_an_error_and_what_does_not_decode_is_a_miss() {
    let folder = tempfile::tempdir().unwrap();
    let cache: TypedCache<u64, Even> = TypedCache::new(open(&folder));
    cache.insert(&1, &Even(2)).unwrap();
    let error = cache.insert(&1, &Even(3)).unwrap_err();
    assert_eq!(error.to_string(), "cannot encode the value: 3 is odd");
    assert_eq!(cache.get(&1), None);
    cache.insert(&1, &Even(2)).unwrap();
    let refused = cache.insert_many(&[(&1, &Even(5)), (&2, &Even(6))]);
    assert!(matches!(refused[..], [(0, Error::Encode { what: "value", .. })]), "{refused:?}");
    assert_eq!(cache.get_many(&[&1, &2]), [None, Some(Even(6))]);
    // In a batch, a value that is not kept removes the key's older value; a newer value is kept.
    let refused =
        cache.insert_many(&[(&1, &Even(2)), (&2, &Even(8)), (&1, &Even(5)), (&2, &Even(7)), (&2, &Even(4))]);
    let places: Vec<usize> = refused.iter().map(|(place, _)| *place).collect();
    assert_eq!((cache.get_many(&[&1, &2]), places), (vec![None, Some(Even(4))], vec![2, 3]));
    // The made value is returned, though it is not kept.
    assert_eq!(cache.get_or_insert_with(&9, || Ok::<_, ()>(Even(7))), Ok(Even(7)));
    assert!(!cache.contains(&9) && cache.undecodable() == 0);

    let numbers: TypedCache<u64, u64> = TypedCache::new(cache.into_inner());
    numbers.insert(&3, &7).unwrap();
    let cache: TypedCache<u64, Even> = TypedCache::new(numbers.into_inner());
    assert_eq!((cache.get(&3), cache.undecodable()), (None, 1));
    assert_eq!(cache.get_or_insert_with(&3, || Ok::<_, ()>(Even(8))), Ok(Even(8)));
    assert_eq!(cache.get(&3), Some(Even(8)));
}

#[test]
fn the_time_to_live_is_that_of_the_cache_or_that_of_the_value() {
    let folder = tempfile::tempdir().unwrap();
    let cache: TypedCache<str, u8> = TypedCache::new(open(&folder)).time_to_live(Duration::from_secs(1));
    cache.insert("short", &1).unwrap();
    cache.insert_with_ttl("long", &2, Duration::from_secs(3_600)).unwrap();
    assert_eq!(cache.get_or_insert_with("made", || Ok::<_, ()>(3)), Ok(3));
    let hour = Duration::from_secs(3_600);
    assert_eq!(cache.get_or_insert_with_ttl("made for long", hour, || Ok::<_, ()>(4)), Ok(4));
    std::thread::sleep(Duration::from_millis(2_100));
    let keys = ["short", "long", "made", "made for long"];
    assert_eq!(cache.get_many(&keys), [None, Some(2), None, Some(4)]);
    cache.remove_many(&["long", "nothing", "made for long"]);
    assert_eq!(cache.get_many(&keys), [None; 4]);
}

#[test]
fn one_thread_makes_a_value_for_all_that_want_it() {
    let cache: TypedCache<u64, String> = TypedCache::new(Cache::builder().memory(1 << 20).open().unwrap());
    let (made, together) = (AtomicU64::new(0), Barrier::new(6));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for key in 0..50u64 {
                    together.wait();
                    let value = cache.get_or_insert_with(&key, || {
                        made.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(2));
                        Ok::<_, ()>(key.to_string())
                    });
                    assert_eq!(value, Ok(key.to_string()));
                }
            });
        }
    });
    assert_eq!(made.into_inner(), 50);
}

/// A value that looks something up while it is decoded.
struct Nested(u64);

thread_local! {
    static NUMBERS: std::cell::RefCell<Option<TypedCache<u64, u64>>> = const { std::cell::RefCell::new(None) };
}

impl Encode<Nested> for Plain {
    fn encode<'a>(value: &'a Nested, room: &'a mut Vec<u8>) -> Result<&'a [u8], CodecError> {
        Plain::encode(&value.0, room)
    }
}

impl Decode<Nested> for Plain {
    fn decode(bytes: &[u8]) -> Result<Nested, CodecError> {
        let key: u64 = Plain::decode(bytes)?;
        let value = NUMBERS.with_borrow(|numbers| numbers.as_ref().and_then(|numbers| numbers.get(&key)));
        value.map(Nested).ok_or_else(|| CodecError::new("there is no such number"))
    }
}

#[test]
fn a_format_may_use_caches_itself() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let numbers: TypedCache<u64, u64> = TypedCache::new(open(&folders[0]));
    numbers.insert(&5, &55).unwrap();
    numbers.flush().unwrap();
    NUMBERS.set(Some(numbers));
    let cache: TypedCache<str, Nested> = TypedCache::new(open(&folders[1]));
    cache.insert("five", &Nested(5)).unwrap();
    cache.flush().unwrap();
    assert_eq!(cache.get("five").map(|nested| nested.0), Some(55));
}

#[cfg(feature = "serde")]
#[test]
fn whatever_implements_serdes_traits() {
    use granary_cache::Postcard;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
    struct User {
        name: String,
        roles: Vec<u16>,
        parent: Option<Box<User>>,
    }

    #[derive(Serialize)]
    struct Asked<'a> {
        tenant: u32,
        name: &'a str,
    }

    let folder = tempfile::tempdir().unwrap();
    let cache: TypedCache<Asked<'_>, User, Postcard> = TypedCache::new(open(&folder));
    let ann = User { name: "Ann".into(), roles: vec![1, 300], parent: None };
    let bob = User { name: "Bob".into(), roles: vec![], parent: Some(Box::new(ann.clone())) };
    cache.insert(&Asked { tenant: 1, name: "bob" }, &bob).unwrap();
    cache.insert(&Asked { tenant: 2, name: "bob" }, &ann).unwrap();
    assert_eq!(cache.get(&Asked { tenant: 1, name: "bob" }), Some(bob));
    assert_eq!(cache.get(&Asked { tenant: 2, name: "bob" }), Some(ann));
    assert_eq!(cache.get(&Asked { tenant: 1, name: "ann" }), None);

    // Trailing bytes make a value invalid.
    let bytes: TypedCache<u8, Vec<u8>> = TypedCache::new(cache.into_inner());
    bytes.insert(&7, &vec![1, 2]).unwrap();
    let cache: TypedCache<u8, u8, Postcard> = TypedCache::new(bytes.into_inner());
    assert_eq!((cache.get(&7), cache.undecodable()), (None, 1));
}
