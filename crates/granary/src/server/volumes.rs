//! The volumes of `granary server`: opened once, whatever serves them.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use granary_volume::{Files, Volume};

use crate::volume::open_with_progress;

/// Opens all volumes of Granary's folder.
///
/// # Errors
/// There are none, or one cannot be opened.
pub fn open(folder: &Path) -> Result<Vec<Arc<Volume>>, Box<dyn Error>> {
    let folder = crate::volume::folder(folder);
    let names = if folder.exists() { Files::list(&folder)? } else { Vec::new() };
    if names.is_empty() {
        let text = format!(
            "there is no volume in {}: make one with `granary volume create NAME --size 8GiB`",
            folder.display()
        );
        return Err(text.into());
    }
    let open = |files: &Files| open_with_progress(&folder, files.name()).map(Arc::new);
    Ok(names.iter().map(open).collect::<Result<Vec<_>, _>>()?)
}

/// Closes volumes that nobody serves any more.
///
/// # Errors
/// A volume could not be made durable.
pub fn close(volumes: Vec<Arc<Volume>>) -> Result<(), Box<dyn Error>> {
    for volume in volumes {
        match Arc::try_unwrap(volume) {
            Ok(volume) => volume.close()?,
            // A connection's thread lets go of it in a moment, and closes it then.
            Err(volume) => volume.commit()?,
        }
    }
    Ok(())
}
