//! The journal: the summary entries of records that are not on the device yet. Without them a kill would bring back
//! what these records replace.
//!
//! Two files take turns. Each holds appends of: magic (u32), number of entries (u32), sequence number of the entries'
//! segment (u64), newest durable sequence number at that time (u64), XXH3-64 of the entries seeded by instance,
//! sequence and durable mark (u64), then the entries (u64 each). An append with the other magic has no entries:
//! segments up to its sequence number hold nothing any more. Plain buffered writes: they survive the process. They
//! survive a loss of power once the caller syncs them ([`Journal::take_unsynced`]).

use crate::files::{open_or_create, with_suffix};
use crate::limits::{JOURNAL_BYTES_MAX, SEQUENCE_MAX, SUMMARY_ENTRY_MAX};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use twox_hash::XxHash3_64;

const HEADER_SIZE: usize = 32;

/// The kind of an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A segment changes these entries.
    #[default]
    Changes = 0x314A_5247,
    /// Segments up to this one hold nothing any more.
    Emptied = 0x324A_5247,
}

impl Kind {
    fn of(magic: u32) -> Option<Self> {
        [Self::Changes, Self::Emptied].into_iter().find(|kind| *kind as u32 == magic)
    }
}

/// The entries of one append, or of several to one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub kind: Kind,
    pub sequence: u64,
    pub durable: u64,
    pub entries: Vec<u64>,
}

/// The content of both files of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalContent {
    /// The changes.
    pub changes: Vec<Record>,
    /// Segments up to this one hold nothing any more; 0: none was emptied.
    pub emptied: u64,
}

pub(crate) struct Journal {
    instance: u64,
    files: [JournalFile; 2],
    current: usize,
    bytes: Vec<u8>,
    /// The newest segment of those that are emptied ([`JournalContent::emptied`]).
    emptied: u64,
    emptied_noted: u64,
    /// The greatest durable mark in the files.
    durable_noted: u64,
    /// Whether the files' content must survive a loss of power once it is synced.
    pub serves_older: bool,
    /// The files may have entries of another instance, behind which nothing would be found.
    awaits_clear: bool,
}

struct JournalFile {
    file: Arc<File>,
    len: u64,
    newest: u64,
    is_synced: bool,
}

impl JournalFile {
    fn empty(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        (self.len, self.newest, self.is_synced) = (0, 0, true);
        Ok(())
    }
}

/// The two files beside `path`.
pub(crate) fn paths(path: &Path) -> [PathBuf; 2] {
    [".journal.0", ".journal.1"].map(|suffix| with_suffix(path, suffix))
}

impl Journal {
    /// Starts over with only `carried`, and with the segments up to `emptied` empty. At no moment are these missing
    /// from the files.
    pub fn create(path: &Path, instance: u64, carried: &Record, emptied: u64) -> io::Result<Self> {
        let paths = paths(path);
        let fresh = paths.each_ref().map(|path| path.with_added_extension("new"));
        Self::create_as(&fresh, instance, carried, emptied)
            .and_then(|this| {
                this.files[0].file.sync_data()?;
                for (fresh, path) in fresh.iter().zip(&paths) {
                    std::fs::rename(fresh, path)?;
                }
                Ok(this)
            })
            .inspect_err(|_| fresh.iter().for_each(|fresh| drop(std::fs::remove_file(fresh))))
    }

    fn create_as(paths: &[PathBuf; 2], instance: u64, carried: &Record, emptied: u64) -> io::Result<Self> {
        let create = |path: &Path| {
            let flags = OFlags::WRONLY | OFlags::TRUNC;
            let file = File::from(open_or_create(path, flags, Mode::RUSR | Mode::WUSR)?);
            Ok::<_, io::Error>(JournalFile { file: Arc::new(file), len: 0, newest: 0, is_synced: true })
        };
        let files = [create(&paths[0])?, create(&paths[1])?];
        let mut this = Self {
            instance,
            files,
            current: 0,
            bytes: Vec::new(),
            emptied: 0,
            emptied_noted: 0,
            durable_noted: 0,
            serves_older: false,
            awaits_clear: false,
        };
        this.note_emptied(emptied, 0)?;
        // Even without entries: `durable` tells the next start which segments are missing.
        if carried.durable > 0 || !carried.entries.is_empty() {
            this.write(carried.sequence, carried.durable, &carried.entries)?;
        }
        Ok(this)
    }

