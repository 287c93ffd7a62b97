//! The dictionaries of a cache, oldest first, and the file that has them.
//!
//! A dictionary is on the device before the first value is compressed with it, and named by a number that is never given
//! again. docs/format.md, "Dictionaries for compression", has the file.

use crate::limits::{CODEC_VERSIONS_MAX, DICTIONARY_BYTES_MAX, ZSTD_LEVEL};
use granary_log::sync::sync::{Arc, Mutex, RwLock};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use xxhash_rust::xxh3::xxh3_64_with_seed;
use zstd_safe::{CDict, DDict};

/// What the file begins with.
const MAGIC: &[u8; 8] = b"GRANDICT";

/// What each dictionary in the file begins with: number (u32), length (u32), checksum (u64).
const HEADER_SIZE: usize = 16;

/// The file of dictionaries of a cache with this state path.
pub(crate) fn path_of(state_path: &Path) -> PathBuf {
    let mut path = state_path.to_owned().into_os_string();
    path.push(".dictionaries");
    path.into()
}

/// A dictionary.
pub(super) struct Version {
    /// Its number; never 0.
    pub id: u32,
    bytes: Vec<u8>,
    /// Made for the newest one, when it is first needed.
    encoding: OnceLock<Option<CDict<'static>>>,
    decoding: OnceLock<Option<DDict<'static>>>,
}

impl Version {
    pub fn new(id: u32, bytes: Vec<u8>) -> Self {
        Self { id, bytes, encoding: OnceLock::new(), decoding: OnceLock::new() }
    }

    pub fn for_encoding(&self) -> Option<&CDict<'static>> {
        self.encoding.get_or_init(|| CDict::try_create(&self.bytes, ZSTD_LEVEL)).as_ref()
    }

    pub fn for_decoding(&self) -> Option<&DDict<'static>> {
        self.decoding.get_or_init(|| DDict::try_create(&self.bytes)).as_ref()
    }

    /// Its last bytes, so many at most, which are those that are met most.
    pub fn tail(&self, len: usize) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(len)..]
    }

    fn bytes_allocated(&self) -> usize {
        let encoding = self.encoding.get().and_then(Option::as_ref).map_or(0, CDict::sizeof);
        let decoding = self.decoding.get().and_then(Option::as_ref).map_or(0, DDict::sizeof);
        self.bytes.capacity() + encoding + decoding
    }
}

/// The dictionaries of a cache.
pub(super) struct Versions {
    /// Where they lie; `None`: in RAM only.
    path: Option<PathBuf>,
    /// The last is what values are compressed with.
    list: RwLock<Vec<Arc<Version>>>,
}

impl Versions {
    /// With those that the file has.
    pub fn open(path: Option<PathBuf>) -> Self {
        let found = path.as_deref().map_or_else(Vec::new, |path| match std::fs::read(path) {
            Ok(bytes) => parse(&bytes).unwrap_or_else(|| {
                let path = path.display();
                tracing::warn!(%path, "damaged: what was compressed with a dictionary that is lost is not found");
                Vec::new()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                let path = path.display();
                tracing::warn!(%path, %error, "cannot be read: what was compressed with its dictionaries is not found");
                Vec::new()
            }
        });
        Self { path, ..Self::of(found) }
    }

    /// These, in RAM only.
    pub fn of(versions: Vec<Version>) -> Self {
        Self { path: None, list: RwLock::new(versions.into_iter().map(Arc::new).collect()) }
    }

    /// What values are compressed with.
    pub fn current(&self) -> Option<Arc<Version>> {
        self.list.read().expect("no panic under the lock").last().cloned()
    }

    pub fn get(&self, id: u32) -> Option<Arc<Version>> {
        let list = self.list.read().expect("no panic under the lock");
        list.iter().rev().find(|version| version.id == id).cloned()
    }

    pub fn len(&self) -> usize {
        self.list.read().expect("no panic under the lock").len()
    }

    pub fn ids(&self) -> Vec<u32> {
        self.list.read().expect("no panic under the lock").iter().map(|version| version.id).collect()
    }

    /// Adds a dictionary, which is the current one when it is on the device.
    ///
    /// # Errors
    /// It cannot be written, or there are too many: nothing has changed.
    pub fn add(&self, bytes: Vec<u8>) -> io::Result<()> {
        let mut versions = self.list.read().expect("no panic under the lock").clone();
        if versions.len() >= CODEC_VERSIONS_MAX {
            return Err(io::Error::other("there are too many that are in use"));
        }
        let mut ids = std::iter::repeat_with(|| fastrand::u32(1..));
        let id = ids.find(|id| versions.iter().all(|version| version.id != *id)).unwrap_or(1);
        // It costs much to compress with: only the newest one has that.
        if let Some(last) = versions.last_mut() {
            *last = Arc::new(Version::new(last.id, last.bytes.clone()));
        }
        versions.push(Arc::new(Version::new(id, bytes)));
        self.replace(versions)
    }

    /// Forgets those that nobody uses. The last two stay: somebody may be about to use them.
    ///
    /// # Errors
    /// The file cannot be written: nothing has changed.
    pub fn retire(&self, mut is_used: impl FnMut(u32) -> bool) -> io::Result<()> {
        let mut versions = self.list.read().expect("no panic under the lock").clone();
        let (before, mut place) = (versions.len(), 0);
        versions.retain(|version| {
            place += 1;
            place + 2 > before || is_used(version.id)
        });
        if versions.len() == before { Ok(()) } else { self.replace(versions) }
    }

    fn replace(&self, versions: Vec<Arc<Version>>) -> io::Result<()> {
        if let Some(path) = &self.path {
            write(path, &versions)?;
        }
        *self.list.write().expect("no panic under the lock") = versions;
        Ok(())
    }

    pub fn bytes_allocated(&self) -> usize {
        let list = self.list.read().expect("no panic under the lock");
        list.iter().map(|version| version.bytes_allocated()).sum()
    }
}

/// The dictionaries in a file, but for those that are damaged; `None`: it is no such file, or its end is lost.
fn parse(bytes: &[u8]) -> Option<Vec<Version>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut versions = Vec::new();
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_SIZE>() {
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (id, len) = (word(0), word(4) as usize);
        let checksum = u64::from(word(8)) | u64::from(word(12)) << 32;
        let dictionary = after.get(..len).filter(|_| len <= DICTIONARY_BYTES_MAX)?;
        if id != 0 && checksum == xxh3_64_with_seed(dictionary, u64::from(id)) {
            versions.push(Version::new(id, dictionary.to_vec()));
        }
        rest = &after[len..];
    }
    rest.is_empty().then_some(versions)
}

