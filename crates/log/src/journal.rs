//! The journal: the summary entries of records that are not on the device yet. Without them a kill would bring back
//! what these records replace.
//!
//! Two files take turns. Each holds appends of: magic (u32), number of entries (u32), sequence number
//! that the entries go to (u64), newest durable sequence number at that time (u64), XXH3-64 of the
//! entries seeded by instance, sequence and durable mark (u64), then the entries (u64 each). Plain
//! buffered writes: they survive the process. They survive the machine where somebody asks for that
//! ([`Journal::take_unsynced`]).

use crate::limits::{JOURNAL_BYTES_MAX, SEQUENCE_MAX, SUMMARY_ENTRY_MAX};
use crate::state::beside;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use twox_hash::XxHash3_64;

const MAGIC: u32 = 0x314A_5247;
const HEADER_SIZE: usize = 32;

/// The entries of one append, or of several to one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub sequence: u64,
    pub durable: u64,
    pub entries: Vec<u64>,
}

pub(crate) struct Journal {
    instance: u64,
    files: [JournalFile; 2],
    current: usize,
    bytes: Vec<u8>,
    /// The files may have entries of another instance: what is behind them would not be found.
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
    [".journal.0", ".journal.1"].map(|suffix| beside(path, suffix))
}

impl Journal {
    /// Starts over with nothing but `carried`. At no moment is an entry of it missing from the files.
    pub fn create(path: &Path, instance: u64, carried: &Record) -> io::Result<Self> {
        let paths = paths(path);
        let fresh = paths.each_ref().map(|path| beside(path, ".new"));
        Self::create_as(&fresh, instance, carried)
            .and_then(|this| {
                this.files[0].file.sync_data()?;
                for (fresh, path) in fresh.iter().zip(&paths) {
                    std::fs::rename(fresh, path)?;
                }
                Ok(this)
            })
            .inspect_err(|_| fresh.iter().for_each(|fresh| drop(std::fs::remove_file(fresh))))
    }

    fn create_as(paths: &[PathBuf; 2], instance: u64, carried: &Record) -> io::Result<Self> {
        let create = |path: &Path| {
            let mut options = OpenOptions::new();
            let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
            Ok::<_, io::Error>(JournalFile { file: Arc::new(file), len: 0, newest: 0, is_synced: true })
        };
        let files = [create(&paths[0])?, create(&paths[1])?];
        let mut this = Self { instance, files, current: 0, bytes: Vec::new(), awaits_clear: false };
        // Without entries, too: by `durable` the next start knows which segments are missing.
        if carried.durable > 0 || !carried.entries.is_empty() {
            this.write(carried.sequence, carried.durable, &carried.entries)?;
        }
        Ok(this)
    }

    /// Notes that `entries` go to segment `sequence` while everything up to `durable` is on the device.
    pub fn append(&mut self, sequence: u64, durable: u64, entries: &[u64]) -> io::Result<()> {
        if entries.is_empty() { Ok(()) } else { self.write(sequence, durable, entries) }
    }

    fn write(&mut self, sequence: u64, durable: u64, entries: &[u64]) -> io::Result<()> {
        if self.awaits_clear {
            self.clear(self.instance)?;
        }
        encode(&mut self.bytes, self.instance, sequence, durable, entries);
        let JournalFile { file, len, newest, is_synced } = &mut self.files[self.current];
        *is_synced = false;
        file.write_all_at(&self.bytes, *len)?;
        *len += self.bytes.len() as u64;
        *newest = sequence.max(*newest);
        // Only now that `durable` is on record: what is dropped here is missed if its segment is.
        let full = *len > JOURNAL_BYTES_MAX;
        let other = &mut self.files[1 - self.current];
        if (full || other.len > 0) && other.newest <= durable {
            other.empty()?;
            if full {
                self.current = 1 - self.current;
            }
        }
        Ok(())
    }

    /// The files with entries that were not synced. They are taken for synced from here on: the caller syncs them.
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
            let mut options = OpenOptions::new();
            file.file = Arc::new(options.read(true).write(!fails).open(path).expect("it is there"));
        }
    }

    /// Forgets everything noted: it is on the device, or belongs to an instance given up. Until that has succeeded once,
    /// nothing is appended.
    pub fn clear(&mut self, instance: u64) -> io::Result<()> {
        self.instance = instance;
        self.awaits_clear = true;
        for file in &mut self.files {
            file.empty()?;
        }
        self.awaits_clear = false;
        Ok(())
    }
}

fn checksum(instance: u64, sequence: u64, durable: u64, entries: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(instance ^ sequence.rotate_left(20) ^ durable.rotate_left(40), entries)
}

