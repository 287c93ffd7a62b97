//! The small file beside the data: what the data is, and whether the last stop was clean.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `GRANARY1`, or `GRANARY2` where there are bytes from 96 on |
//! | 8..16 | XXH3-64 of the bytes from 16 on |
//! | 16..24 | block size |
//! | 24..32 | segment size |
//! | 32..40 | file size |
//! | 40..48 | instance: seeds the checksums; new whenever the content is given up |
//! | 48..56 | fingerprint of what the consumer stores; another one gives up the content |
//! | 56..64 | 0: open; 1: stopped cleanly; another number: open, with shared memory of this number |
//! | 64..80 | boot id of the kernel that the log was opened under |
//! | 80..88 | newest sequence number at that stop, or when the log was opened |
//! | 88..96 | salt: a number that the consumer's summary entries depend on; kept as long as the content |
//! | 96..104 | number of the consumer's file that the content depends on; missing: it depends on none |

use crate::files::{open_or_create, with_suffix};
use crate::geometry::Geometry;
use crate::lock::{Lock, lock};
use rustix::fs::{Mode, OFlags};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

const MAGIC: [u8; 8] = *b"GRANARY1";
const SIZE: usize = 96;

/// The magic of a log whose content depends on a file of the consumer.
const MAGIC_DEPENDENT: [u8; 8] = *b"GRANARY2";
pub(crate) const SIZE_MAX: usize = SIZE + 8;

/// Marks a clean stop. No shared memory has this number, or 0.
const CLEAN: u64 = 1;

/// The state file of the log whose files' names begin with `state_path`.
pub(crate) fn state_file_of(state_path: &Path) -> PathBuf {
    with_suffix(state_path, ".state")
}

/// The end of the previous process, as far as the log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastShutdown {
    /// Everything was sealed and synced.
    Clean,
    /// Open, or killed; the kernel that took its writes is still running.
    Killed,
    /// The machine went down: what was not synced may be lost, in any part.
    PowerLoss,
    /// The file is new, damaged, or of another log.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub geometry: Geometry,
    pub fingerprint: u64,
    pub instance: u64,
    pub salt: u64,
    /// 0: none.
    pub memory_id: u64,
    /// The number that the content depends on ([`Options::depends_on`](crate::Options::depends_on)); 0: none.
    pub depends_on: u64,
}

/// The content of a state file, as far as its log needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredState {
    pub shutdown: LastShutdown,
    pub instance: u64,
    pub salt: u64,
    /// A sequence number up to which everything was on the device.
    pub head: u64,
    /// The number of the shared memory that the log was open with; 0: none.
    pub memory_id: u64,
}

impl StoredState {
    pub const NOTHING: StoredState =
        StoredState { shutdown: LastShutdown::Unknown, instance: 0, salt: 0, head: 0, memory_id: 0 };
}

/// The open and locked state file.
pub(crate) struct StateFile {
    file: File,
    /// The file was invalidated and synced.
    is_invalidated: Cell<bool>,
}

/// Another process, or another cache of this process, has the file open.
#[derive(Debug, thiserror::Error)]
#[error("in use by another cache: give each a path of its own")]
pub(crate) struct InUse;

impl StateFile {
    pub fn open(path: &Path) -> io::Result<Result<Self, InUse>> {
        loop {
            let file = File::from(open_or_create(path, OFlags::RDWR, Mode::RUSR | Mode::WUSR)?);
            match lock(&file)? {
                Lock::InUse => return Ok(Err(InUse)),
                // The previous holder of the lock may have removed the file.
                Lock::Taken if file.metadata()?.nlink() == 0 => {}
                Lock::Taken => return Ok(Ok(Self { file, is_invalidated: Cell::new(false) })),
            }
        }
    }

    /// Makes writes fail from here on, or no longer.
    #[cfg(test)]
    pub fn fail(&mut self, state_path: &Path, fails: bool) {
        let mut options = File::options();
        let path = state_file_of(state_path);
        self.file = options.read(true).write(!fails).open(path).expect("it is there");
    }

