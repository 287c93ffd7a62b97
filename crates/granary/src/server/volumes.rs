//! The volumes of `granary server`: opened once, for NBD and block devices alike.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

use granary_nbd::default_export;
use granary_volume::{Files, Volume};

use crate::volume::{self, open_with_progress};

/// Volumes that are open.
#[derive(Default)]
pub struct Opened {
    /// The volumes that the server exports.
    pub volumes: Vec<Arc<Volume>>,
    /// The errors of the volumes that could not be opened.
    pub refused: Vec<granary_volume::Error>,
    /// Name of the volume for clients that name none. If it could not be opened, they get none.
    pub default_name: String,
}

/// Opens the volumes of Granary's folder. One that cannot be opened is logged, and the others are served.
///
/// # Errors
/// There are no volumes, or the folder cannot be read.
pub fn open(folder: &Path) -> Result<Opened, Box<dyn Error>> {
    let folder = volume::folder(folder);
    let names = volume::volumes(&folder)?;
    if names.is_empty() {
        let text = format!(
            "there is no volume in {}: make one with {}",
            folder.display(),
            volume::create_command(&folder)
        );
        return Err(text.into());
    }
    let default_name = default_export(names.iter().map(Files::name)).to_owned();
    let mut opened = Opened { default_name, ..Opened::default() };
    for files in &names {
        match open_with_progress(&folder, files.name()) {
            Ok(volume) => opened.volumes.push(Arc::new(volume)),
            Err(error) => {
                tracing::error!("the volume {} is not served: {error}", files.name());
                opened.refused.push(error);
            }
        }
    }
    Ok(opened)
}

/// Closes volumes that are not served any more, all of them even if one fails.
///
/// # Errors
/// A volume could not be made durable.
pub fn close(volumes: Vec<Arc<Volume>>) -> io::Result<()> {
    let mut closed = Ok(());
    for volume in volumes {
        let name = volume.name().to_owned();
        if let Err(error) = volume::close(volume) {
            let text = format!("the volume {name} could not be closed: {error}; what was flushed is on it");
            tracing::error!("{text}");
            closed = closed.and(Err(io::Error::new(error.kind(), text)));
        }
    }
    closed
}
