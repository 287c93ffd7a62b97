//! The dictionaries of a cache, oldest first.
//!
//! A dictionary is on the device before the first value is compressed with it, and named by a number that is never given
//! again.

use super::dictionary_file::DictionaryFile;
use super::version::Version;
use crate::limits::CODEC_VERSIONS_MAX;
use granary_log::sync::sync::{Arc, Mutex, RwLock};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// The dictionaries of a cache.
pub(super) struct Versions {
    /// Where they lie, and the number of that file; `None`: in RAM only.
    file: Option<(PathBuf, u64)>,
    list: RwLock<List>,
}

#[derive(Clone)]
struct List {
    /// Oldest first. Values are compressed with the newest one of their application.
    versions: Vec<Arc<Version>>,
    /// The number of the next one.
    next: u32,
}

impl Versions {
    /// None yet, and none that outlive this.
    pub fn in_memory() -> Self {
        Self { file: None, list: RwLock::new(List { versions: Vec::new(), next: 1 }) }
    }

    /// With those of the file of this number; 0: there is none, and none will be added.
    ///
    /// # Errors
    /// The file cannot be read, or is another one by now.
    pub fn open(path: &Path, number: u64) -> io::Result<Self> {
        if number == 0 {
            return Ok(Self::in_memory());
        }
        match DictionaryFile::read(path)? {
            Some(DictionaryFile { number: found, next, versions }) if found == number => {
                Ok(Self { file: Some((path.to_owned(), number)), list: RwLock::new(List { versions, next }) })
            }
            _ => Err(io::Error::other("another cache has changed its dictionaries: open it again")),
        }
    }

    fn list(&self) -> List {
        self.list.read().expect("no panic under the lock").clone()
    }

    /// What values of an application are compressed with.
    pub fn current(&self, application: u64) -> Option<Arc<Version>> {
        let list = self.list.read().expect("no panic under the lock");
        list.versions.iter().rev().find(|version| version.application == application).cloned()
    }

    pub fn get(&self, id: u32) -> Option<Arc<Version>> {
        let list = self.list.read().expect("no panic under the lock");
        list.versions.iter().rev().find(|version| version.id == id).cloned()
    }

    pub fn len(&self) -> usize {
        self.list.read().expect("no panic under the lock").versions.len()
    }

    pub fn ids(&self) -> Vec<u32> {
        self.list().versions.iter().map(|version| version.id).collect()
    }

    /// Adds a dictionary, which is the current one of its application when it is on the device.
    ///
    /// # Errors
    /// It cannot be written, or the application has too many: nothing has changed.
    pub fn add(&self, application: u64, bytes: Vec<u8>) -> io::Result<()> {
        let List { mut versions, next } = self.list();
        let before = versions.iter().filter(|version| version.application == application).count();
        if before >= CODEC_VERSIONS_MAX || next == u32::MAX {
            return Err(io::Error::other("there are too many that are in use"));
        }
        // It costs much to compress with: only the newest one has that.
        if let Some(last) = versions.iter_mut().rfind(|version| version.application == application) {
            *last = Arc::new(Version::new(last.id, application, last.bytes().to_vec()));
        }
        versions.push(Arc::new(Version::new(next, application, bytes)));
        self.replace(List { versions, next: next + 1 })
    }

    /// Forgets those that nobody uses. The last two of an application that there still is stay: somebody may be about
    /// to use them.
    ///
    /// # Errors
    /// The file cannot be written: nothing has changed.
    pub fn retire(&self, applications: &[u64], mut is_used: impl FnMut(u32) -> bool) -> io::Result<()> {
        let List { mut versions, next } = self.list();
        let before = versions.len();
        let mut newer: HashMap<u64, usize> = HashMap::new();
        versions.reverse();
        versions.retain(|version| {
            let newer = newer.entry(version.application).or_default();
            *newer += 1;
            *newer <= 2 && applications.contains(&version.application) || is_used(version.id)
        });
        versions.reverse();
        if versions.len() == before { Ok(()) } else { self.replace(List { versions, next }) }
    }

    fn replace(&self, list: List) -> io::Result<()> {
        if let Some((path, number)) = &self.file {
            // Its files may have been removed, and others lie in their place.
            let next_there = self.list().next;
            let is_its = |found: DictionaryFile| found.number == *number && found.next == next_there;
            if !DictionaryFile::read(path)?.is_some_and(is_its) {
                return Err(io::Error::other(
                    "the cache's files have been removed, or another process has them",
                ));
            }
            let List { versions, next } = list.clone();
            let written = DictionaryFile { number: *number, next, versions }.write(path);
            if let Err(error) = written {
                // It may be in its place all the same, and its number is given then.
                let is_there =
                    DictionaryFile::read(path).is_ok_and(|found| found.is_some_and(|f| f.next == next));
                if is_there {
                    self.list.write().expect("no panic under the lock").next = next;
                }
                return Err(error);
            }
        }
        *self.list.write().expect("no panic under the lock") = list;
        Ok(())
    }

    pub fn bytes_allocated(&self) -> usize {
        let list = self.list.read().expect("no panic under the lock");
        list.versions.iter().map(|version| version.bytes_allocated()).sum()
    }
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
    use super::super::dictionary_file::path_of;
    use super::*;

    const A: u64 = 1;
    const B: u64 = 2;

    #[test]
    fn numbers_are_never_given_again_and_the_last_two_of_an_application_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(&folder.path().join("c"));
        let number = DictionaryFile::number_at(&path, true).unwrap().0;
        let versions = Versions::open(&path, number).unwrap();
        assert!(versions.current(A).is_none());
        for (application, byte) in [(A, 1), (A, 2), (B, 3), (A, 4)] {
            versions.add(application, vec![byte; 1000]).unwrap();
        }
        let last = |versions: &Versions, application| {
            versions.current(application).map(|version| (version.id, version.tail(2).to_vec()))
        };
        let again = Versions::open(&path, number).unwrap();
        assert_eq!(again.ids(), [1, 2, 3, 4]);
        assert_eq!((last(&again, A), last(&again, B)), (Some((4, vec![4; 2])), Some((3, vec![3; 2]))));
        assert!(Versions::open(&path, number + 1).is_err(), "it is another file");

        again.retire(&[A, B], |_| false).unwrap();
        assert_eq!(Versions::open(&path, number).unwrap().ids(), [2, 3, 4]);
        assert!(again.get(1).is_none() && again.get(2).is_some());
        again.retire(&[B], |id| id == 2).unwrap();
        assert_eq!(again.ids(), [2, 3], "there is no such application any more");
        again.retire(&[], |_| false).unwrap();
        assert_eq!(again.ids(), [0; 0]);
        let after = Versions::open(&path, number).unwrap();
        after.add(A, vec![9]).unwrap();
        assert_eq!(after.ids(), [5], "older numbers may still be named");

        for _ in after.len()..CODEC_VERSIONS_MAX {
            after.add(A, vec![9]).unwrap();
        }
        assert!(after.add(A, vec![9]).is_err());
        after.add(B, vec![9]).unwrap();

        std::fs::remove_file(&path).unwrap();
        assert!(after.retire(&[], |_| false).is_err() && !path.exists(), "what is removed stays so");
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
