//! A dictionary's cache: where it lies, and what it held before.

use crate::config::{LayoutKind, SsdSettings};
use crate::definition::Definition;
use crate::environment::Environment;
use crate::error::{Code, DictError};
use crate::limits;
use crate::watermark::WatermarkFile;
use granary_cache::{
    Cache, FlashOptions, Io, Key, Occupant, OpenError, Options, Outcome, PowerLoss, Scan, create_folders,
};
use std::cell::RefCell;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// Rings and buffers belong to the calling thread.
    static IO: RefCell<Io> = RefCell::new(Io::new());
}

/// An open cache and what it may hold.
pub(crate) struct CacheStore {
    cache: Cache,
    /// The configured bound on entries; `None`: as many as fit.
    entries_max: Option<u64>,
    /// Its files, if it has any.
    flash: Option<FlashOptions>,
    /// With UPDATE_FIELD, and entries that survive the process.
    watermark: Option<WatermarkFile>,
    /// Its files were removed, and must not come back.
    removed: AtomicBool,
}

impl CacheStore {
    /// Opens what LAYOUT(..) says; `None` for layouts without a cache.
    ///
    /// # Errors
    /// `BAD_ARGUMENTS` if another dictionary has the same PATH, `PATH_ACCESS_DENIED` if it is not allowed.
    pub fn open(definition: &Definition, environment: &Environment) -> Result<Option<CacheStore>, DictError> {
        let (mut options, entries_max) = match &definition.layout.kind {
            LayoutKind::Direct | LayoutKind::FullLoad(_) => return Ok(None),
            LayoutKind::Memory { cells, compression } => {
                // A cell is an entry, whatever its size.
                let cells = Some(cells.next_power_of_two());
                let options = Options {
                    memory_bytes: u64::MAX,
                    memory_entries: cells,
                    compression: *compression,
                    ..Options::default()
                };
                (options, cells)
            }
            LayoutKind::Ssd(ssd) => {
                let flash = flash_options(ssd, definition, environment)?;
                make_folder(&flash)?;
                let entries_max = flash.max_stored_keys;
                let options = Options {
                    flash: Some(flash),
                    memory_bytes: ssd.memory_cache_size,
                    // Otherwise entries that the bound evicted from flash would stay in RAM.
                    memory_entries: entries_max,
                    compression: ssd.compression,
                    ..Options::default()
                };
                (options, entries_max)
            }
        };
        options.helpers = environment.helpers.clone();
        let flash = options.flash.clone();
        let watermark = flash.as_ref().and_then(|flash| watermark(flash, definition));
        let cache = Cache::open(options).map_err(|error| unopened(definition, &error))?;
        Ok(Some(CacheStore { cache, entries_max, flash, watermark, removed: AtomicBool::new(false) }))
    }

    /// Refuses sizes that do not fit together, and a PATH that is not allowed.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open) that do not depend on existing files.
    pub fn check_shape(definition: &Definition, environment: &Environment) -> Result<(), DictError> {
        let LayoutKind::Ssd(ssd) = &definition.layout.kind else { return Ok(()) };
        let files = flash_options(ssd, definition, environment)?.files();
        files.map(drop).map_err(|error| unopened(definition, &error))
    }

