//! The numbers that items get (`cas`), and the number below which they are flushed (`flush_all`), kept in a text file:
//!
//! ```text
//! granary memcached 1
//! next 1048577
//! flushed_below 4711
//! flush_at 0
//! ```
//! `next` is greater than every number ever given; `flush_at` is the second of a `flush_all` with a delay. The file is
//! replaced as a whole, and is on the device before its new content takes effect.

use crate::limits::CAS_RESERVED;
use granary_cache::{UnpublishedFile, sync_folder};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const TITLE: &str = "granary memcached 1";

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Persisted {
    next: u64,
    flushed_below: u64,
    flush_at: u32,
}

impl Persisted {
    const NEW: Persisted = Persisted { next: 1, flushed_below: 0, flush_at: 0 };

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return None;
        }
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.trim_start().parse::<u64>().ok();
        let persisted = Persisted {
            next: field("next ")?,
            flushed_below: field("flushed_below ")?,
            flush_at: u32::try_from(field("flush_at ")?).ok()?,
        };
        (persisted.next > 0).then_some(persisted)
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let Persisted { next, flushed_below, flush_at } = self;
        let written = UnpublishedFile::write(path.with_extension("new"), 0o666, |file| {
            writeln!(file, "{TITLE}\nnext {next}\nflushed_below {flushed_below}\nflush_at {flush_at}")
        });
        written?.publish_as(path)
    }
}

/// Whether the file could be read. Without the file the items in the cache are void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    Whole,
    Missing,
}

/// The current numbers, shared by all threads.
#[derive(Debug)]
pub(super) struct CasNumbers {
    path: PathBuf,
    next: AtomicU64,
    /// Numbers below this may be given without writing the file.
    reserved: AtomicU64,
    flushed_below: AtomicU64,
    /// The number that the last flush took: as long as no other is given, nothing was stored since.
    last_flush: AtomicU64,
    /// 0: no flush is planned.
    flush_at: AtomicU32,
    /// The content of the file; locked while it is written.
    persisted: Mutex<Persisted>,
}

impl CasNumbers {
    /// Reads the file, or creates it.
    pub fn open(path: PathBuf) -> io::Result<(Self, FileState)> {
        let persisted = match std::fs::read_to_string(&path) {
            Ok(text) => Persisted::parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(error) => return Err(error),
        };
        let found = if persisted.is_some() { FileState::Whole } else { FileState::Missing };
        let persisted = persisted.unwrap_or(Persisted::NEW);
        let numbers = CasNumbers {
            path,
            next: AtomicU64::new(persisted.next),
            reserved: AtomicU64::new(persisted.next),
            flushed_below: AtomicU64::new(persisted.flushed_below),
            last_flush: AtomicU64::new(persisted.flushed_below),
            flush_at: AtomicU32::new(persisted.flush_at),
            persisted: Mutex::new(persisted),
        };
        Ok((numbers, found))
    }

