//! Operations on closed volumes that were begun and not done; whoever comes next finishes them.

use crate::config::{Config, Error, Files, is_there};
use crate::raw_device::is_block_device;
use granary_log::{CrashPolicy, sync_folder};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The outcome of a resize that was begun.
pub(crate) enum Resize {
    /// The volume has the new shape, or none was begun.
    Finished,
    /// The log cannot be that long, for this reason: the volume is as it was.
    Undone(Error),
}

/// Makes a volume larger whose new shape was written down. Does nothing if it has that shape.
pub(crate) fn finish_resize(files: &Files) -> Result<Resize, Error> {
    let Some(after) = Config::read_from(files.unfinished_resize())? else { return Ok(Resize::Finished) };
    let before = Config::read(files)?;
    // An older version may have written it before the volume was noted as formatted.
    let after = Config { formatted: before.formatted, ..after };
    let is_larger = after.size >= before.size && after == Config { size: after.size, ..before.clone() };
    if !is_larger {
        let path = files.unfinished_resize();
        let reason = "it is no larger shape of this volume: remove it".to_owned();
        return Err(Error::Damaged { path, reason });
    }
    let set_geometry = |of: &Config, to: &Config| {
        granary_log::set_geometry(&of.log_options(files, CrashPolicy::Keep(None))?, &to.geometry()?)
            .map_err(Error::from)
    };
    // Where the shape is the new one, the volume may have been used with it since.
    let is_shaped = before == after;
    // First, for it is what can fail: a file system has a longest file.
    if after.device.is_none()
        && let Err(source) = lengthen(&files.data(), after.geometry()?.file_bytes())
    {
        let error = Error::io("make larger", &files.data())(source);
        // A log that is longer already, or cannot be measured, belongs to the new shape: it is tried again.
        let has = std::fs::metadata(files.data()).map_or(0, |data| data.len());
        if is_shaped || has != before.geometry()?.file_bytes() {
            return Err(error);
        }
        // Earlier versions wrote the state file first.
        set_geometry(&after, &before)?;
        remove(&[files.unfinished_resize()])?;
        return Ok(Resize::Undone(error));
    }
    if !is_shaped {
        set_geometry(&before, &after)?;
        after.write(files, &files.config())?;
    }
    remove(&[files.unfinished_resize()])?;
    Ok(Resize::Finished)
}

/// Makes a file that long at least, durably.
fn lengthen(path: &Path, bytes: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    if file.metadata()?.len() < bytes {
        file.set_len(bytes)?;
    }
    file.sync_all()
}

/// Removes what is left of a volume that has no shape any more.
pub(crate) fn finish_deletion(files: &Files) -> Result<(), Error> {
    if !is_there(&files.unfinished_delete())? {
        return Ok(());
    }
    let config = Config::read_damaged(files.unfinished_delete())?;
    remove(&parts(files, config.as_ref()))?;
    remove(&[files.new_config(), files.unfinished_delete()])
}

/// Says which of a volume's files is missing, or cannot be what it was: none is made anew, for what was in it is
/// somewhere else.
pub(crate) fn present(files: &Files, config: &Config) -> Result<(), Error> {
    let log = config.log_path(files);
    let mut needed = vec![files.state_file(), log.clone()];
    needed.extend(config.formatted.then(|| files.checkpoint()));
    for path in needed {
        if !is_there(&path)? {
            return Err(Error::Missing { path });
        }
    }
    if config.device.is_some() && !is_block_device(&log) {
        let reason = "it is no block device: attach the volume's, or delete the volume".to_owned();
        return Err(Error::Damaged { path: log, reason });
    }
    if config.device.is_none() {
        let (has, wants) = (std::fs::metadata(&log), config.geometry()?.file_bytes());
        let has = has.map_err(Error::io("measure", &log))?.len();
        if has < wants {
            let reason = format!("it has {has} bytes of {wants}: a part is missing");
            return Err(Error::Damaged { path: log, reason });
        }
        if has > wants {
            let reason = format!(
                "the log has {has} bytes and not {wants}: it is from before the volume was made larger, put the last one back"
            );
            return Err(Error::Damaged { path: files.config(), reason });
        }
    }
    Ok(())
}

/// The files of a volume beside its shape; where that is not known, those of one whose log is a file.
pub(crate) fn parts(files: &Files, config: Option<&Config>) -> Vec<PathBuf> {
    let mut parts = granary_log::state_files(&files.log_prefix(), 1);
    parts.extend([files.checkpoint(), files.new_checkpoint(), files.unfinished_resize()]);
    if config.is_none_or(|config| config.device.is_none()) {
        parts.push(files.data());
    }
    parts
}

/// Removes files, those that are there.
pub(crate) fn remove(paths: &[PathBuf]) -> Result<(), Error> {
    for path in paths {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("delete", path)(error));
            }
            _ => {}
        }
    }
    // What is gone does not come back with a loss of power. All are in one folder.
    paths.first().map_or(Ok(()), |path| sync_folder(path).map_err(Error::io("sync the folder of", path)))
}
