//! A closed volume: made, made larger, deleted. Each is done whole, or as a whole by the next try.

use crate::config::{Config, Error, Files, check_room, is_there};
use crate::framing::Blocks;
use crate::raw_device::{check_unused, is_block_device, wipe};
use crate::unfinished::{Resize, finish_deletion, finish_resize, parts, remove};
use crate::volume::Volume;
use crate::volume_lock::VolumeLock;
use granary_log::{CrashPolicy, Log, create_folders, sync_folder};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

impl Volume {
    /// Makes a volume, empty and closed. A relative path of a device is one from the working directory of this process.
    ///
    /// # Errors
    /// There is one of this name, the sizes make no sense, there is no memory for the map, a file cannot be made, or
    /// the device is none, is in use, or has data on it.
    pub fn create(folder: &Path, name: &str, config: &Config) -> Result<(), Error> {
        Self::make(folder, name, config, check_unused)
    }

    /// Like [`create`](Self::create), on a device that may have data on it, which is lost.
    ///
    /// # Errors
    /// The errors of [`create`](Self::create), but for data on the device.
    pub fn create_over(folder: &Path, name: &str, config: &Config) -> Result<(), Error> {
        Self::make(folder, name, config, wipe)
    }

    fn make(
        folder: &Path,
        name: &str,
        config: &Config,
        take_device: impl FnOnce(&Path, u64) -> Result<OwnedFd, Error>,
    ) -> Result<(), Error> {
        let files = Files::new(folder, name)?;
        let mut config = Config { formatted: false, ..config.clone() };
        let bytes = config.geometry()?.file_bytes();
        drop(config.map.create(config.blocks())?);
        if let Some(device) = &mut config.device {
            // Whoever opens the volume may be elsewhere.
            *device = std::path::absolute(&*device).map_err(Error::io("find", device))?;
        }
        make_folder(folder).map_err(Error::io("make the folder", folder))?;
        let lock = Arc::new(VolumeLock::take(&files)?);
        if is_there(&files.config())? {
            return Err(Error::Exists { name: name.to_owned() });
        }
        finish_deletion(&files)?;
        let options = config.log_options(&files, CrashPolicy::StartEmpty)?;
        for path in parts(&files, Some(&config)) {
            if is_there(&path)? {
                return Err(Error::InTheWay { path });
            }
        }
        if let Some(device) = &config.device {
            if is_block_device(device) {
                check_room(device, measure(device)?, &config, |size| {
                    let usual = Config::new(size).segment_bytes;
                    Config { size, segment_bytes: usual.min(config.segment_bytes), ..config.clone() }
                })?;
            }
            lock.keep_device(take_device(device, bytes)?);
        }
        // Until all of it is there, what is there is to be deleted.
        config.write(&files, &files.unfinished_delete())?;
        let (log, _) = Log::open(Blocks::default(), &options).inspect_err(|_| {
            // It could not even be begun: nothing of it stays. What cannot be deleted now, the next call deletes.
            let _ = finish_deletion(&files);
        })?;
        // A segment tells this device or file from others. It says what is so anyway.
        log.writer().fill(|id, builder, _| builder.push_zeroes(id, 0, 1));
        log.commit().map_err(Error::io("write", &options.path))?;
        drop(log);
        config.write(&files, &files.config())?;
        remove(&[files.unfinished_delete()])?;
        let volume = Self::open_held(files.clone(), &lock, &mut |_, _| {})?;
        volume.close_with_map().map_err(Error::io("close", &options.path))?;
        Config { formatted: true, ..config }.write(&files, &files.config())
    }

    /// The volumes of a folder, by name. Deletions that were cut short are finished before.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(folder: &Path) -> Result<Vec<Files>, Error> {
        for files in Files::list_deleted(folder)? {
            match Self::delete_cut_short(&files) {
                // Whoever has it is at it.
                Ok(()) | Err(Error::InUse { .. }) => {}
                Err(error) => tracing::warn!(%error, volume = files.name(), "what is left of it stays"),
            }
        }
        Files::list(folder)
    }

    fn delete_cut_short(files: &Files) -> Result<(), Error> {
        let _lock = VolumeLock::take(files)?;
        if is_there(&files.config())? { Ok(()) } else { finish_deletion(files) }
    }

    /// Deletes a closed volume, or what a deletion that was cut short left of it. What is on a raw device stays there,
    /// and means nothing.
    ///
    /// # Errors
    /// There is none of this name, or another process has it open.
    pub fn delete(folder: &Path, name: &str) -> Result<(), Error> {
        let files = Files::new(folder, name)?;
        let is_any_there = || -> Result<bool, Error> {
            Ok(is_there(&files.config())? || is_there(&files.unfinished_delete())?)
        };
        let _lock =
            if is_any_there()? { VolumeLock::take(&files)? } else { return Err(Error::not_found(&files)) };
        if is_there(&files.config())? {
            // Without its shape there is no volume. What that was need not be known.
            std::fs::rename(files.config(), files.unfinished_delete())
                .map_err(Error::io("delete", &files.config()))?;
        } else if !is_any_there()? {
            // Who had it before deleted it.
            return Err(Error::not_found(&files));
        }
        finish_deletion(&files)
    }

    /// Makes a closed volume larger, and returns the size it had.
    ///
    /// # Errors
    /// The new size is smaller, or makes no sense, or its map finds no memory; or as [`open`](Self::open).
    pub fn resize(folder: &Path, name: &str, size: u64) -> Result<u64, Error> {
        let files = Files::new(folder, name)?;
        let lock = Arc::new(VolumeLock::take_existing(&files)?);
        // One that was begun before and is undone leaves the volume as this one finds it.
        finish_resize(&files)?;
        let before = Config::read(&files)?;
        let after = Config { size, ..before.clone() };
        after.geometry()?;
        drop(after.map.create(after.blocks())?);
        if size < before.size {
            let reason =
                format!("{size} is smaller than the volume, which has {}: that would lose data", before.size);
            return Err(Error::Invalid { option: "size", reason });
        }
        if let Some(device) = &before.device {
            check_room(device, measure(device)?, &after, |size| Config { size, ..before.clone() })?;
        }
        // Closed cleanly, all of it is in the map, and the log may have more segments.
        let volume = Self::open_held(files.clone(), &lock, &mut |_, _| {})?;
        volume.close_with_map().map_err(Error::io("close", &before.log_path(&files)))?;
        let after = Config { size, ..Config::read(&files)? };
        // From here on it is larger: whoever opens it next does what is left.
        after.write(&files, &files.unfinished_resize())?;
        match finish_resize(&files)? {
            Resize::Finished => Ok(before.size),
            Resize::Undone(error) => Err(error),
        }
    }
}

/// The bytes of a device.
fn measure(device: &Path) -> Result<u64, Error> {
    let end = File::open(device).and_then(|mut file| file.seek(SeekFrom::End(0)));
    end.map_err(Error::io("measure", device))
}

/// Makes a folder and those above it that are not there. Each survives a loss of power, as what comes into it does:
/// also where another call made it that was killed before it was synced.
fn make_folder(folder: &Path) -> io::Result<()> {
    let is_missing = |above: &&Path| !above.as_os_str().is_empty() && !above.exists();
    let missing = folder.ancestors().take_while(is_missing).count();
    create_folders(folder)?;
    folder.ancestors().take(missing.max(1)).collect::<Vec<_>>().into_iter().rev().try_for_each(sync_folder)
}