    /// Returns a number that was never given before.
    pub fn next(&self) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.reserved.load(Ordering::Acquire) {
            self.reserve(number);
        }
        number
    }

    #[cold]
    fn reserve(&self, number: u64) {
        let mut persisted = self.persisted.lock().expect("no panic under the lock");
        if number < persisted.next {
            return;
        }
        persisted.next = number + CAS_RESERVED;
        if let Err(error) = persisted.write(&self.path) {
            // Items can still be stored. After a crash their numbers would be given again, and a flush would miss them:
            // the cache starts empty then instead.
            tracing::error!(%error, path = %self.path.display(), "cannot be written: after a crash the cache starts empty");
            self.remove("after a crash numbers are given again");
        }
        self.reserved.store(persisted.next, Ordering::Release);
    }

    /// Items with a lower number are flushed.
    pub fn flushed_below(&self) -> u64 {
        self.flushed_below.load(Ordering::Acquire)
    }

    /// The second of the flush that is planned; 0: none is.
    pub fn flush_at(&self) -> u32 {
        self.flush_at.load(Ordering::Acquire)
    }

    /// Flushes all items that have a number by now, and cancels a planned flush. Takes a number, as each flush of
    /// memcached does. The caller prevents all changes meanwhile.
    pub fn flush(&self) -> io::Result<()> {
        let below = self.next();
        // If nothing was stored since the last flush, the file, which takes two syncs, is not written again.
        if self.flush_at() != 0 || below != self.last_flush.load(Ordering::Acquire) + 1 {
            self.change(|persisted| (persisted.flushed_below, persisted.flush_at) = (below, 0))?;
        }
        self.last_flush.store(below, Ordering::Release);
        Ok(())
    }

    /// Carries out the flush planned for the second `plan`, unless another plan has taken its place, which stays. The
    /// caller prevents all changes of items meanwhile.
    pub fn flush_planned(&self, plan: u32) -> io::Result<()> {
        let below = self.next();
        let mut persisted = self.persisted.lock().expect("no panic under the lock");
        if persisted.flush_at != plan {
            return Ok(());
        }
        let flushed = Persisted { flushed_below: below, flush_at: 0, ..*persisted };
        self.replace(&mut persisted, flushed)?;
        self.last_flush.store(below, Ordering::Release);
        Ok(())
    }

    /// Plans a flush for the second `at`; replaces an earlier plan.
    pub fn flush_later(&self, at: u32) -> io::Result<()> {
        self.change(|persisted| persisted.flush_at = at)
    }

    /// Cancels the flush that was planned for the second `plan`, as all that it would flush is gone. For when the file
    /// cannot be written. Another plan, made meanwhile, stays.
    pub fn forget_plan(&self, plan: u32) {
        let mut persisted = self.persisted.lock().expect("no panic under the lock");
        if plan == 0 || persisted.flush_at != plan {
            return;
        }
        persisted.flush_at = 0;
        self.flush_at.store(0, Ordering::Release);
        // The file is outdated: without it a start after a kill empties the cache.
        self.remove("after a kill all is flushed again");
    }

    /// Removes the file: without it a start after a crash empties the cache.
    fn remove(&self, or_else: &str) {
        let removed = match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync_folder(&self.path),
        };
        if let Err(error) = removed {
            tracing::error!(%error, path = %self.path.display(), "cannot be removed: {or_else}");
        }
    }

    fn change(&self, change: impl FnOnce(&mut Persisted)) -> io::Result<()> {
        let mut persisted = self.persisted.lock().expect("no panic under the lock");
        let mut changed = *persisted;
        change(&mut changed);
        self.replace(&mut persisted, changed)
    }

    fn replace(&self, persisted: &mut Persisted, changed: Persisted) -> io::Result<()> {
        changed.write(&self.path)?;
        *persisted = changed;
        self.flushed_below.store(changed.flushed_below, Ordering::Release);
        self.flush_at.store(changed.flush_at, Ordering::Release);
        Ok(())
    }

    /// Restarts the numbers from 1 without writing the file. For tests, each of whose conversations is to find a fresh
    /// store.
    pub fn restart(&self) {
        self.next.store(1, Ordering::Relaxed);
        self.last_flush.store(0, Ordering::Release);
        self.flushed_below.store(0, Ordering::Release);
        self.flush_at.store(0, Ordering::Release);
    }

    /// Writes the file with the number that is actually next. For a clean stop.
    pub fn close(&self) -> io::Result<()> {
        self.change(|persisted| persisted.next = self.next.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_took_the_place_of_a_due_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (numbers, _) = CasNumbers::open(folder.path().join("numbers")).unwrap();
        numbers.flush_later(50).unwrap();
        numbers.flush_later(150).unwrap();
        numbers.flush_planned(50).unwrap();
        assert_eq!((numbers.flush_at(), numbers.flushed_below()), (150, 0));
        numbers.forget_plan(50);
        assert_eq!(numbers.flush_at(), 150);
        numbers.flush_planned(150).unwrap();
        assert!(numbers.flush_at() == 0 && numbers.flushed_below() > 0);
        numbers.flush_later(200).unwrap();
        numbers.forget_plan(200);
        assert_eq!(numbers.flush_at(), 0);
    }

    #[test]
    fn numbers_grow_through_stops_and_kills() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        let open = || CasNumbers::open(path.clone()).unwrap();
        let (numbers, found) = open();
        assert_eq!(found, FileState::Missing);
        assert_eq!([numbers.next(), numbers.next()], [1, 2]);
        numbers.close().unwrap();
        let (numbers, found) = open();
        assert_eq!((found, numbers.next()), (FileState::Whole, 3));
        // Killed.
        let (numbers, _) = open();
        assert_eq!(numbers.next(), 3 + CAS_RESERVED);
        numbers.flush().unwrap();
        numbers.flush_later(99).unwrap();
        let (numbers, _) = open();
        assert_eq!((numbers.flushed_below(), numbers.flush_at()), (4 + CAS_RESERVED, 99));
        numbers.flush().unwrap();
        let (numbers, _) = open();
        assert!(numbers.flushed_below() > 4 + CAS_RESERVED && numbers.flush_at() == 0);
        assert!(numbers.next() > numbers.flushed_below());
    }

    #[test]
    fn a_torn_file_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        for text in [
            "",
            "granary memcached 1\nnext 5\n",
            "granary memcached 2\nnext 5\nflushed_below 1\nflush_at 0\n",
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(CasNumbers::open(path.clone()).unwrap().1, FileState::Missing, "{text:?}");
        }
    }
}