/// Replaces `bytes` by one append.
pub(crate) fn encode(bytes: &mut Vec<u8>, instance: u64, sequence: u64, durable: u64, entries: &[u64]) {
    bytes.clear();
    bytes.extend_from_slice(&[0; HEADER_SIZE]);
    bytes.extend(entries.iter().flat_map(|w| w.to_le_bytes()));
    let sum = checksum(instance, sequence, durable, &bytes[HEADER_SIZE..]);
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[4..8].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    bytes[8..16].copy_from_slice(&sequence.to_le_bytes());
    bytes[16..24].copy_from_slice(&durable.to_le_bytes());
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
}

/// All appends of this instance in both files, up to the first of each that is not whole. Those to one segment that follow
/// each other are one record, with the newest durable mark: many small appends take no more RAM than a large one.
pub(crate) fn read(path: &Path, instance: u64) -> io::Result<Vec<Record>> {
    let mut records: Vec<Record> = Vec::new();
    for path in paths(path) {
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            read => read?,
        };
        for record in parse(&bytes, instance) {
            match records.last_mut() {
                Some(last) if last.sequence == record.sequence => {
                    last.durable = record.durable.max(last.durable);
                    last.entries.extend(record.entries);
                }
                _ => records.push(record),
            }
        }
    }
    Ok(records)
}

/// The appends of this instance in a file, up to the first that is not whole.
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
    if magic != MAGIC || sum != checksum(instance, sequence, durable, entries) {
        return None;
    }
    let entries = entries.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().expect("8 bytes")));
    let entries: Vec<u64> = entries.collect();
    let is_valid =
        entries.iter().all(|entry| *entry <= SUMMARY_ENTRY_MAX) && sequence.max(durable) <= SEQUENCE_MAX;
    is_valid.then_some((Record { sequence, durable, entries }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_whole_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d");
        let mut journal = Journal::create(&path, 9, &Record::default()).unwrap();
        journal.append(3, 1, &[10, 11]).unwrap();
        journal.append(4, 1, &[12]).unwrap();
        journal.append(4, 2, &[13]).unwrap();
        let expected = [
            Record { sequence: 3, durable: 1, entries: vec![10, 11] },
            Record { sequence: 4, durable: 2, entries: vec![12, 13] },
        ];
        assert_eq!(read(&path, 9).unwrap(), expected);
        assert_eq!(read(&path, 8).unwrap(), [], "another instance's entries mean nothing");
        let file = &paths(&path)[0];
        let bytes = std::fs::read(file).unwrap();
        for len in 0..bytes.len() {
            let whole = [48, 88, 128].iter().filter(|end| len >= **end).count();
            assert_eq!(parse(&bytes[..len], 9).count(), whole, "cut to {len} bytes");
        }
    }

    /// A file that can be written and not be cut.
    #[test]
    #[cfg_attr(miri, ignore = "it makes system calls that miri does not know")]
    fn nothing_is_appended_behind_entries_of_another_instance() {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&folder.path().join("d"), 9, &Record::default()).unwrap();
        let sealed: File = memfd_create("journal", MemfdFlags::ALLOW_SEALING).unwrap().into();
        fcntl_add_seals(&sealed, SealFlags::SHRINK).unwrap();
        let file = std::mem::replace(&mut journal.files[0].file, Arc::new(sealed));
        journal.append(3, 1, &[10]).unwrap();
        journal.clear(8).unwrap_err();
        journal.append(1, 0, &[11]).unwrap_err();
        journal.files[0].file = file;
        journal.append(1, 0, &[11]).unwrap();
        let expected = [Record { sequence: 1, durable: 0, entries: vec![11] }];
        assert_eq!(read(&folder.path().join("d"), 8).unwrap(), expected);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it reads gigabytes, and nothing unsafe is in it")]
    fn files_take_turns_and_never_drop_what_is_not_durable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d");
        let mut journal = Journal::create(&path, 9, &Record::default()).unwrap();
        let entries = vec![7; 100_000];
        for sequence in 10..40 {
            journal.append(sequence, sequence - 4, &entries).unwrap();
            let kept: Vec<u64> = read(&path, 9).unwrap().iter().map(|r| r.sequence).collect();
            for open in (sequence - 3).max(10)..=sequence {
                assert!(kept.contains(&open), "segment {open} is not durable at {sequence}: {kept:?}");
            }
        }
        let bytes: u64 = paths(&path).iter().map(|p| std::fs::metadata(p).unwrap().len()).sum();
        assert!(bytes < 4 * JOURNAL_BYTES_MAX, "{bytes} bytes of journal");
    }
}