    /// Notes that `entries` go to segment `sequence` while everything up to `durable` is on the device.
    pub fn append(&mut self, sequence: u64, durable: u64, entries: &[u64]) -> io::Result<()> {
        if entries.is_empty() { Ok(()) } else { self.write(sequence, durable, entries) }
    }

    /// Notes that segments up to this one hold nothing any more, while everything up to `durable` is on the device.
    pub fn note_emptied(&mut self, sequence: u64, durable: u64) -> io::Result<()> {
        self.emptied = sequence.max(self.emptied);
        self.prepare()?;
        if self.emptied == self.emptied_noted {
            return Ok(());
        }
        self.write_emptied()?;
        self.take_turns(durable)
    }

    fn write_emptied(&mut self) -> io::Result<()> {
        self.write_one(Kind::Emptied, self.emptied, 0, &[])?;
        self.emptied_noted = self.emptied;
        Ok(())
    }

    fn write(&mut self, sequence: u64, durable: u64, entries: &[u64]) -> io::Result<()> {
        self.prepare()?;
        self.write_one(Kind::Changes, sequence, durable, entries)?;
        self.durable_noted = durable.max(self.durable_noted);
        let newest = &mut self.files[self.current].newest;
        *newest = sequence.max(*newest);
        self.take_turns(durable)
    }

    /// Empties the other file if the segments of all its entries are on the device, and makes it the current one if
    /// this one is full. The durable mark is journalled first: the entries dropped here would be needed if their
    /// segment were lost.
    fn take_turns(&mut self, durable: u64) -> io::Result<()> {
        let full = self.files[self.current].len > JOURNAL_BYTES_MAX;
        let other = &self.files[1 - self.current];
        if (full || other.len > 0) && other.newest <= durable {
            let has_something = other.len > 0;
            if self.durable_noted < durable {
                self.write_one(Kind::Changes, durable, durable, &[])?;
                self.durable_noted = durable;
            }
            if has_something && self.emptied > 0 {
                // The other file may hold the only `emptied` record.
                self.write_emptied()?;
                if self.serves_older {
                    self.files[self.current].file.sync_data()?;
                }
            }
            self.files[1 - self.current].empty()?;
            if full {
                self.current = 1 - self.current;
            }
        }
        Ok(())
    }

    /// Prepares a clean stop: syncs the `emptied` record. `is_void`: the changes are incomplete and will not be read.
    pub fn prepare_stop(&mut self, is_void: bool) -> io::Result<()> {
        if self.emptied == 0 {
            return Ok(());
        }
        match self.sync_emptied() {
            // On a full device there is room for this record once the files are emptied.
            Err(_) if is_void => {
                self.awaits_clear = true;
                self.sync_emptied()
            }
            synced => synced,
        }
    }

    fn sync_emptied(&mut self) -> io::Result<()> {
        self.prepare()?;
        if self.emptied != self.emptied_noted {
            self.write_emptied()?;
        }
        self.files.iter().try_for_each(|file| file.file.sync_data())
    }

    /// Drops what the start after a clean stop does not read: everything, unless there is an `emptied` record.
    pub fn stop(&mut self) -> io::Result<()> {
        if self.emptied == 0 { self.clear(self.instance) } else { Ok(()) }
    }

    /// Drops entries that another instance has left, if they are still there.
    fn prepare(&mut self) -> io::Result<()> {
        if self.awaits_clear {
            self.files.iter_mut().try_for_each(JournalFile::empty)?;
            (self.awaits_clear, self.emptied_noted, self.durable_noted) = (false, 0, 0);
        }
        Ok(())
    }

    fn write_one(&mut self, kind: Kind, sequence: u64, durable: u64, entries: &[u64]) -> io::Result<()> {
        encode(&mut self.bytes, self.instance, kind, (sequence, durable), entries);
        let JournalFile { file, len, is_synced, .. } = &mut self.files[self.current];
        *is_synced = false;
        file.write_all_at(&self.bytes, *len)?;
        *len += self.bytes.len() as u64;
        Ok(())
    }

