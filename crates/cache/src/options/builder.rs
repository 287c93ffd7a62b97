//! A builder of options.

use super::{FlashOptions, MemoryDivision, Options, PowerLoss};
use crate::admission::Admission;
use crate::codec::Compression;
use crate::drive::Helpers;
use granary_log::OpenError;
use std::path::PathBuf;

/// Builds a cache's options. Sizes are bytes. [`Options`] and [`FlashOptions`] have rarely used ones, too.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    options: Options,
    path: Option<(PathBuf, u64)>,
    /// Options of flash, which may be set before or after its path.
    fields: Vec<FlashField>,
}

#[derive(Clone, Debug)]
enum FlashField {
    BlockSize(u64),
    WriteBufferSize(u64),
    MaxStoredKeys(u64),
    Admission(Admission),
    MemoryFolder(PathBuf),
    PowerLoss(PowerLoss),
    Fingerprint(u64),
}

impl Builder {
    /// The size of the RAM tier, or of a whole cache without flash, everything counted.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.memory_bytes = bytes;
        self
    }

    /// Most entries of the RAM tier, whatever their size.
    #[must_use]
    pub fn memory_entries(mut self, entries: u64) -> Self {
        self.options.memory_entries = Some(entries);
        self
    }

    /// The division of the RAM tier between entries and blocks. Default: as measured.
    #[must_use]
    pub fn memory_division(mut self, division: MemoryDivision) -> Self {
        self.options.memory_division = division;
        self
    }

    /// Flash: `<path>.bin` of `bytes` bytes, reserved at once, or the block device `path`.
    #[must_use]
    pub fn flash(mut self, path: impl Into<PathBuf>, bytes: u64) -> Self {
        self.path = Some((path.into(), bytes));
        self
    }

    /// The smallest unit read from flash. Default: 4 KiB.
    #[must_use]
    pub fn block_size(self, bytes: u64) -> Self {
        self.set(FlashField::BlockSize(bytes))
    }

    /// The unit written and reused. Default: 1 MiB.
    #[must_use]
    pub fn write_buffer_size(self, bytes: u64) -> Self {
        self.set(FlashField::WriteBufferSize(bytes))
    }

    /// The index never holds more entries, rounded up to a power of two, and to 64.
    #[must_use]
    pub fn max_stored_keys(self, keys: u64) -> Self {
        self.set(FlashField::MaxStoredKeys(keys))
    }

    /// The choice of entries that go to flash. Default: each as it is put.
    #[must_use]
    pub fn admission(self, admission: Admission) -> Self {
        self.set(FlashField::Admission(admission))
    }

    /// A folder on a tmpfs in which the RAM tier outlives a kill of the process; see [`FlashOptions::memory_folder`].
    #[must_use]
    pub fn memory_folder(self, folder: impl Into<PathBuf>) -> Self {
        self.set(FlashField::MemoryFolder(folder.into()))
    }

    /// The content of the cache after a loss of power. Default: nothing.
    #[must_use]
    pub fn power_loss(self, power_loss: PowerLoss) -> Self {
        self.set(FlashField::PowerLoss(power_loss))
    }

    /// Stands for what keys and values mean, as a version of their types: opened with another number than before, the
    /// cache starts empty.
    #[must_use]
    pub fn fingerprint(self, fingerprint: u64) -> Self {
        self.set(FlashField::Fingerprint(fingerprint))
    }

    /// The compression of values. Default: none.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.options.compression = compression;
        self
    }

    /// The threads that help with large batches, shared with other caches.
    #[must_use]
    pub fn helpers(mut self, helpers: Helpers) -> Self {
        self.options.helpers = helpers;
        self
    }

    fn set(mut self, field: FlashField) -> Self {
        self.fields.push(field);
        self
    }

    /// The options.
    ///
    /// # Errors
    /// Flash has options but no path.
    pub fn options(self) -> Result<Options, OpenError> {
        let Self { mut options, path, fields } = self;
        let Some((path, bytes)) = path else {
            return match fields.is_empty() {
                true => Ok(options),
                false => Err(OpenError::Invalid {
                    option: "flash",
                    reason: "other options speak of flash: say its path and size, too".into(),
                }),
            };
        };
        let mut flash = FlashOptions::new(path, bytes);
        for field in fields {
            match field {
                FlashField::BlockSize(bytes) => flash.block_size = bytes,
                FlashField::WriteBufferSize(bytes) => flash.write_buffer_size = bytes,
                FlashField::MaxStoredKeys(keys) => flash.max_stored_keys = Some(keys),
                FlashField::Admission(admission) => flash.admission = admission,
                FlashField::Fingerprint(fingerprint) => flash.fingerprint = fingerprint,
                FlashField::MemoryFolder(folder) => flash.memory_folder = Some(folder),
                FlashField::PowerLoss(power_loss) => flash.power_loss = power_loss,
            }
        }
        options.flash = Some(flash);
        Ok(options)
    }
}
