//! Several logs in one file: each has a part of it, and state and journal files of its own.
//!
//! The first has the names of a single log, the others a number before the suffix: `<path>.partition.1.state`. If the
//! file is opened as another number of logs, all are empty, and states of logs that are no longer opened are removed:
//! they would miss changes.

use crate::device::{Device, SharedDevice};
use crate::error::OpenError;
use crate::files::with_suffix;
use crate::framing::Framing;
use crate::journal;
use crate::limits::PARTITIONS_MAX;
use crate::lock::{Lock, lock};
use crate::log::Log;
use crate::options::Options;
use crate::recover::Opened;
use crate::state::{self, LastShutdown, Peeked, StateFile, random_number, state_file_of};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A log that is about to be opened, and is locked.
pub(crate) struct Partition {
    options: Options,
    state: StateFile,
}

impl Partition {
    /// Locks `partitions` logs.
    pub fn lock_all(options: &Options, partitions: u64) -> Result<Vec<Self>, OpenError> {
        if is_name_of_partition(&options.state_path) {
            let reason = "names that end in .partition.N are those of a divided cache's own files";
            return Err(OpenError::Invalid { option: "path", reason: reason.into() });
        }
        let geometries = options.geometry.divide(partitions)?;
        let of = |(i, geometry)| {
            let state_path = path_of(&options.state_path, i);
            let fingerprint = options.fingerprint_of(i, partitions);
            let shared_memory = options.shared_memory.get(i as usize).cloned().into_iter().collect();
            let options = Options { geometry, state_path, fingerprint, shared_memory, ..options.clone() };
            let state = options.open_state()?;
            Ok(Self { options, state })
        };
        (0..).zip(geometries).map(of).collect()
    }

    /// A second hold of the lock.
    pub fn clone_lock(&self) -> Result<File, OpenError> {
        self.state.clone_lock().map_err(|source| self.options.state_error(source))
    }

    /// The salt of all partitions: the one in the options, or that of the first one with content.
    fn salt(partitions: &[Self]) -> u64 {
        let asked = partitions.iter().find_map(|partition| partition.options.salt);
        asked.unwrap_or_else(|| {
            let known = partitions.iter().map(|Self { options, state }| {
                state.read(&options.geometry, options.fingerprint, options.depends_on)
            });
            { known }
                .find(|known| known.shutdown != LastShutdown::Unknown)
                .map_or_else(random_number, |known| known.salt)
        })
    }

    /// Opens `partitions`, all logs of `options`, on a device that they share. Logs with higher numbers are
    /// invalidated.
    pub fn start_all<F: Framing + Clone>(
        framing: F,
        partitions: Vec<Self>,
        options: &Options,
        device: Box<dyn Device>,
    ) -> Result<Vec<Opened<F>>, OpenError> {
        invalidate_from(options, partitions.len() as u64)?;
        let device: Arc<dyn Device> = Arc::new(SharedDevice::new(device));
        let salt = Self::salt(&partitions);
        let start =
            |Self { options, state }| Log::start(framing.clone(), Arc::clone(&device), state, &options, salt);
        partitions.into_iter().map(start).collect()
    }
}

/// Removes the state and journal files of logs from number `first` on. Each state is invalidated and synced before its
/// file is removed, for the file may be there again after a loss of power.
fn invalidate_from(options: &Options, first: u64) -> Result<(), OpenError> {
    for i in first.max(1)..PARTITIONS_MAX {
        let state_path = path_of(&options.state_path, i);
        let error = |source| OpenError::State { path: state_path.clone(), source };
        let state = state_file_of(&state_path);
        // A file of that name that is no state is not ours.
        if matches!(state::peek(&state).map_err(error)?, Peeked::Nothing | Peeked::Foreign) {
            continue;
        }
        let options = Options { state_path: state_path.clone(), ..options.clone() };
        options.open_state()?.invalidate().map_err(error)?;
        for path in journal::paths(&state_path).into_iter().chain([state]) {
            match std::fs::remove_file(path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether a path ends in `.partition.N`, as the files of a divided log do, except those of its first part.
pub fn is_name_of_partition(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once(".partition.").is_some_and(|(_, number)| number.parse::<u64>().is_ok())
}

/// The prefix of the names of a log's state and journal files.
pub(crate) fn path_of(state_path: &Path, partition: u64) -> PathBuf {
    match partition {
        0 => state_path.to_owned(),
        i => with_suffix(state_path, &format!(".partition.{i}")),
    }
}

/// The state and journal files of `partitions` logs, whose names begin with [`Options::state_path`].
pub fn state_files(state_path: &Path, partitions: u64) -> Vec<PathBuf> {
    let of = |i| {
        let path = path_of(state_path, i);
        let state = state_file_of(&path);
        std::iter::once(state).chain(journal::paths(&path))
    };
    (0..partitions).flat_map(of).collect()
}

/// Makes `partitions` logs start empty, whatever becomes of their other files, and whether they are open or not.
///
/// # Errors
/// A state file that is there cannot be invalidated.
pub fn invalidate(state_path: &Path, partitions: u64) -> io::Result<()> {
    for state in states(state_path, partitions)? {
        state::invalidate_file(&state.1)?;
    }
    Ok(())
}

/// Like [`invalidate`], for logs that are not open. Returns whether there was content to invalidate.
///
/// # Errors
/// The errors of [`invalidate`]; or one of the logs is open.
pub fn invalidate_closed(state_path: &Path, partitions: u64) -> Result<bool, OpenError> {
    let failed = |source| OpenError::State { path: state_path.to_owned(), source };
    let states = states(state_path, partitions).map_err(failed)?;
    let mut any = false;
    for (path, state) in &states {
        match lock(state).map_err(|errno| failed(errno.into()))? {
            Lock::InUse => return Err(OpenError::InUse { path: path.clone() }),
            Lock::Taken => any |= !state::is_blank(state).map_err(failed)?,
        }
    }
    states.iter().try_for_each(|(_, state)| state::invalidate_file(state)).map_err(failed)?;
    Ok(any)
}

/// Whether one of `partitions` logs is open. Waits up to a second for a holder that is just ending.
///
/// # Errors
/// A state file that is there cannot be opened or locked.
pub fn is_any_open(state_path: &Path, partitions: u64) -> io::Result<bool> {
    for (_, state) in states(state_path, partitions)? {
        if lock(&state)? == Lock::InUse {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Opens the state files that exist.
fn states(state_path: &Path, partitions: u64) -> io::Result<Vec<(PathBuf, File)>> {
    let mut states = Vec::new();
    for i in 0..partitions {
        let path = state_file_of(&path_of(state_path, i));
        match File::options().read(true).write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => states.push((path, opened?)),
        }
    }
    Ok(states)
}

impl Options {
    /// The fingerprint of partition `partition` of `partitions`. It depends on both, because keys move when the number
    /// of partitions changes.
    pub(crate) fn fingerprint_of(&self, partition: u64, partitions: u64) -> u64 {
        self.fingerprint.wrapping_add((partitions - 1) << 32 | partition)
    }
}