    /// The files that have unsynced entries. They count as synced from here on: the caller syncs them.
    pub fn take_unsynced(&mut self) -> Vec<Arc<File>> {
        let unsynced = |file: &mut JournalFile| {
            (!std::mem::replace(&mut file.is_synced, true)).then(|| Arc::clone(&file.file))
        };
        self.files.iter_mut().filter_map(unsynced).collect()
    }

    /// Makes writes fail from here on, or no longer.
    #[cfg(test)]
    pub fn fail(&mut self, path: &Path, fails: bool) {
        for (file, path) in self.files.iter_mut().zip(&paths(path)) {
            let mut options = File::options();
            file.file = Arc::new(options.read(true).write(!fails).open(path).expect("it is there"));
        }
    }

    /// Forgets everything noted: it is on the device, or belongs to an instance given up. Until the files were emptied,
    /// nothing is appended.
    pub fn clear(&mut self, instance: u64) -> io::Result<()> {
        (self.instance, self.emptied, self.awaits_clear) = (instance, 0, true);
        self.prepare()
    }
}

fn checksum(instance: u64, kind: Kind, (sequence, durable): (u64, u64), entries: &[u8]) -> u64 {
    let kind = if kind == Kind::Changes { 0 } else { kind as u64 };
    let seed = instance ^ kind ^ sequence.rotate_left(20) ^ durable.rotate_left(40);
    XxHash3_64::oneshot_with_seed(seed, entries)
}

/// Replaces `bytes` by one append; `numbers` are the sequence number and the durable mark.
pub(crate) fn encode(bytes: &mut Vec<u8>, instance: u64, kind: Kind, numbers: (u64, u64), entries: &[u64]) {
    bytes.clear();
    bytes.extend_from_slice(&[0; HEADER_SIZE]);
    bytes.extend(entries.iter().flat_map(|w| w.to_le_bytes()));
    let sum = checksum(instance, kind, numbers, &bytes[HEADER_SIZE..]);
    bytes[..4].copy_from_slice(&(kind as u32).to_le_bytes());
    bytes[4..8].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    bytes[8..16].copy_from_slice(&numbers.0.to_le_bytes());
    bytes[16..24].copy_from_slice(&numbers.1.to_le_bytes());
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
}

/// All appends of this instance in both files, each file up to its first incomplete append. Consecutive appends to one
/// segment become one record with the newest durable mark, so that many small ones take no more RAM than a large one.
pub(crate) fn read(path: &Path, instance: u64) -> io::Result<JournalContent> {
    let mut content = JournalContent::default();
    for path in paths(path) {
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            read => read?,
        };
        for record in parse(&bytes, instance) {
            match content.changes.last_mut() {
                _ if record.kind == Kind::Emptied => content.emptied = record.sequence.max(content.emptied),
                Some(last) if last.sequence == record.sequence => {
                    last.durable = record.durable.max(last.durable);
                    last.entries.extend(record.entries);
                }
                _ => content.changes.push(record),
            }
        }
    }
    Ok(content)
}

/// The appends of this instance in a file, up to the first incomplete one.
pub(crate) fn parse(mut bytes: &[u8], instance: u64) -> impl Iterator<Item = Record> {
    std::iter::from_fn(move || {
        let (record, rest) = parse_one(bytes, instance)?;
        bytes = rest;
        Some(record)
    })
}

