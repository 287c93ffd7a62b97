//! The volumes of `granary server`: opened once, whatever serves them.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

use granary_volume::{Files, Volume};

use crate::volume::{self, open_with_progress};

/// Opens all volumes of Granary's folder.
///
/// # Errors
/// There are none, or one cannot be opened.
pub fn open(folder: &Path) -> Result<Vec<Arc<Volume>>, Box<dyn Error>> {
    let folder = volume::folder(folder);
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
pub fn close(volumes: Vec<Arc<Volume>>) -> io::Result<()> {
    volumes.into_iter().try_for_each(volume::close)
}