/// Writes a new file beside the old one, and puts it in its place when it is on the device.
fn write(path: &Path, versions: &[Arc<Version>]) -> io::Result<()> {
    let mut new = path.to_owned().into_os_string();
    new.push(".new");
    let new = PathBuf::from(new);
    // It has pieces of values: it is nobody else's to read.
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(MAGIC)?;
    for version in versions {
        let checksum = xxh3_64_with_seed(&version.bytes, u64::from(version.id));
        file.write_all(&version.id.to_le_bytes())?;
        file.write_all(&(version.bytes.len() as u32).to_le_bytes())?;
        file.write_all(&checksum.to_le_bytes())?;
        file.write_all(&version.bytes)?;
    }
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Somebody who keeps compressed values.
pub(crate) trait VersionUser: Send + Sync {
    /// Whether a value that is kept may need a dictionary.
    fn uses(&self, version: u32) -> bool;
}

/// Which dictionaries the segments of a log need.
#[derive(Default)]
pub(crate) struct VersionUses(Mutex<HashMap<u32, u64>>);

impl VersionUses {
    /// A value that needs a dictionary (0: none) was appended to a segment.
    pub fn note(&self, version: u32, sequence: u64) {
        if version != 0 {
            let mut newest = self.0.lock().expect("no panic under the lock");
            let newest = newest.entry(version).or_default();
            *newest = sequence.max(*newest);
        }
    }

    /// Whether a segment from this one on may need a dictionary.
    pub fn is_used_since(&self, version: u32, sequence: u64) -> bool {
        self.0
            .lock()
            .expect("no panic under the lock")
            .get(&version)
            .is_some_and(|newest| *newest >= sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_gives_back_its_dictionaries_but_for_damaged_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(&folder.path().join("c"));
        let versions = Versions::open(Some(path.clone()));
        assert!(versions.current().is_none());
        for byte in [1, 2, 3] {
            versions.add(vec![byte; 1000]).unwrap();
        }
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it has pieces of values");
        let ids = versions.ids();
        let again = Versions::open(Some(path.clone()));
        assert_eq!(again.ids(), ids);
        assert_eq!(again.current().map(|version| version.tail(4).to_vec()), Some(vec![3; 4]));
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[8 + HEADER_SIZE + 1000 + HEADER_SIZE + 500] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        assert_eq!(Versions::open(Some(path.clone())).ids(), [ids[0], ids[2]]);
        for cut in [0, 7, whole.len() - 1] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(Versions::open(Some(path.clone())).ids().is_empty());
        }
        // The last two stay whoever uses them.
        again.retire(|_| false).unwrap();
        assert_eq!(Versions::open(Some(path.clone())).ids(), ids[1..]);
        assert!(again.get(ids[0]).is_none() && again.get(ids[1]).is_some());
        for _ in again.len()..CODEC_VERSIONS_MAX {
            again.add(vec![9]).unwrap();
        }
        assert!(again.add(vec![9]).is_err());
        assert_eq!(Versions::open(Some(path)).len(), CODEC_VERSIONS_MAX);
    }

    #[test]
    fn a_segment_needs_what_was_appended_to_it_or_to_later_ones() {
        let uses = VersionUses::default();
        uses.note(7, 5);
        uses.note(7, 4);
        uses.note(0, 9);
        assert!(uses.is_used_since(7, 5) && !uses.is_used_since(7, 6) && !uses.is_used_since(0, 0));
    }
}