    /// Reads the state of a log of this shape whose content depends on nothing or on `depends_on`.
    pub fn read(&self, geometry: &Geometry, fingerprint: u64, depends_on: u64) -> StoredState {
        let state = read_state(&self.file);
        let Some(State { instance, clean, memory_id, boot_id: boot, head, salt, .. }) =
            state.filter(|state| state.shape == shape_of(geometry) && state.fingerprint == fingerprint)
        else {
            return StoredState::NOTHING;
        };
        if state.is_some_and(|state| ![0, depends_on].contains(&state.depends_on)) {
            tracing::warn!("what the content depends on is lost: starting empty");
            return StoredState::NOTHING;
        }
        if clean {
            StoredState { shutdown: LastShutdown::Clean, instance, salt, head, memory_id: 0 }
        } else if boot == boot_id() && boot != [0; 16] {
            StoredState { shutdown: LastShutdown::Killed, instance, salt, head, memory_id }
        } else {
            StoredState { shutdown: LastShutdown::PowerLoss, instance, salt, head, memory_id: 0 }
        }
    }

    /// Whether the file holds a valid state, of any log.
    pub fn has_content(&self) -> bool {
        read_state(&self.file).is_some()
    }

    /// Whether the file holds bytes that are no valid state.
    pub fn is_damaged(&self) -> bool {
        !self.has_content() && !is_blank(&self.file).unwrap_or(false)
    }

    /// Whether the content was given up, while the log was open or by a loss of power.
    pub fn was_invalidated(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.len() > 0) && is_blank(&self.file).unwrap_or(false)
    }

    /// Records that everything up to segment `head` is on the device, and whether the log is open or was stopped
    /// cleanly (`LastShutdown::Clean`).
    pub fn write(&self, identity: &Identity, shutdown: LastShutdown, head: u64) -> io::Result<()> {
        let Identity { geometry, fingerprint, instance, salt, memory_id, depends_on } = *identity;
        let clean = shutdown == LastShutdown::Clean;
        let (shape, boot_id) = (shape_of(&geometry), boot_id());
        let state = State { shape, instance, fingerprint, clean, memory_id, boot_id, head, salt, depends_on };
        self.is_invalidated.set(false);
        self.file.write_all_at(&encode(&state), 0)?;
        self.file.sync_data()
    }

    /// A second hold of the lock, which is free once both are dropped.
    pub fn clone_lock(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Like [`invalidate`](Self::invalidate), for a file that may hold no valid state already.
    pub fn invalidate_if_any(&self) -> io::Result<()> {
        if self.has_content() { self.invalidate() } else { Ok(()) }
    }

    /// Makes the next open start empty, whatever happens.
    pub fn invalidate(&self) -> io::Result<()> {
        if !self.is_invalidated.get() {
            invalidate_file(&self.file)?;
            self.is_invalidated.set(true);
        }
        Ok(())
    }
}

/// Invalidates a state file. It keeps its space, so that a clean stop can write it on a full device; if it cannot be
/// overwritten, it is truncated, which needs no space.
pub(crate) fn invalidate_file(file: &File) -> io::Result<()> {
    let len = file.metadata()?.len().min(SIZE_MAX as u64) as usize;
    let in_place = file.write_all_at(&[0; SIZE_MAX][..len], 0).and_then(|()| file.sync_data());
    in_place.or_else(|_| {
        file.set_len(0)?;
        file.sync_data()
    })
}

/// Whether a state file is new or as [`invalidate_file`] leaves it.
pub(crate) fn is_blank(file: &File) -> io::Result<bool> {
    let mut bytes = [0; SIZE_MAX];
    let read = file.read_at(&mut bytes, 0)?;
    Ok(bytes[..read].iter().all(|byte| *byte == 0))
}

/// The content of the place of a state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peeked {
    /// There is no file.
    Nothing,
    /// A state file without a valid state: invalidated or damaged.
    Invalidated,
    /// The state of a log with this fingerprint.
    Log(u64),
    /// Another file.
    Foreign,
}

