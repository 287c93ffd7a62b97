//! The file of a cache's dictionaries. docs/format.md, "Dictionaries for compression", has every byte.
//!
//! The file has a random number, and the log's state names it: content that was compressed with dictionaries is served
//! only with the file that they are in. So the numbers of dictionaries can be small.

use super::dictionary::Dictionary;
use crate::limits::DICTIONARY_BYTES_MAX;
use granary_log::sync::Arc;
use granary_log::{UnpublishedFile, with_suffix};

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

/// The beginning of the file.
const MAGIC: &[u8; 8] = b"GRANDIC2";

/// The beginning of files of all versions.
const MAGIC_START: &[u8] = b"GRANDIC";

/// Bytes of the file before the first dictionary.
const FILE_HEADER_SIZE: usize = 32;

/// Bytes before each dictionary.
const HEADER_SIZE: usize = 24;

/// The file of dictionaries of a cache with this state path.
pub(crate) fn path_of(state_path: &Path) -> PathBuf {
    with_suffix(state_path, ".dictionaries")
}

/// Whether a file is there that no version of this wrote.
///
/// # Errors
/// It cannot be read.
pub(crate) fn is_foreign(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    match File::open(path).and_then(|file| file.take(MAGIC_START.len() as u64).read_to_end(&mut start)) {
        Ok(_) => Ok(!start.is_empty() && start != MAGIC_START),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The content of a file of dictionaries.
pub(super) struct DictionaryFile {
    /// Its own number; never 0.
    pub number: u64,
    /// The number of the next dictionary.
    pub next: u32,
    /// Dictionaries, oldest first.
    pub dictionaries: Vec<Arc<Dictionary>>,
}

impl DictionaryFile {
    fn new() -> Self {
        Self { number: fastrand::u64(1..), next: 1, dictionaries: Vec::new() }
    }

    /// The file at a path. A damaged one is as good as none.
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Self::parse(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The number of the file at a path, which is made first if that is asked for; 0: there is none. Says whether it
    /// was made.
    ///
    /// # Errors
    /// It cannot be read, or not be made.
    pub fn number_at(path: &Path, make: bool) -> io::Result<(u64, bool)> {
        match Self::read(path)? {
            Some(file) => Ok((file.number, false)),
            None if make => {
                if path.exists() {
                    let path = path.display();
                    tracing::warn!(%path, "damaged, or of another version: what was compressed with it is lost");
                }
                let file = Self::new();
                file.write(path)?;
                Ok((file.number, true))
            }
            None => Ok((0, false)),
        }
    }

    /// The content of a file's bytes, but for dictionaries that are damaged; `None`: it is no such file. A file that
    /// ends too early has those before that.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (header, mut rest) = bytes.split_first_chunk::<FILE_HEADER_SIZE>()?;
        let number = u64_at(header, 8);
        if !header.starts_with(MAGIC)
            || u64_at(header, 24) != XxHash3_64::oneshot(&header[..24])
            || number == 0
        {
            return None;
        }
        let mut dictionaries = Vec::new();
        while let Some((header, after)) = rest.split_first_chunk::<HEADER_SIZE>() {
            let (id, len) = (u32_at(header, 0), u32_at(header, 4) as usize);
            let Some(dictionary) = after.get(..len).filter(|_| len <= DICTIONARY_BYTES_MAX) else { break };
            if id != 0 && u64_at(header, 16) == checksum(number, &header[..16], dictionary) {
                dictionaries.push(Arc::new(Dictionary::new(id, u64_at(header, 8), dictionary.to_vec())));
            }
            rest = &after[len..];
        }
        Some(Self { number, next: u32_at(header, 16), dictionaries })
    }

    /// Writes a new file beside an old one, and puts it in its place when it is on the device.
    ///
    /// # Errors
    /// It cannot be written: the old one stays.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let new = path.with_added_extension("new");
        // Only the owner may read it: it has pieces of values.
        UnpublishedFile::write(new, 0o600, |file| self.write_to(file))?.publish_as(path)
    }

    fn write_to(&self, file: &mut File) -> io::Result<()> {
        file.write_all(&self.header())?;
        for dictionary in &self.dictionaries {
            let bytes = dictionary.bytes();
            let mut header = [0; HEADER_SIZE];
            header[..4].copy_from_slice(&dictionary.id.to_le_bytes());
            header[4..8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
            header[8..16].copy_from_slice(&dictionary.application.to_le_bytes());
            let checksum = checksum(self.number, &header[..16], bytes);
            header[16..].copy_from_slice(&checksum.to_le_bytes());
            file.write_all(&header)?;
            file.write_all(bytes)?;
        }
        Ok(())
    }

    fn header(&self) -> [u8; FILE_HEADER_SIZE] {
        let mut header = [0; FILE_HEADER_SIZE];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&self.number.to_le_bytes());
        header[16..20].copy_from_slice(&self.next.to_le_bytes());
        let checksum = XxHash3_64::oneshot(&header[..24]);
        header[24..].copy_from_slice(&checksum.to_le_bytes());
        header
    }
}

/// Of a dictionary and of what the file says of it.
fn checksum(number: u64, header: &[u8], dictionary: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot_with_seed(number, header), dictionary)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_gives_back_its_dictionaries_but_for_damaged_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(&folder.path().join("c"));
        assert_eq!(DictionaryFile::number_at(&path, false).unwrap().0, 0);
        let number = DictionaryFile::number_at(&path, true).unwrap().0;
        assert_ne!(number, 0);
        let mut file = DictionaryFile::read(&path).unwrap().unwrap();
        assert_eq!((file.number, file.next, file.dictionaries.len()), (number, 1, 0));
        file.next = 4;
        file.dictionaries = (1..4).map(|id| Arc::new(Dictionary::new(id, 7, vec![id as u8; 1000]))).collect();
        file.write(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it has pieces of values");
        assert_eq!(DictionaryFile::number_at(&path, true).unwrap().0, number, "it is kept");

        let whole = std::fs::read(&path).unwrap();
        let ids = |bytes: &[u8]| {
            DictionaryFile::parse(bytes).map(|file| {
                assert_eq!((file.number, file.next), (number, 4));
                file.dictionaries.iter().map(|dictionary| dictionary.id).collect::<Vec<_>>()
            })
        };
        assert_eq!(ids(&whole), Some(vec![1, 2, 3]));
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            match at.checked_sub(FILE_HEADER_SIZE) {
                None => assert_eq!(ids(&damaged), None, "byte {at}"),
                Some(at) => {
                    let ids = ids(&damaged).unwrap();
                    let number = (at / (HEADER_SIZE + 1000)) as u32 + 1;
                    assert!(
                        !ids.contains(&number) && (1..number).all(|id| ids.contains(&id)),
                        "byte {at}: {ids:?}"
                    );
                }
            }
        }
        for cut in 0..whole.len() {
            let found = ids(&whole[..cut]);
            assert_eq!(found.is_some(), cut >= FILE_HEADER_SIZE);
            let whole_ones = cut.saturating_sub(FILE_HEADER_SIZE) / (HEADER_SIZE + 1000);
            assert!(found.is_none_or(|ids| ids.len() == whole_ones));
        }
        std::fs::write(&path, &whole[..31]).unwrap();
        assert_eq!(DictionaryFile::number_at(&path, false).unwrap().0, 0);
        assert_ne!(DictionaryFile::number_at(&path, true).unwrap().0, number, "it is another file");
    }
}
