//! Opening a log: its files are locked, and those of others left alone.

use crate::device::{Device, FileDevice, OpenDeviceError};
use crate::error::OpenError;
use crate::framing::Framing;
use crate::geometry::Geometry;
use crate::lock::is_locked;
use crate::log::Log;
use crate::occupant::Occupant;
use crate::options::{CrashPolicy, Options};
use crate::partitions::{Partition, state_files};
use crate::recover::Opened;
use crate::state::{Identity, LastShutdown, StoredState, state_file_of};

/// Writes another geometry into the state file of a log that was stopped cleanly and whose slots are used in any order:
/// from here on the log has the segments of `geometry`. Does nothing if it has them already.
///
/// # Errors
/// The log is open, was not stopped cleanly, or its state file cannot be written.
pub fn set_geometry(options: &Options, geometry: &Geometry) -> Result<(), OpenError> {
    let state = options.open_state()?;
    if state.read(geometry, options.fingerprint, options.depends_on).shutdown == LastShutdown::Clean {
        // The file has grown already.
        return Ok(());
    }
    let StoredState { shutdown, instance, salt, head, .. } =
        state.read(&options.geometry, options.fingerprint, options.depends_on);
    if shutdown != LastShutdown::Clean {
        return Err(OpenError::Damaged { path: state_file_of(&options.state_path) });
    }
    let Options { fingerprint, depends_on, .. } = *options;
    let identity = Identity { geometry: *geometry, fingerprint, instance, salt, memory_id: 0, depends_on };
    let written = state.write(&identity, LastShutdown::Clean, head);
    written.map_err(|source| options.state_error(source))
}

impl<F: Framing> Log<F> {
    /// Opens the log in a file or on a block device.
    pub fn open(framing: F, options: &Options) -> Result<Opened<F>, OpenError>
    where
        F: Clone,
    {
        let mut logs = Self::open_partitions(framing, options, 1)?;
        Ok(logs.pop().expect("one partition is one log"))
    }

    /// Like [`open`](Self::open), on a given device; `options.path` is not touched.
    pub fn open_on(framing: F, device: Box<dyn Device>, options: &Options) -> Result<Opened<F>, OpenError>
    where
        F: Clone,
    {
        let mut logs = Self::open_partitions_on(framing, device, options, 1)?;
        Ok(logs.pop().expect("one partition is one log"))
    }

    /// Opens a file as several logs, each with a part of it and its own state and journal files. If the number of logs
    /// differs from before, all are empty.
    pub fn open_partitions(
        framing: F,
        options: &Options,
        partitions: u64,
    ) -> Result<Vec<Opened<F>>, OpenError>
    where
        F: Clone,
    {
        let occupant = options.occupant(partitions);
        let occupant = occupant.map_err(|source| OpenError::State { path: options.path.clone(), source })?;
        if let Occupant::Foreign(path) = occupant {
            // It may be the open file of another cache, whose state lies elsewhere.
            let is_in_use = path == options.path && is_locked(&path);
            return Err(if is_in_use { OpenError::InUse { path } } else { OpenError::Foreign { path } });
        }
        let mut files = state_files(&options.state_path, partitions);
        files.push(options.path.clone());
        files.retain(|file| std::fs::symlink_metadata(file).is_err());
        // The locks first: another cache's file must not be cut to our size.
        let partitions = Partition::lock_all(options, partitions)?;
        // The previous holder of the locks may have created and filled missing files.
        files.retain(|file| std::fs::symlink_metadata(file).map_or(true, |found| found.len() == 0));
        let geometry = &options.geometry;
        let device = FileDevice::open_in_units(
            &options.path,
            geometry.file_bytes(),
            geometry.block_size(),
            options.space,
        );
        let device = device.map_err(|error| match error {
            OpenDeviceError::InUse { path } => {
                // Another process may have created it meanwhile.
                files.retain(|file| *file != path);
                OpenError::InUse { path }
            }
            other => OpenError::Device(other),
        });
        if let (Ok(device), CrashPolicy::Keep(_)) = (&device, options.crash_policy)
            && let Err(error) = device.drop_cached()
        {
            tracing::warn!(%error, path = %options.path.display(), "the page cache may have what the device does not");
        }
        // The locks are held until a failed open has removed the files that it created.
        let mut holds = Vec::with_capacity(partitions.len());
        let held =
            partitions.iter().try_for_each(|partition| partition.clone_lock().map(|hold| holds.push(hold)));
        let opened = held
            .and(device)
            .and_then(|device| Partition::start_all(framing, partitions, options, Box::new(device)));
        let opened = opened.inspect_err(|_| files.iter().for_each(|file| drop(std::fs::remove_file(file))));
        drop(holds);
        opened
    }

    /// Like [`open_partitions`](Self::open_partitions), on a given device; `options.path` is not touched.
    pub fn open_partitions_on(
        framing: F,
        device: Box<dyn Device>,
        options: &Options,
        partitions: u64,
    ) -> Result<Vec<Opened<F>>, OpenError>
    where
        F: Clone,
    {
        let foreign = options.foreign_file(partitions);
        let foreign = foreign.map_err(|source| options.state_error(source))?;
        if let Some(path) = foreign {
            return Err(OpenError::Foreign { path });
        }
        Partition::start_all(framing, Partition::lock_all(options, partitions)?, options, device)
    }
}