/// Looks at a file without touching it.
pub(crate) fn peek(path: &Path) -> io::Result<Peeked> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Peeked::Nothing),
        opened => opened?.take(SIZE_MAX as u64 + 1).read_to_end(&mut bytes)?,
    };
    let is_short = bytes.len() <= SIZE_MAX;
    Ok(match parse(&bytes).filter(|_| is_short) {
        Some(state) => Peeked::Log(state.fingerprint),
        // A loss of power can leave zeros.
        None if is_short && bytes.iter().all(|byte| *byte == 0) => Peeked::Invalidated,
        None if is_short && [MAGIC, MAGIC_DEPENDENT].iter().any(|magic| bytes.starts_with(magic)) => {
            Peeked::Invalidated
        }
        None => Peeked::Foreign,
    })
}

fn read_state(file: &File) -> Option<State> {
    let mut bytes = [0; SIZE_MAX];
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], len as u64) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    parse(&bytes[..len])
}

/// The decoded state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// Bytes of a block, of a segment, of the file.
    pub shape: [u64; 3],
    pub instance: u64,
    pub fingerprint: u64,
    pub clean: bool,
    /// 0 after a clean stop.
    pub memory_id: u64,
    pub boot_id: [u8; 16],
    pub head: u64,
    pub salt: u64,
    /// 0: nothing.
    pub depends_on: u64,
}

fn shape_of(geometry: &Geometry) -> [u64; 3] {
    [geometry.block_size() as u64, geometry.segment_bytes(), geometry.file_bytes()]
}

pub(crate) fn encode(state: &State) -> Vec<u8> {
    let mut bytes = vec![0; if state.depends_on == 0 { SIZE } else { SIZE_MAX }];
    bytes[..8].copy_from_slice(if state.depends_on == 0 { &MAGIC } else { &MAGIC_DEPENDENT });
    let [block, segment, file] = state.shape;
    let memory_id = if state.clean { CLEAN } else { state.memory_id };
    let numbers = [block, segment, file, state.instance, state.fingerprint, memory_id];
    for (number, at) in numbers.into_iter().zip((16..).step_by(8)) {
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    bytes[64..80].copy_from_slice(&state.boot_id);
    bytes[80..88].copy_from_slice(&state.head.to_le_bytes());
    bytes[88..96].copy_from_slice(&state.salt.to_le_bytes());
    if state.depends_on != 0 {
        bytes[SIZE..].copy_from_slice(&state.depends_on.to_le_bytes());
    }
    let sum = XxHash3_64::oneshot(&bytes[16..]);
    bytes[8..16].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// `None`: not a state file, or damaged. Bytes behind the state, left from when it was longer, are ignored.
pub(crate) fn parse(bytes: &[u8]) -> Option<State> {
    let is_dependent = bytes.starts_with(&MAGIC_DEPENDENT);
    let bytes = bytes.get(..if is_dependent { SIZE_MAX } else { SIZE })?;
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let is_whole =
        (is_dependent || bytes.starts_with(&MAGIC)) && u64_at(8) == XxHash3_64::oneshot(&bytes[16..]);
    is_whole.then(|| State {
        shape: [u64_at(16), u64_at(24), u64_at(32)],
        instance: u64_at(40),
        fingerprint: u64_at(48),
        clean: u64_at(56) == CLEAN,
        memory_id: Some(u64_at(56)).filter(|left| *left != CLEAN).unwrap_or(0),
        boot_id: bytes[64..80].try_into().expect("16 bytes"),
        head: u64_at(80),
        salt: u64_at(88),
        depends_on: if is_dependent { u64_at(SIZE) } else { 0 },
    })
}

/// The kernel's boot id, zeros where it has none (then a kill cannot be told from a power loss).
pub fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    match digits.len() {
        32 => u128::from_str_radix(&digits, 16).expect("32 digits").to_be_bytes(),
        _ => [0; 16],
    }
}

/// A number for shared memory that no earlier one had.
pub(crate) fn new_memory_id() -> u64 {
    random_number().max(CLEAN + 1)
}

/// A random number that cannot be guessed; no earlier instance had it.
pub(crate) fn random_number() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one((now.as_nanos() as u64, std::process::id()))
}
