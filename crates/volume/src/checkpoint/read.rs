//! Reading a checkpoint.

use super::format::{
    CheckpointHeader, HEADER_SIZE, PAGE_RECORD_SIZE, Places, TRAILER_SIZE, encode_trailer, parse_header,
    parse_page,
};
use super::of_path;
use crate::limits::{CHECKPOINT_BUFFER_BYTES, CHECKPOINT_PAGE_BLOCKS};
use crate::map::Map;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

/// The reason why a checkpoint could not be read.
#[derive(Debug)]
pub(crate) enum ScanError {
    Io(io::Error),
    Damaged(&'static str),
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged("it ends too early"),
            _ => Self::Io(error),
        }
    }
}

/// Reads a checkpoint of `size` bytes, and checks all of it. Calls `each` for each page with its first logical block;
/// if the checkpoint turns out to be damaged, the caller must undo the effects of `each`.
pub(crate) fn scan(
    mut from: impl Read,
    size: u64,
    mut each: impl FnMut(u64, &Places),
) -> Result<CheckpointHeader, ScanError> {
    let mut bytes = [0; HEADER_SIZE];
    from.read_exact(&mut bytes)?;
    let (header, identity) = parse_header(&bytes).map_err(ScanError::Damaged)?;
    let rest = size.checked_sub((HEADER_SIZE + TRAILER_SIZE) as u64);
    let pages =
        rest.filter(|rest| rest % PAGE_RECORD_SIZE as u64 == 0).map(|rest| rest / PAGE_RECORD_SIZE as u64);
    let pages = pages.ok_or(ScanError::Damaged("its size fits no number of pages"))?;
    let mut buffer = vec![0; CHECKPOINT_BUFFER_BYTES / PAGE_RECORD_SIZE * PAGE_RECORD_SIZE];
    let mut places = [None; CHECKPOINT_PAGE_BLOCKS as usize];
    let (mut left, mut mapped, mut number_min) = (pages, 0, 0);
    while left > 0 {
        let count = left.min((buffer.len() / PAGE_RECORD_SIZE) as u64);
        let chunk = &mut buffer[..count as usize * PAGE_RECORD_SIZE];
        from.read_exact(chunk)?;
        for bytes in chunk.chunks_exact(PAGE_RECORD_SIZE) {
            let number = parse_page(bytes, identity, &mut places);
            let number = number.ok_or(ScanError::Damaged("a page is damaged"))?;
            if number < number_min || number >= header.blocks.div_ceil(CHECKPOINT_PAGE_BLOCKS) {
                return Err(ScanError::Damaged("a page is out of order"));
            }
            let first = number * CHECKPOINT_PAGE_BLOCKS;
            let within = (header.blocks - first).min(CHECKPOINT_PAGE_BLOCKS) as usize;
            let in_page = places.iter().filter(|place| place.is_some()).count();
            if in_page == 0 || places[within..].iter().any(Option::is_some) {
                return Err(ScanError::Damaged("a page is empty or too long"));
            }
            each(first, &places);
            (mapped, number_min) = (mapped + in_page as u64, number + 1);
        }
        left -= count;
    }
    let mut trailer = [0; TRAILER_SIZE];
    from.read_exact(&mut trailer)?;
    if trailer != encode_trailer(identity, pages, mapped) {
        return Err(ScanError::Damaged("its end is damaged"));
    }
    Ok(header)
}

/// A checkpoint that was checked completely.
#[derive(Debug)]
pub struct Checkpoint {
    /// The header.
    pub header: CheckpointHeader,
    path: PathBuf,
    file: File,
    size: u64,
    mapped: u64,
}

/// Returns the checkpoint at `path`, or `None` if there is none or it is damaged. All of it is read and checked.
///
/// # Errors
/// If there is something at `path` that cannot be read.
pub fn read(path: &Path) -> io::Result<Option<Checkpoint>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(of_path(path))?,
    };
    let metadata = file.metadata().map_err(of_path(path))?;
    let (size, mut mapped) = (metadata.len(), 0);
    match scan(&file, size, |_, places| mapped += places.iter().flatten().count() as u64) {
        Ok(header) => Ok(Some(Checkpoint { header, path: path.to_owned(), file, size, mapped })),
        Err(ScanError::Io(error)) => Err(of_path(path)(error)),
        Err(ScanError::Damaged(why)) => {
            tracing::error!(path = %path.display(), why, "the map that was written down is damaged");
            Ok(None)
        }
    }
}

impl Checkpoint {
    /// Maps all blocks of the checkpoint to their places in `map`. `progress` is called repeatedly with the number of
    /// logical blocks done.
    ///
    /// # Errors
    /// If the file cannot be read, or has changed since it was checked. Then the map must be discarded.
    ///
    /// # Panics
    /// If the map has fewer blocks than the checkpoint.
    pub fn restore(mut self, map: &mut dyn Map, progress: &mut dyn FnMut(u64)) -> io::Result<()> {
        assert!(map.blocks() >= self.header.blocks, "a volume becomes smaller after its map was read");
        let (at, blocks) = (of_path(&self.path), self.header.blocks);
        self.file.rewind().map_err(&at)?;
        map.reserve(self.mapped);
        let mut since_told = 0;
        let scanned = scan(&self.file, self.size, |first, places| {
            let places = &places[..(blocks - first).min(CHECKPOINT_PAGE_BLOCKS) as usize];
            map.restore(first, places);
            since_told += PAGE_RECORD_SIZE;
            if since_told >= CHECKPOINT_BUFFER_BYTES {
                since_told = 0;
                progress(first);
            }
        });
        match scanned {
            Ok(header) if header == self.header => {
                progress(blocks);
                Ok(())
            }
            Err(ScanError::Io(error)) => Err(at(error)),
            Ok(_) | Err(ScanError::Damaged(_)) => Err(at(io::Error::new(
                io::ErrorKind::InvalidData,
                "the map changed while it was read: end whatever else writes to it, and open the volume again",
            ))),
        }
    }
}
