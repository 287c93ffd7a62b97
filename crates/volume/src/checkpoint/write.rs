//! Writing a checkpoint.

use super::format::{CheckpointHeader, encode_header, encode_page, encode_trailer};
use super::of_path;
use crate::limits::{BLOCKS_MAX, CHECKPOINT_BUFFER_BYTES, CHECKPOINT_PAGE_BLOCKS};
use crate::map::Map;
use granary_log::UnpublishedFile;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a checkpoint to `out`. `progress` is called repeatedly with the number of logical blocks done.
pub(crate) fn encode(
    mut out: impl Write,
    header: &CheckpointHeader,
    map: &dyn Map,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    assert!(header.blocks == map.blocks() && header.blocks <= BLOCKS_MAX, "the header is the map's");
    let (bytes, identity) = encode_header(header);
    let mut buffer = Vec::with_capacity(CHECKPOINT_BUFFER_BYTES);
    buffer.extend_from_slice(&bytes);
    let mut places = [None; CHECKPOINT_PAGE_BLOCKS as usize];
    let (mut pages, mut mapped) = (0, 0);
    let mut next = map.next_mapped(0);
    while let Some((lba, _)) = next {
        let number = lba / CHECKPOINT_PAGE_BLOCKS;
        let first = number * CHECKPOINT_PAGE_BLOCKS;
        map.copy_to(first, &mut places);
        let in_page = places.iter().filter(|place| place.is_some()).count() as u64;
        // The page's blocks may all have been unmapped meanwhile.
        if in_page > 0 {
            encode_page(&mut buffer, identity, number, &places);
            (pages, mapped) = (pages + 1, mapped + in_page);
        }
        if buffer.len() >= CHECKPOINT_BUFFER_BYTES {
            out.write_all(&buffer)?;
            buffer.clear();
            progress(first);
        }
        next = map.next_mapped(first + CHECKPOINT_PAGE_BLOCKS);
    }
    buffer.extend_from_slice(&encode_trailer(identity, pages, mapped));
    out.write_all(&buffer)?;
    progress(header.blocks);
    Ok(())
}

/// A checkpoint that is written and synced, but not in its place. If it is dropped, it is removed.
#[must_use = "a checkpoint counts once it is published"]
pub struct Prepared {
    path: PathBuf,
    written: UnpublishedFile,
}

/// Writes and syncs a checkpoint of `map` beside `path`, as `path` with `.new` behind its name.
///
/// If the map changes meanwhile, the checkpoint has for each block a place that it had between beginning and end.
/// Everything that the map held at the end must be on the device before the checkpoint is published: the checkpoint
/// does not have older places to fall back on.
///
/// # Errors
/// If the file cannot be written or synced.
///
/// # Panics
/// If the map does not have `header.blocks` blocks.
pub fn prepare(
    path: &Path,
    header: &CheckpointHeader,
    map: &dyn Map,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Prepared> {
    let new = path.with_added_extension("new");
    let written = UnpublishedFile::write(new.clone(), 0o600, |file| encode(file, header, map, progress));
    Ok(Prepared { path: path.to_owned(), written: written.map_err(of_path(&new))? })
}

impl Prepared {
    /// Puts the checkpoint in its place; when this returns, that survives a loss of power.
    ///
    /// # Errors
    /// If the file cannot be renamed or the folder not synced. Then the former checkpoint may come back.
    pub fn publish(self) -> io::Result<()> {
        self.written.publish_as(&self.path).map_err(of_path(&self.path))
    }
}

/// Prepares a checkpoint and publishes it; for maps that do not change meanwhile.
///
/// # Errors
/// The errors of [`prepare`] and [`Prepared::publish`].
///
/// # Panics
/// If the map does not have `header.blocks` blocks.
pub fn write(
    path: &Path,
    header: &CheckpointHeader,
    map: &dyn Map,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    prepare(path, header, map, progress)?.publish()
}