fn parse_one(bytes: &[u8], instance: u64) -> Option<(Record, &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER_SIZE)?;
    let u64_at = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
    let (magic, count) = (u64_at(0) as u32, (u64_at(0) >> 32) as usize);
    let (sequence, durable, sum) = (u64_at(8), u64_at(16), u64_at(24));
    let (entries, rest) = rest.split_at_checked(count * 8)?;
    let kind = Kind::of(magic)?;
    if sum != checksum(instance, kind, (sequence, durable), entries) {
        return None;
    }
    let entries = entries.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().expect("8 bytes")));
    let entries: Vec<u64> = entries.collect();
    let is_valid =
        entries.iter().all(|entry| *entry <= SUMMARY_ENTRY_MAX) && sequence.max(durable) <= SEQUENCE_MAX;
    is_valid.then_some((Record { kind, sequence, durable, entries }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(sequence: u64, durable: u64, entries: Vec<u64>) -> Record {
        Record { kind: Kind::Changes, sequence, durable, entries }
    }

    #[test]
    fn what_was_appended_whole_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d");
        let mut journal = Journal::create(&path, 9, &Record::default(), 0).unwrap();
        journal.append(3, 1, &[10, 11]).unwrap();
        journal.append(4, 1, &[12]).unwrap();
        journal.append(4, 2, &[13]).unwrap();
        let expected = [changes(3, 1, vec![10, 11]), changes(4, 2, vec![12, 13])];
        assert_eq!(read(&path, 9).unwrap().changes, expected);
        assert_eq!(
            read(&path, 8).unwrap(),
            JournalContent::default(),
            "another instance's entries mean nothing"
        );
        let file = &paths(&path)[0];
        let bytes = std::fs::read(file).unwrap();
        for len in 0..bytes.len() {
            let whole = [48, 88, 128].iter().filter(|end| len >= **end).count();
            assert_eq!(parse(&bytes[..len], 9).count(), whole, "cut to {len} bytes");
        }
    }

    /// Entries are dropped only if the files hold the mark that makes them superfluous.
    #[test]
    #[cfg_attr(miri, ignore = "it writes megabytes, and nothing unsafe is in it")]
    fn a_note_of_what_was_emptied_drops_nothing_without_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d");
        let mut journal = Journal::create(&path, 9, &Record::default(), 0).unwrap();
        let many = vec![7; JOURNAL_BYTES_MAX as usize / 8 + 1];
        journal.append(48, 45, &many).unwrap();
        journal.append(49, 45, &[8]).unwrap();
        assert!(read(&path, 9).unwrap().changes.iter().any(|record| record.sequence == 48));
        journal.note_emptied(20, 49).unwrap();
        let content = read(&path, 9).unwrap();
        let marks = content.changes.iter().map(|record| record.durable).max();
        let dropped = content.changes.iter().all(|record| record.sequence != 48);
        assert_eq!((dropped, marks, content.emptied), (true, Some(49), 20));
    }

    /// A file that can be written and not be cut.
    #[test]
    #[cfg_attr(miri, ignore = "it makes system calls that miri does not know")]
    fn nothing_is_appended_behind_entries_of_another_instance() {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&folder.path().join("d"), 9, &Record::default(), 0).unwrap();
        let sealed: File = memfd_create("journal", MemfdFlags::ALLOW_SEALING).unwrap().into();
        fcntl_add_seals(&sealed, SealFlags::SHRINK).unwrap();
        let file = std::mem::replace(&mut journal.files[0].file, Arc::new(sealed));
        journal.append(3, 1, &[10]).unwrap();
        journal.clear(8).unwrap_err();
        journal.append(1, 0, &[11]).unwrap_err();
        journal.files[0].file = file;
        journal.append(1, 0, &[11]).unwrap();
        let expected = [changes(1, 0, vec![11])];
        assert_eq!(read(&folder.path().join("d"), 8).unwrap().changes, expected);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it reads gigabytes, and nothing unsafe is in it")]
    fn files_take_turns_and_never_drop_what_is_not_durable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d");
        let mut journal = Journal::create(&path, 9, &Record::default(), 0).unwrap();
        let entries = vec![7; 100_000];
        for sequence in 10..40 {
            journal.append(sequence, sequence - 4, &entries).unwrap();
            if sequence == 12 {
                journal.note_emptied(5, 8).unwrap();
                journal.note_emptied(4, 8).unwrap();
            }
            let content = read(&path, 9).unwrap();
            assert_eq!(content.emptied, if sequence < 12 { 0 } else { 5 }, "at segment {sequence}");
            let kept: Vec<u64> = content.changes.iter().map(|r| r.sequence).collect();
            for open in (sequence - 3).max(10)..=sequence {
                assert!(kept.contains(&open), "segment {open} is not durable at {sequence}: {kept:?}");
            }
        }
        let bytes: u64 = paths(&path).iter().map(|p| std::fs::metadata(p).unwrap().len()).sum();
        assert!(bytes < 4 * JOURNAL_BYTES_MAX, "{bytes} bytes of journal");
    }
}
