//! The bytes of a cache on disk: what is written today is what the golden files hold, and these are
//! served. See docs/format.md.

#[path = "../../log/tests/common/golden.rs"]
mod golden;
#[path = "common/room.rs"]
mod room;
#[path = "../../log/tests/common/skip.rs"]
mod skip;

use golden::{INSTANCE, change_state, compare, fix_boot_id, fix_instance, lose_power, read, without_boot_id};
use granary_cache::admission::Admission;
use granary_cache::{Cache, Compression, Entry, FlashOptions, Io, Options, Outcome, PowerLoss, testing};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

const NOW: u32 = 1_700_000_000;
const SUFFIXES: [&str; 4] = ["bin", "state", "journal.0", "journal.1"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// 64 KiB: four segments of 32 blocks with summaries, or 16 of 8 blocks without.
fn options(folder: &Path, shape: &str) -> Options {
    let mut flash = FlashOptions::new(folder.join("c"), 64 << 10);
    flash.block_size = 512;
    flash.write_buffer_size = if shape == "summaries" { 16 << 10 } else { 4 << 10 };
    flash.fingerprint = 0x00C0_FFEE;
    flash.hash_seed = Some(0x5EED);
    Options { flash: Some(flash), ..Options::default() }
}

type Stop = fn(Cache);
type Stored = (&'static [u8], Option<Vec<u8>>, u32);

/// The entries that are on the device when the cache is killed.
fn first() -> Vec<Stored> {
    vec![
        (b"apple", Some(b"red".to_vec()), 0),
        (b"", Some(b"the empty key".to_vec()), NOW + 60),
        (b"nothing", None, NOW + 60),
        (b"empty value", Some(Vec::new()), 0),
        (b"past", Some(b"expired".to_vec()), NOW - 1),
        (b"pear", Some(b"green".to_vec()), 0),
        (b"plum", Some(b"blue".to_vec()), 0),
        // Over three blocks, with lengths of two bytes.
        (&[b'k'; 200], Some(vec![b'v'; 900]), 0),
        (b"apple", Some(b"yellow".to_vec()), 7 + NOW),
    ]
}

/// The entries put last: after a kill they are gone, and so are their older versions.
fn second() -> Vec<Stored> {
    vec![(b"pear", Some(b"brown".to_vec()), 0), (b"cherry", Some(b"black".to_vec()), 0)]
}

fn put(cache: &Cache, entries: &[Stored]) {
    let entries: Vec<Entry<'_>> = entries
        .iter()
        .map(|(key, value, expires_at)| Entry {
            key: cache.key(key),
            value: value.as_deref(),
            expires_at: *expires_at,
        })
        .collect();
    cache.put_many(&entries);
}

fn fill(options: &Options) -> Cache {
    drop(Cache::open(options.clone()).unwrap());
    fix_instance(&options.flash.as_ref().unwrap().path.with_extension("state"));
    let cache = Cache::open(options.clone()).unwrap();
    put(&cache, &first());
    cache.flush().unwrap();
    cache.delete_many(&[cache.key(b"plum")]);
    cache.flush().unwrap();
    put(&cache, &second());
    cache.delete_many(&[cache.key(b"empty value")]);
    cache
}

fn get(cache: &Cache, key: &[u8]) -> Option<(Option<Vec<u8>>, u32)> {
    let mut found = None;
    cache.get_many(&mut Io::new(), &[cache.key(key)], NOW, |_, outcome| {
        found = match outcome {
            Outcome::Hit { value, expires_at } => Some((Some(value.to_vec()), expires_at)),
            Outcome::Negative { expires_at } => Some((None, expires_at)),
            Outcome::Expired { value, expires_at } => Some((value.map(<[u8]>::to_vec), expires_at)),
            Outcome::Miss => None,
        };
    });
    found
}

/// Puts the golden files where the cache looks for its own.
fn unpack(options: &Options, name: &str) -> PathBuf {
    unpack_all(options, name, &SUFFIXES)
}

fn unpack_all(options: &Options, name: &str, suffixes: &[&str]) -> PathBuf {
    let path = &options.flash.as_ref().unwrap().path;
    for suffix in suffixes {
        std::fs::write(path.with_extension(suffix), read(&folder(), &format!("{name}.{suffix}.txt")))
            .unwrap();
    }
    path.with_extension("state")
}

#[test]
fn what_is_written_is_what_was_agreed() {
    for shape in ["summaries", "short"] {
        let stops: [(&str, Stop); 2] = [("killed", testing::abandon), ("clean", drop)];
        for (name, stop) in stops {
            let temporary = tempfile::tempdir().unwrap();
            let options = options(temporary.path(), shape);
            stop(fill(&options));
            for suffix in SUFFIXES {
                let path = options.flash.as_ref().unwrap().path.with_extension(suffix);
                let bytes =
                    if suffix == "state" { without_boot_id(&path) } else { std::fs::read(&path).unwrap() };
                compare(&folder(), &format!("{shape}-{name}.{suffix}.txt"), &bytes);
            }
        }
    }
}

#[test]
fn what_was_agreed_is_served() {
    for shape in ["summaries", "short"] {
        for name in ["clean", "killed"] {
            let temporary = tempfile::tempdir().unwrap();
            let options = options(temporary.path(), shape);
            let state = unpack(&options, &format!("{shape}-{name}"));
            let killed = name == "killed";
            if killed && fix_boot_id(&state).is_none() {
                skip::skipped("no boot id: what was killed is not served");
                continue;
            }
            let cache = Cache::open(options).unwrap();
            let mut expected = first();
            // Except the older version of the apple, deleted entries, and the pear, which changed later.
            expected.retain(|(key, value, _)| {
                !matches!(*key, b"plum" | b"empty value" | b"pear") && value.as_deref() != Some(b"red")
            });
            if !killed {
                expected.extend(second());
            }
            for (key, value, expires_at) in &expected {
                let found = get(&cache, key);
                let key = String::from_utf8_lossy(key);
                assert_eq!(found, Some((value.clone(), *expires_at)), "{shape}-{name}: {key}");
            }
            let gone: &[&[u8]] = if killed {
                &[b"plum", b"empty value", b"pear", b"cherry"]
            } else {
                &[b"plum", b"empty value"]
            };
            for key in gone {
                assert_eq!(get(&cache, key), None, "{shape}-{name}: {}", String::from_utf8_lossy(key));
            }
            assert_eq!(cache.stats().entries, expected.len() as u64, "{shape}-{name}");
            testing::validate(&cache);
        }
    }
}

/// A file with one dictionary, written by docs/format.md; the next dictionary will be number 8.
fn dictionaries() -> Vec<u8> {
    const FILE: u64 = 0x0D1C_0D1C_0D1C_0D1C;
    let text: String = (0..40).map(|i| format!("the {i}th name of a city, ")).collect();
    let mut file = b"GRANDIC2".to_vec();
    file.extend(FILE.to_le_bytes());
    file.extend(8u64.to_le_bytes());
    file.extend(XxHash3_64::oneshot(&file).to_le_bytes());
    let mut header = 7u32.to_le_bytes().to_vec();
    header.extend((text.len() as u32).to_le_bytes());
    header.extend(0u64.to_le_bytes());
    let checksum =
        XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot_with_seed(FILE, &header), text.as_bytes());
    file.extend(header);
    file.extend(checksum.to_le_bytes());
    file.extend(text.as_bytes());
    file
}

/// Values for each codec: short ones of one block, and one of several blocks that is the same for all codecs.
fn compressible(codec: Compression) -> Vec<Stored> {
    let name = |i: usize| format!("{codec}: the {i}th name of a city, the {}th name of a city, ", i + 1);
    vec![
        (if codec == Compression::Zstd { b"zstd" } else { b"lz4" }, Some(name(30).into_bytes()), 0),
        (
            if codec == Compression::Zstd { b"long" } else { b"long lz4" },
            Some(name(3).repeat(if codec == Compression::Zstd { 3000 } else { 3 }).into_bytes()),
            0,
        ),
        (if codec == Compression::Zstd { b"short" } else { b"short lz4" }, Some(b"a city, ".to_vec()), 0),
    ]
}

const CODECS: [Compression; 2] = [Compression::Zstd, Compression::Lz4];

#[test]
fn compressed_values_are_what_was_agreed() {
    let all = [&SUFFIXES[..], &["dictionaries"]].concat();
    let temporary = tempfile::tempdir().unwrap();
    let mut options = options(temporary.path(), "summaries");
    let path = options.flash.as_ref().unwrap().path.clone();
    options.compression = CODECS[0];
    std::fs::write(path.with_extension("dictionaries"), dictionaries()).unwrap();
    drop(Cache::open(options.clone()).unwrap());
    fix_instance(&path.with_extension("state"));
    for codec in CODECS {
        options.compression = codec;
        let cache = Cache::open(options.clone()).unwrap();
        put(&cache, &compressible(codec));
        cache.close().unwrap();
    }
    for suffix in &all {
        let path = path.with_extension(suffix);
        let bytes = if *suffix == "state" { without_boot_id(&path) } else { std::fs::read(&path).unwrap() };
        compare(&folder(), &format!("compressed-clean.{suffix}.txt"), &bytes);
    }
    unpack_all(&options, "compressed-clean", &all);
    options.compression = Compression::None;
    let cache = Cache::open(options).unwrap();
    for (key, value, expires_at) in CODECS.into_iter().flat_map(compressible) {
        assert_eq!(get(&cache, key), Some((value, expires_at)), "{}", String::from_utf8_lossy(key));
    }
    assert_eq!(cache.stats().values_undecodable, 0);
}

/// After a loss of power, with another fingerprint or another number of hash bits, nothing is served.
#[test]
fn what_cannot_be_trusted_is_not_served() {
    type Change = fn(&mut FlashOptions);
    let changes: [(&str, Change); 4] = [
        ("summaries-killed", |flash| lose_power(&flash.path.with_extension("state"))),
        ("summaries-clean", |flash| flash.fingerprint += 1),
        ("summaries-clean", |flash| flash.file_size *= 2),
        ("summaries-clean", |flash| std::fs::write(flash.path.with_extension("state"), b"").unwrap()),
    ];
    for (i, (name, change)) in changes.into_iter().enumerate() {
        let temporary = tempfile::tempdir().unwrap();
        let mut options = options(temporary.path(), "summaries");
        let state = unpack(&options, name);
        let _ = fix_boot_id(&state);
        change(options.flash.as_mut().unwrap());
        let cache = Cache::open(options).unwrap();
        assert_eq!(cache.stats().entries, 0, "change {i}");
        assert_eq!(get(&cache, b"apple"), None, "change {i}");
    }
}

/// A cache whose fingerprint were another one after an upgrade would start empty.
#[test]
fn fingerprints_are_what_was_agreed() {
    let fingerprints = |partitions, admission, power_loss| {
        let temporary = tempfile::tempdir().unwrap();
        let mut options = options(temporary.path(), "short");
        let flash = options.flash.as_mut().unwrap();
        (flash.partitions, flash.admission, flash.power_loss) = (partitions, admission, power_loss);
        drop(Cache::open(options).unwrap());
        let names = ["c.state", "c.partition.1.state"].into_iter().take(partitions as usize);
        let of = |name| {
            u64::from_le_bytes(
                std::fs::read(temporary.path().join(name)).unwrap()[48..56].try_into().unwrap(),
            )
        };
        names.map(of).collect::<Vec<_>>()
    };
    assert_eq!(fingerprints(1, Admission::All, PowerLoss::StartEmpty), [0xC0FF_EE14]);
    assert_eq!(fingerprints(1, Admission::All, PowerLoss::ServeOlder), [0x8000_0000_C0FF_EE14]);
    assert_eq!(
        fingerprints(2, Admission::Reuse, PowerLoss::ServeOlder),
        [0x8000_0001_C0FF_EE55, 0x8000_0001_C0FF_EE56]
    );
}

/// Changes the header of a RAM tier's file and makes its checksum fit again.
fn change_memory(path: &Path, change: impl FnOnce(&mut [u8])) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    let sum = XxHash3_64::oneshot(&bytes[16..96]);
    bytes[8..16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
}

/// The RAM tier's file, with entries that are on no device yet: in write buffers, too, or in RAM only.
#[test]
fn a_ram_tier_that_outlives_its_process_is_what_was_agreed() {
    for admission in [Admission::All, Admission::Reuse] {
        if !room::has_room(1 << 20) {
            return skip::skipped("no room in /dev/shm: RAM tiers die with their processes");
        }
        let (memory, temporary) = (tempfile::tempdir_in("/dev/shm").unwrap(), tempfile::tempdir().unwrap());
        let mut options = options(temporary.path(), "summaries");
        options.memory_bytes = 64 << 10;
        let flash = options.flash.as_mut().unwrap();
        (flash.admission, flash.memory_folder) = (admission.clone(), Some(memory.path().into()));
        let path = flash.path.clone();
        let (state, name) = (path.with_extension("state"), format!("ram-{admission}"));
        drop(Cache::open(options.clone()).unwrap());
        fix_instance(&state);
        testing::abandon(Cache::open(options.clone()).unwrap());
        let file = std::fs::read_dir(memory.path()).unwrap().next().unwrap().unwrap().path();
        // The seed of the entries' checksums.
        change_memory(&file, |bytes| bytes[32..40].copy_from_slice(&INSTANCE.to_le_bytes()));
        let cache = Cache::open(options.clone()).unwrap();
        put(&cache, &first());
        get(&cache, b"pear");
        cache.delete_many(&[cache.key(b"plum")]);
        testing::abandon(cache);
        // What differs from start to start: the number of the memory, the boot id, and the path of the cache.
        let id = INSTANCE.to_le_bytes();
        change_state(&state, |bytes| bytes[56..64].copy_from_slice(&id));
        change_memory(&file, |bytes| {
            bytes[16..24].copy_from_slice(&id);
            bytes[40..56].fill(0);
            bytes[96..4096].fill(0);
        });
        for suffix in SUFFIXES {
            let path = path.with_extension(suffix);
            let bytes =
                if suffix == "state" { without_boot_id(&path) } else { std::fs::read(&path).unwrap() };
            compare(&folder(), &format!("{name}.{suffix}.txt"), &bytes);
        }
        compare(&folder(), &format!("{name}.ram.txt"), &std::fs::read(&file).unwrap());
        let boot_id = std::fs::read(&state).unwrap()[64..80].to_vec();
        change_memory(&file, |bytes| bytes[40..56].copy_from_slice(&boot_id));
        let cache = Cache::open(options).unwrap();
        let mut expected = first();
        expected.retain(|(key, value, _)| *key != b"plum" && value.as_deref() != Some(b"red"));
        for (key, value, expires_at) in &expected {
            let key_text = String::from_utf8_lossy(key);
            assert_eq!(get(&cache, key), Some((value.clone(), *expires_at)), "{name}: {key_text}");
        }
        assert_eq!((get(&cache, b"plum"), cache.stats().entries), (None, expected.len() as u64), "{name}");
        testing::validate(&cache);
    }
}
