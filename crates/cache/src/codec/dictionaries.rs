//! The dictionaries of a cache, oldest first.
//!
//! A dictionary is on the device before the first value is compressed with it, and its number is never reused.

use super::dictionary::Dictionary;
use super::dictionary_file::DictionaryFile;
use crate::limits::CODEC_DICTIONARIES_MAX;
use granary_log::sync::{Arc, Mutex, RwLock};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// The dictionaries of a cache.
pub(super) struct Dictionaries {
    /// Path and number of their file; `None`: they are in RAM only.
    file: Option<(PathBuf, u64)>,
    list: RwLock<List>,
}

#[derive(Clone)]
struct List {
    /// Oldest first. Values are compressed with the newest one of their application.
    dictionaries: Vec<Arc<Dictionary>>,
    /// The number of the next dictionary.
    next: u32,
}

impl Dictionaries {
    /// No dictionaries yet; later ones live in RAM only.
    pub fn in_memory() -> Self {
        Self { file: None, list: RwLock::new(List { dictionaries: Vec::new(), next: 1 }) }
    }

    /// The dictionaries of the file with number `number`; 0: there is no file, and nothing is added to one.
    ///
    /// # Errors
    /// The file cannot be read, or was replaced by another one.
    pub fn open(path: &Path, number: u64) -> io::Result<Self> {
        if number == 0 {
            return Ok(Self::in_memory());
        }
        match DictionaryFile::read(path)? {
            Some(DictionaryFile { number: found, next, dictionaries }) if found == number => Ok(Self {
                file: Some((path.to_owned(), number)),
                list: RwLock::new(List { dictionaries, next }),
            }),
            _ => Err(io::Error::other("another cache has changed its dictionaries: open it again")),
        }
    }

    fn list(&self) -> List {
        self.list.read().expect("no panic under the lock").clone()
    }

    /// The dictionary that compresses an application's values.
    pub fn current(&self, application: u64) -> Option<Arc<Dictionary>> {
        let list = self.list.read().expect("no panic under the lock");
        list.dictionaries.iter().rev().find(|dictionary| dictionary.application == application).cloned()
    }

    pub fn get(&self, id: u32) -> Option<Arc<Dictionary>> {
        let list = self.list.read().expect("no panic under the lock");
        list.dictionaries.iter().rev().find(|dictionary| dictionary.id == id).cloned()
    }

    pub fn len(&self) -> usize {
        self.list.read().expect("no panic under the lock").dictionaries.len()
    }

    pub fn ids(&self) -> Vec<u32> {
        self.list().dictionaries.iter().map(|dictionary| dictionary.id).collect()
    }

    /// Adds a dictionary, which becomes its application's current one once it is on the device.
    ///
    /// # Errors
    /// It cannot be written, or the application has too many: nothing is changed.
    pub fn add(&self, application: u64, bytes: Vec<u8>) -> io::Result<()> {
        let List { mut dictionaries, next } = self.list();
        let before = dictionaries.iter().filter(|dictionary| dictionary.application == application).count();
        if before >= CODEC_DICTIONARIES_MAX || next == u32::MAX {
            return Err(io::Error::other("there are too many that are in use"));
        }
        // The tables for compression are large: only the newest dictionary keeps them.
        if let Some(last) = dictionaries.iter_mut().rfind(|dictionary| dictionary.application == application)
        {
            *last = Arc::new(Dictionary::new(last.id, application, last.bytes().to_vec()));
        }
        dictionaries.push(Arc::new(Dictionary::new(next, application, bytes)));
        self.replace(List { dictionaries, next: next + 1 })
    }

    /// Forgets unused dictionaries. The last two of each application in `applications` stay: a thread may be about to
    /// use them.
    ///
    /// # Errors
    /// The file cannot be written: nothing is changed.
    pub fn drop_unused(&self, applications: &[u64], mut is_used: impl FnMut(u32) -> bool) -> io::Result<()> {
        let List { mut dictionaries, next } = self.list();
        let before = dictionaries.len();
        let mut newer: HashMap<u64, usize> = HashMap::new();
        dictionaries.reverse();
        dictionaries.retain(|dictionary| {
            let newer = newer.entry(dictionary.application).or_default();
            *newer += 1;
            *newer <= 2 && applications.contains(&dictionary.application) || is_used(dictionary.id)
        });
        dictionaries.reverse();
        if dictionaries.len() == before { Ok(()) } else { self.replace(List { dictionaries, next }) }
    }

