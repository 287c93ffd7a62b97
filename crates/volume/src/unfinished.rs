//! What was begun with a closed volume and not done, finished by whoever comes next.

use crate::config::{Config, Error, Files};
use granary_log::Options;
use std::io;
use std::path::PathBuf;

/// Makes a volume larger whose new shape was written down; a volume that has the shape it is to have stays as it is.
pub(crate) fn finish_resize(files: &Files) -> Result<(), Error> {
    let Some(after) = Config::read_from(files.resized())? else { return Ok(()) };
    let before = Config::read(files)?;
    granary_log::grow(&before.log_options(files)?, &after.geometry()?)?;
    after.write(files, &files.config())?;
    remove(&[files.resized()])
}

/// Removes what is left of a volume that has no shape any more.
pub(crate) fn finish_deletion(files: &Files) -> Result<(), Error> {
    let Some(config) = Config::read_from(files.deleted())? else { return Ok(()) };
    remove(&parts(files, &config, &config.log_options(files)?))?;
    remove(&[files.deleted()])
}

/// The files of a volume beside its shape.
pub(crate) fn parts(files: &Files, config: &Config, options: &Options) -> Vec<PathBuf> {
    let mut parts = options.state_files(1);
    parts.extend([files.checkpoint(), files.resized()]);
    if config.device.is_none() {
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
    Ok(())
}