    /// Refuses a PATH where a foreign file lies: opening it would overwrite that.
    ///
    /// # Errors
    /// `BAD_ARGUMENTS` that names the file, and those of [`open`](Self::open).
    pub fn check_place(definition: &Definition, environment: &Environment) -> Result<(), DictError> {
        let LayoutKind::Ssd(ssd) = &definition.layout.kind else { return Ok(()) };
        let found = flash_options(ssd, definition, environment)?.occupant();
        let (file, what, remedy) = match found.map_err(|error| unopened(definition, &error))? {
            Occupant::Fitting => return Ok(()),
            Occupant::Foreign(file) => {
                (file, "is there already, and is no cache of Granary's", "Move it away")
            }
            Occupant::OtherLog(file) => {
                (file, "is the cache of another dictionary, or of this one as it was before", "Remove it")
            }
        };
        Err(DictError::bad_arguments(format!(
            "LAYOUT({}): {} {what}. {remedy}, or give the dictionary another PATH",
            definition.layout.name(),
            file.display()
        )))
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    pub fn entries_max(&self) -> Option<u64> {
        self.entries_max
    }

    /// Looks up a batch with this thread's rings.
    pub fn get_many(&self, keys: &[Key<'_>], now: u32, sink: impl FnMut(usize, Outcome<'_>)) {
        IO.with_borrow_mut(|io| self.cache.get_many(io, keys, now, sink));
    }

    /// Looks up a batch with this thread's rings, and another thread's help if it is large.
    pub fn get_many_parallel(
        &self,
        keys: &[Key<'_>],
        now: u32,
        sinks: [impl FnMut(usize, Outcome<'_>) + Send; 2],
    ) {
        IO.with_borrow_mut(|io| self.cache.get_many_parallel(io, keys, now, sinks));
    }

    /// Visits some more of the resident entries; returns whether there may be others.
    pub fn scan_on(&self, scan: &mut Scan, visit: impl FnMut(&[u8], Option<&[u8]>, u32)) -> bool {
        IO.with_borrow_mut(|io| self.cache.scan_on(io, scan, visit))
    }

    /// The watermark of the source's changes when the cache was closed.
    pub fn load_watermark(&self) -> Option<String> {
        self.watermark.as_ref()?.load()
    }

    /// Saves the watermark that is known now.
    pub fn save_watermark(&self, watermark: Option<&str>) {
        if let Some(file) = &self.watermark
            && !self.removed.load(Ordering::SeqCst)
        {
            file.save(watermark);
        }
    }

    /// Returns once no loss of power brings back what was forgotten or renewed before the call.
    ///
    /// # Errors
    /// `CANNOT_OPEN_FILE`: the cache's files cannot be synced.
    pub fn sync_changes(&self) -> Result<(), DictError> {
        self.cache.sync_changes().map_err(|error| {
            DictError::new(Code::CannotOpenFile, format!("A loss of power may undo the change: {error}"))
        })
    }

    /// Unlinks the files. The cache goes on without names for them, until it is dropped; another one may be made in
    /// their place meanwhile.
    ///
    /// # Errors
    /// `CANNOT_OPEN_FILE`: a file that could not be removed.
    pub fn remove(&self, definition: &Definition) -> Result<(), DictError> {
        self.removed.store(true, Ordering::SeqCst);
        match &self.flash {
            Some(flash) => remove(flash, self.watermark.as_ref(), definition),
            None => Ok(()),
        }
    }

    /// Removes the files of a cache that is not open, except foreign ones.
    ///
    /// # Errors
    /// The errors of [`remove`](Self::remove) and of [`check_shape`](Self::check_shape).
    pub fn remove_of(definition: &Definition, environment: &Environment) -> Result<(), DictError> {
        let LayoutKind::Ssd(ssd) = &definition.layout.kind else { return Ok(()) };
        let flash = flash_options(ssd, definition, environment)?;
        match flash.occupant().map_err(|error| unopened(definition, &error))? {
            Occupant::Foreign(_) => Ok(()),
            Occupant::Fitting | Occupant::OtherLog(_) => {
                remove(&flash, watermark(&flash, definition).as_ref(), definition)
            }
        }
    }

    /// Whether a file exists that a cache would have.
    ///
    /// # Errors
    /// The errors of [`check_shape`](Self::check_shape).
    pub fn has_files(definition: &Definition, environment: &Environment) -> Result<bool, DictError> {
        let LayoutKind::Ssd(ssd) = &definition.layout.kind else { return Ok(false) };
        let files = flash_options(ssd, definition, environment)?.files();
        let files = files.map_err(|error| unopened(definition, &error))?;
        Ok(files.iter().any(|file| file.symlink_metadata().is_ok()))
    }
}

fn remove(
    flash: &FlashOptions,
    watermark: Option<&WatermarkFile>,
    definition: &Definition,
) -> Result<(), DictError> {
    if let Some(watermark) = watermark {
        watermark.remove();
    }
    flash.remove_files().map_err(|error| unopened(definition, &error))
}

/// The watermark file of a cache on flash that looks for changes of its source.
fn watermark(flash: &FlashOptions, definition: &Definition) -> Option<WatermarkFile> {
    definition.source.updates()?;
    let mut beside = flash.state_path.as_ref().unwrap_or(&flash.path).clone().into_os_string();
    beside.push(".mark");
    Some(WatermarkFile::new(beside.into(), flash.fingerprint))
}

fn unopened(definition: &Definition, error: &OpenError) -> DictError {
    let code = match error {
        OpenError::InUse { .. }
        | OpenError::Geometry(_)
        | OpenError::OneSegment { .. }
        | OpenError::Invalid { .. }
        | OpenError::Foreign { .. } => Code::BadArguments,
        OpenError::Device(_)
        | OpenError::State { .. }
        | OpenError::Damaged { .. }
        | OpenError::Older { .. }
        | OpenError::Thread { .. } => Code::CannotOpenFile,
    };
    DictError::new(code, format!("LAYOUT({}): {error}", definition.layout.name()))
}

fn flash_options(
    ssd: &SsdSettings,
    definition: &Definition,
    environment: &Environment,
) -> Result<FlashOptions, DictError> {
    let path = environment.resolve(&ssd.path)?;
    let is_device = std::fs::metadata(&path).is_ok_and(|m| m.file_type().is_block_device());
    // Beside a device there is no room for files.
    let state_path = is_device.then(|| {
        let name = path.to_string_lossy().trim_start_matches('/').replace('/', "_");
        environment.data_dir.join("devices").join(name)
    });
    Ok(FlashOptions {
        state_path,
        block_size: ssd.block_size,
        write_buffer_size: ssd.write_buffer_size,
        // Rounded up as ClickHouse does; the cache's shards share a power of two evenly, too.
        max_stored_keys: ssd
            .max_stored_keys
            .map(|keys| keys.next_power_of_two().max(granary_cache::limits::SHARDS as u64)),
        fingerprint: definition.fingerprint(),
        partitions: partitions(ssd),
        memory_folder: environment.memory_folder.clone(),
        // An older row is a right answer within its lifetime. What a user or the source has changed is synced.
        power_loss: PowerLoss::ServeOlder,
        ..FlashOptions::new(path, ssd.total_bytes())
    })
}

/// Makes the folder of the files beside the data.
fn make_folder(flash: &FlashOptions) -> Result<(), DictError> {
    let folder = flash.state_path.as_ref().unwrap_or(&flash.path).parent().unwrap_or(Path::new("/"));
    create_folders(folder)
        .map_err(|e| DictError::new(Code::CannotOpenFile, format!("PATH '{}': {e}", flash.path.display())))
}

/// The number of partitions of a file: more than one only where the numbers of all blocks would take more than 5 bytes
/// of RAM an entry, and no bound on keys is smaller than a partition's blocks.
fn partitions(ssd: &SsdSettings) -> u64 {
    let blocks = ssd.total_bytes() / ssd.block_size.max(1);
    let wanted = blocks.div_ceil(limits::PARTITION_BLOCKS_MAX).max(1).next_power_of_two();
    let segments = ssd.total_bytes() / ssd.write_buffer_size.max(1);
    // Partitions have one size, whole segments, and write buffers each.
    let divides = 1 << segments.trailing_zeros().min(u64::BITS - 1);
    let affords = 1 << (limits::PARTITION_BUFFERS_BYTES_MAX / ssd.write_buffer_size.max(1)).max(1).ilog2();
    match ssd.max_stored_keys {
        Some(keys) if keys < limits::PARTITION_BLOCKS_MAX => 1,
        _ => wanted.min(divides).min(affords).min(granary_cache::limits::PARTITIONS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use granary_cache::Compression;

    #[test]
    fn large_files_are_divided_into_equal_parts() {
        let of = |gib: u64, write_buffer_size: u64, max_stored_keys: Option<u64>| {
            partitions(&SsdSettings {
                path: String::new(),
                block_size: 4096,
                file_size: gib << 30,
                write_buffer_size,
                read_buffer_size: 0,
                max_partitions_count: 1,
                max_stored_keys,
                memory_cache_size: 0,
                compression: Compression::None,
            })
        };
        assert_eq!([1, 16, 17, 64, 4096].map(|gib| of(gib, 1 << 20, None)), [1, 1, 2, 4, 64]);
        // 5 * 4096, 3 * 16384 and 63 segments are not divided by more.
        assert_eq!((of(20, 1 << 20, None), of(48, 1 << 20, None), of(63, 1 << 30, None)), (2, 4, 1));
        assert_eq!((of(64, 16 << 20, None), of(64, 32 << 20, None), of(64, 1 << 30, None)), (4, 2, 1));
        assert_eq!((of(64, 1 << 20, Some(1000)), of(64, 1 << 20, Some(1 << 30))), (1, 4));
    }
}