    fn replace(&self, list: List) -> io::Result<()> {
        if let Some((path, number)) = &self.file {
            // The cache's files may have been removed, and replaced by others.
            let next_there = self.list().next;
            let is_its = |found: DictionaryFile| found.number == *number && found.next == next_there;
            if !DictionaryFile::read(path)?.is_some_and(is_its) {
                return Err(io::Error::other(
                    "the cache's files have been removed, or another process has them",
                ));
            }
            let List { dictionaries, next } = list.clone();
            let written = DictionaryFile { number: *number, next, dictionaries }.write(path);
            if let Err(error) = written {
                // The file may be in place in spite of the error; then the dictionary's number counts as used.
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
        list.dictionaries.iter().map(|dictionary| dictionary.bytes_allocated()).sum()
    }
}

/// A keeper of compressed values.
pub(crate) trait DictionaryUser: Send + Sync {
    /// Whether a kept value may need dictionary `dictionary`.
    fn uses(&self, dictionary: u32) -> bool;
}

/// The newest segment that needs each dictionary.
#[derive(Default)]
pub(crate) struct DictionaryUses(Mutex<HashMap<u32, u64>>);

impl DictionaryUses {
    /// Notes that a value that needs dictionary `dictionary` (0: none) was appended to segment `sequence`.
    pub fn note(&self, dictionary: u32, sequence: u64) {
        if dictionary != 0 {
            let mut newest = self.0.lock().expect("no panic under the lock");
            let newest = newest.entry(dictionary).or_default();
            *newest = sequence.max(*newest);
        }
    }

    /// Whether segment `sequence` or a later one may need dictionary `dictionary`.
    pub fn is_used_since(&self, dictionary: u32, sequence: u64) -> bool {
        self.0
            .lock()
            .expect("no panic under the lock")
            .get(&dictionary)
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
        let dictionaries = Dictionaries::open(&path, number).unwrap();
        assert!(dictionaries.current(A).is_none());
        for (application, byte) in [(A, 1), (A, 2), (B, 3), (A, 4)] {
            dictionaries.add(application, vec![byte; 1000]).unwrap();
        }
        let last = |dictionaries: &Dictionaries, application| {
            dictionaries.current(application).map(|dictionary| (dictionary.id, dictionary.tail(2).to_vec()))
        };
        let again = Dictionaries::open(&path, number).unwrap();
        assert_eq!(again.ids(), [1, 2, 3, 4]);
        assert_eq!((last(&again, A), last(&again, B)), (Some((4, vec![4; 2])), Some((3, vec![3; 2]))));
        assert!(Dictionaries::open(&path, number + 1).is_err(), "it is another file");

        again.drop_unused(&[A, B], |_| false).unwrap();
        assert_eq!(Dictionaries::open(&path, number).unwrap().ids(), [2, 3, 4]);
        assert!(again.get(1).is_none() && again.get(2).is_some());
        again.drop_unused(&[B], |id| id == 2).unwrap();
        assert_eq!(again.ids(), [2, 3], "there is no such application any more");
        again.drop_unused(&[], |_| false).unwrap();
        assert_eq!(again.ids(), [0; 0]);
        let after = Dictionaries::open(&path, number).unwrap();
        after.add(A, vec![9]).unwrap();
        assert_eq!(after.ids(), [5], "older numbers may still be named");

        for _ in after.len()..CODEC_DICTIONARIES_MAX {
            after.add(A, vec![9]).unwrap();
        }
        assert!(after.add(A, vec![9]).is_err());
        after.add(B, vec![9]).unwrap();

        std::fs::remove_file(&path).unwrap();
        assert!(after.drop_unused(&[], |_| false).is_err() && !path.exists(), "what is removed stays so");
    }

    #[test]
    fn a_segment_needs_what_was_appended_to_it_or_to_later_ones() {
        let uses = DictionaryUses::default();
        uses.note(7, 5);
        uses.note(7, 4);
        uses.note(0, 9);
        assert!(uses.is_used_since(7, 5) && !uses.is_used_since(7, 6) && !uses.is_used_since(0, 0));
    }
}
