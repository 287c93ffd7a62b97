//! Volumes as exports.

mod changes;
mod finished;
mod reads;
mod session;

use crate::export::{Export, Exports, Session};
use granary_volume::Volume;
use session::VolumeSession;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Returns the name of the default export among these: the only one, or `default`.
pub fn default_export<'a>(mut names: impl Iterator<Item = &'a str>) -> &'a str {
    match (names.next(), names.next()) {
        (Some(only), None) => only,
        _ => "default",
    }
}

/// The volumes of a server by name.
pub struct VolumeExports {
    volumes: BTreeMap<String, Arc<VolumeExport>>,
    default_name: String,
}

impl VolumeExports {
    /// Exports of open volumes. The only one, or the one named `default`, is the default export.
    pub fn new(volumes: impl IntoIterator<Item = Arc<Volume>>) -> Self {
        let export = |volume: Arc<Volume>| {
            (volume.name().to_owned(), Arc::new(VolumeExport { volume, is_read_only: false }))
        };
        let volumes: BTreeMap<_, _> = volumes.into_iter().map(export).collect();
        let default_name = default_export(volumes.keys().map(String::as_str)).to_owned();
        Self { volumes, default_name }
    }

    /// Sets another default export. If no volume has the name, clients that name no export are refused.
    pub fn with_default(self, name: &str) -> Self {
        Self { default_name: name.to_owned(), ..self }
    }

    /// Refuses all changes of clients. The volumes themselves are open for writing.
    pub fn read_only(self) -> Self {
        let read_only = |(name, export): (String, Arc<VolumeExport>)| {
            (name, Arc::new(VolumeExport { volume: Arc::clone(&export.volume), is_read_only: true }))
        };
        Self { volumes: self.volumes.into_iter().map(read_only).collect(), default_name: self.default_name }
    }
}

impl Exports for VolumeExports {
    fn open(&self, name: &str) -> Option<Arc<dyn Export>> {
        let name = if name.is_empty() { &self.default_name } else { name };
        Some(Arc::clone(self.volumes.get(name)?) as Arc<dyn Export>)
    }

    fn names(&self) -> Vec<(String, String)> {
        let described = |(name, export): (&String, &Arc<VolumeExport>)| {
            (name.clone(), export.description().unwrap_or_default())
        };
        self.volumes.iter().map(described).collect()
    }
}

/// A volume as an export.
struct VolumeExport {
    volume: Arc<Volume>,
    is_read_only: bool,
}

impl Export for VolumeExport {
    fn name(&self) -> String {
        self.volume.name().to_owned()
    }

    fn size(&self) -> u64 {
        self.volume.config().size
    }

    fn read_only(&self) -> bool {
        self.is_read_only
    }

    fn preferred_block(&self) -> u32 {
        self.volume.config().block_size as u32
    }

    fn description(&self) -> Option<String> {
        let config = self.volume.config();
        Some(format!("a log-structured volume of {} bytes in blocks of {}", config.size, config.block_size))
    }

    fn session(self: Arc<Self>) -> io::Result<Box<dyn Session>> {
        Ok(Box::new(VolumeSession::new(Arc::clone(&self.volume))?))
    }
}
