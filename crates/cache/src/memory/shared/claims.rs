//! The files of all partitions' RAM tiers, claimed before the log is opened: from then on its state file tells whether
//! they are valid.

use super::abandoned::remove_abandoned;
use super::file::{Claim, remove_all, remove_unlocked};
use super::header::Layout;
use super::partition_memory::PartitionMemory;
use crate::limits::{DEFAULT_MEMORY_FOLDER, PARTITIONS_MAX};
use granary_log::{SharedMemory, is_any_open};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Another process has the cache open.
pub(crate) struct InUse;

/// A file for each partition, or no files if not all can have one.
pub(crate) struct Claims {
    folder: PathBuf,
    state_path: PathBuf,
    shared_memory: Vec<Arc<PartitionMemory>>,
}

impl Claims {
    /// Claims a file of this layout for each of `partitions` partitions of the cache at `state_path`. If that fails,
    /// there are none, and the reason is logged.
    ///
    /// # Errors
    /// Another process has the cache open: its RAM tier must not be given up.
    pub fn new(folder: &Path, state_path: &Path, partitions: u64, layout: Layout) -> Result<Self, InUse> {
        remove_abandoned(folder);
        let claim = |partition| Claim::new(folder, state_path, partition, layout);
        let claim_all = || (0..partitions).map(claim).collect::<io::Result<Vec<Claim>>>();
        let claims = match claim_all() {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                if is_any_open(state_path, partitions).is_ok_and(|is_open| is_open) {
                    return Err(InUse);
                }
                // A killed process may have released its files meanwhile.
                claim_all()
            }
            claims => claims,
        };
        let claims = claims.and_then(|claims| {
            has_room(&claims, layout.memory_bytes() + layout.usual_buffer_bytes()).map(|()| claims)
        });
        let claims = claims.unwrap_or_else(|error| {
            tracing::warn!(folder = %folder.display(), %error, "the RAM tier dies with the process");
            Vec::new()
        });
        if let Some(claim) = claims.first() {
            let (cache, file) = (state_path.display(), claim.path().display());
            let mib = (layout.memory_bytes() * partitions) >> 20;
            match partitions {
                1 => tracing::info!("{cache}: {mib} MiB of RAM in {file}, kept through a kill"),
                _ => tracing::info!(
                    "{cache}: {mib} MiB of RAM in {partitions} files, of which {file} is one, kept through a kill"
                ),
            }
        }
        let shared_memory = claims.into_iter().map(|claim| Arc::new(PartitionMemory::new(claim))).collect();
        Ok(Self { folder: folder.to_owned(), state_path: state_path.to_owned(), shared_memory })
    }

    /// No files. Earlier ones of the cache in the default folder are removed once the log is open.
    pub fn none(state_path: &Path) -> Self {
        Self {
            folder: DEFAULT_MEMORY_FOLDER.into(),
            state_path: state_path.to_owned(),
            shared_memory: Vec::new(),
        }
    }

    /// The files, for the log to decide whether their content is valid.
    pub fn shared_memory(&self) -> Vec<Arc<dyn SharedMemory>> {
        self.shared_memory.iter().map(|memory| Arc::clone(memory) as Arc<dyn SharedMemory>).collect()
    }

    /// Ends the claims, as the log was not opened. Files that were found stay for the next attempt.
    pub fn abandon(self) {
        self.shared_memory.iter().for_each(|memory| memory.abandon());
    }

    /// Returns the files once the log is open, and removes those of partitions that the cache does not have, and those
    /// that an earlier start had in the default folder.
    pub fn into_files(self) -> impl Iterator<Item = Option<Arc<PartitionMemory>>> {
        remove_all(&self.folder, &self.state_path, self.shared_memory.len() as u64..PARTITIONS_MAX);
        let default = Path::new(DEFAULT_MEMORY_FOLDER);
        if !is_same_folder(&self.folder, default) {
            remove_unlocked(default, &self.state_path, 0..PARTITIONS_MAX);
        }
        self.shared_memory.into_iter().map(Some).chain(std::iter::repeat_with(|| None))
    }
}

/// Whether two paths lead to one folder; `true`, too, if that cannot be found out.
fn is_same_folder(a: &Path, b: &Path) -> bool {
    let number = |path| std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
    match (number(a), number(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => true,
    }
}

/// Checks that the folder has room for new files of `bytes` bytes each, counting what they take already. A file with
/// content is kept with the room that there is.
fn has_room(claims: &[Claim], bytes: u64) -> io::Result<()> {
    let (mut wanted, mut taken, mut free) = (0, 0, 0);
    for claim in claims.iter().filter(|claim| claim.memory_id() == 0) {
        let (own, beside) = claim.room()?;
        (wanted, taken, free) = (wanted + bytes, taken + own, beside);
    }
    if taken + free < wanted {
        let have = (taken + free) >> 20;
        return Err(io::Error::other(format!(
            "it has room for {have} MiB, and the RAM tier wants {}",
            wanted >> 20
        )));
    }
    Ok(())
}
