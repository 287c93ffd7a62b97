//! What `system.dictionaries` shows.

use crate::config::{KeyForm, LayoutKind};
use crate::definition::{Definition, Key};
use crate::full_load::FullLoad;
use crate::lookup::{PoolFigures, SourceAccess, lock};
use granary_cache::Stats;
use granary_metrics::Latency;

/// Figures of one dictionary. Counters start at its opening.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Whether it has been used.
    pub state: LoadState,
    /// ClickHouse's name of the layout's class, such as `SSDComplexKeyCache`.
    pub layout_type: &'static str,
    /// The source, without secrets.
    pub source: String,
    /// Entries, negative and expired ones too.
    pub element_count: u64,
    /// SIZE_IN_CELLS or MAX_STORED_KEYS; 0: as many as fit.
    pub capacity: u64,
    /// element_count / capacity, or how full the index is.
    pub load_factor: f64,
    /// RAM: index, hot tier, write buffers, compression.
    pub bytes_allocated: u64,
    /// RAM of the index alone.
    pub index_bytes: u64,
    /// RAM of the hot tier alone.
    pub memory_bytes: u64,
    /// RAM of blocks in the hot tier.
    pub block_bytes: u64,
    /// RAM of write buffers alone.
    pub buffer_bytes: u64,
    /// Bytes of rows that were put over the bytes kept of them; 1 where nothing is compressed.
    pub compression_ratio: f64,
    /// Dictionaries that rows are compressed with now.
    pub compression_versions: u64,
    /// Dictionaries for compression that were trained.
    pub compression_trainings: u64,
    /// RAM that compression takes.
    pub compression_bytes: u64,
    /// RAM of the children of a hierarchy, in bytes, where all rows are held and they were asked for.
    pub hierarchy_bytes: u64,
    /// Rows of all lookups, duplicates counted.
    pub keys_requested: u64,
    /// Rows answered from the cache by a fresh entry, negative ones too.
    pub keys_hit: u64,
    /// Rows in the cache, but past their lifetime, whether that was shown or not.
    pub keys_expired: u64,
    /// Rows neither fresh nor shown stale: the source was needed.
    pub keys_missed: u64,
    /// Rows answered by an entry that says the source has no such key.
    pub keys_negative: u64,
    /// Requested rows that the source then had.
    pub keys_found_at_source: u64,
    /// Missing keys for which another lookup's request was already under way.
    pub keys_joined: u64,
    /// Cached keys that UPDATE_FIELD said were changed, and that were asked for anew.
    pub keys_updated: u64,
    /// Rows in the cache that could not be decoded (counted as missed).
    pub rows_bad: u64,
    /// Entries found in the RAM tier.
    pub hits_memory: u64,
    /// Of `hits_memory`, those found in a block of flash that the RAM tier keeps.
    pub hits_block: u64,
    /// Entries found in a write buffer.
    pub hits_buffer: u64,
    /// Entries found on flash.
    pub hits_flash: u64,
    /// Blocks read.
    pub flash_block_reads: u64,
    /// Bytes read from flash.
    pub flash_bytes_read: u64,
    /// Bytes written to flash.
    pub flash_bytes_written: u64,
    /// Bytes of keys and rows that were put into the cache.
    pub bytes_put: u64,
    /// flash_bytes_written / bytes_put; 0 where nothing was put.
    pub write_amplification: f64,
    /// Blocks that failed their check, or could not be read: what they held was missing.
    pub flash_blocks_corrupt: u64,
    /// Entries that the index had no room for.
    pub index_evictions: u64,
    /// Entries that left the index because other keys look like theirs: an estimate, from what the index knows.
    pub index_displaced: u64,
    /// Entries on flash that the last start left out of the index because later ones look like theirs.
    pub index_displaced_at_start: u64,
    /// Entries not kept on flash because the device was too slow for them.
    pub entries_dropped: u64,
    /// Entries not kept at all because they are longer than a segment, or their key than a block.
    pub entries_too_large: u64,
    /// How long lookups took, a batch of keys counted once.
    pub lookups: Latency,
    /// Requests to the source.
    pub source_requests: u64,
    /// Keys asked of the source.
    pub source_keys: u64,
    /// Rows that the source answered.
    pub source_rows: u64,
    /// Of `source_rows`, those of keys that it was not asked for: they are ignored.
    pub source_rows_uninvited: u64,
    /// Requests that failed.
    pub source_errors: u64,
    /// Requests that wait for a source thread now.
    pub source_queue: u64,
    /// Keys that these requests ask for.
    pub source_queue_keys: u64,
    /// Requests that the source is answering now.
    pub source_under_way: u64,
    /// Source threads that exist.
    pub source_threads: u64,
    /// Source threads that have a request.
    pub source_threads_active: u64,
    /// keys_hit / keys_requested.
    pub hit_rate: f64,
    /// (keys_hit + keys_found_at_source) / keys_requested; where all rows are held, those of them that were found.
    pub found_rate: f64,
    /// LIFETIME's MIN.
    pub lifetime_min_seconds: u64,
    /// LIFETIME's MAX.
    pub lifetime_max_seconds: u64,
    /// Unix seconds of opening or of the last reload.
    pub loading_start_time: u64,
    /// Unix seconds of the last request that the source answered; 0: none yet.
    pub last_successful_update_time: u64,
    /// Failures of the source since it last answered.
    pub error_count: u64,
    /// The last failure; empty: none since the source last answered. That of a look for changes comes last.
    pub last_exception: String,
}

/// ClickHouse's `status` column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadState {
    #[default]
    /// It was not used yet, and is empty.
    NotLoaded,
    /// All rows are being read, for the first time.
    Loading,
    /// The rows could not be read.
    Failed,
    /// The rows could not be read, and are being read again.
    FailedAndReloading,
    /// The dictionary works.
    Loaded,
    /// The dictionary works, and all rows are being read anew.
    LoadedAndReloading,
}

impl LoadState {
    /// ClickHouse's name.
    pub fn name(self) -> &'static str {
        match self {
            LoadState::NotLoaded => "NOT_LOADED",
            LoadState::Loading => "LOADING",
            LoadState::Failed => "FAILED",
            LoadState::FailedAndReloading => "FAILED_AND_RELOADING",
            LoadState::Loaded => "LOADED",
            LoadState::LoadedAndReloading => "LOADED_AND_RELOADING",
        }
    }

    /// Whether there are no rows to be shown because they could not be read.
    pub fn is_failed(self) -> bool {
        matches!(self, LoadState::Failed | LoadState::FailedAndReloading)
    }
}

/// The figures of a layout that holds all rows; 0 while it holds none.
pub(crate) struct FullLoadFigures {
    pub state: LoadState,
    pub rows: usize,
    pub load_factor: f64,
    pub bytes_allocated: usize,
    pub hierarchy_bytes: usize,
    pub index_bytes: usize,
}

impl Status {
    pub(crate) fn collect(
        definition: &Definition,
        access: &SourceAccess,
        pool: PoolFigures,
        opened_at: u64,
        used: bool,
    ) -> Status {
        let full_load = access.storage.full_load().map(FullLoad::figures);
        let full_load = full_load.as_ref();
        let cache = access.storage.store().map(|store| store.cache().stats()).unwrap_or_default();
        let entries_max = access.storage.store().and_then(|store| store.entries_max()).unwrap_or(0);
        let figures = Self::of_cache(&cache).with_counters(access).with_pool(pool);
        let (requested, hit) = (figures.keys_requested, figures.keys_hit);
        let backoff = lock(&access.backoff);
        Status {
            state: match full_load {
                Some(full_load) => full_load.state,
                // Entries of an earlier run are in use again.
                None if used || cache.entries > 0 => LoadState::Loaded,
                None => LoadState::NotLoaded,
            },
            layout_type: layout_type(definition),
            source: definition.source.describe(),
            element_count: full_load.map_or(cache.entries, |full_load| full_load.rows as u64),
            capacity: entries_max,
            load_factor: match (full_load, entries_max) {
                (Some(full_load), _) => full_load.load_factor,
                (None, 0) => rate(cache.entries, cache.index_slots),
                (None, entries_max) => rate(cache.entries, entries_max),
            },
            bytes_allocated: full_load
                .map_or(cache.bytes_allocated(), |full_load| full_load.bytes_allocated as u64),
            hierarchy_bytes: full_load.map_or(0, |full_load| full_load.hierarchy_bytes as u64),
            index_bytes: full_load.map_or(cache.index_bytes, |full_load| full_load.index_bytes as u64),
            hit_rate: rate(hit, requested),
            found_rate: match full_load {
                // Keys without a row were looked up, too, but not found.
                Some(_) => rate(hit - figures.keys_negative.min(hit), requested),
                None => rate(hit + figures.keys_found_at_source, requested),
            },
            lifetime_min_seconds: definition.lifetime.min_seconds,
            lifetime_max_seconds: definition.lifetime.max_seconds,
            loading_start_time: opened_at,
            last_successful_update_time: backoff.last_success(),
            error_count: backoff.errors().into(),
            last_exception: match backoff.last_failure() {
                "" => lock(&access.update_failure).clone(),
                failure => failure.to_string(),
            },
            ..figures
        }
    }

    /// What only the cache knows.
    fn of_cache(cache: &Stats) -> Status {
        Status {
            memory_bytes: cache.memory_bytes,
            block_bytes: cache.block_bytes,
            buffer_bytes: cache.buffer_bytes,
            compression_ratio: cache.compression_ratio(),
            compression_versions: cache.codec_versions,
            compression_trainings: cache.codec_trainings,
            compression_bytes: cache.codec_bytes,
            hits_memory: cache.hits_memory,
            hits_block: cache.hits_block,
            hits_buffer: cache.hits_buffer,
            hits_flash: cache.hits_flash,
            flash_block_reads: cache.block_reads,
            flash_bytes_read: cache.bytes_read,
            flash_bytes_written: cache.bytes_written,
            bytes_put: cache.bytes_put,
            write_amplification: rate(cache.bytes_written, cache.bytes_put),
            flash_blocks_corrupt: cache.corrupt_blocks,
            index_evictions: cache.evicted_index,
            index_displaced: cache.displaced(),
            index_displaced_at_start: cache.displaced_at_start,
            entries_dropped: cache.puts_dropped,
            entries_too_large: cache.puts_too_large,
            ..Status::default()
        }
    }

    /// Adds what lookups and requests to the source counted.
    fn with_counters(self, access: &SourceAccess) -> Status {
        let counters = &access.counters;
        Status {
            keys_requested: counters.keys_requested.get(),
            keys_hit: counters.keys_hit.get(),
            keys_expired: counters.keys_expired.get(),
            keys_missed: counters.keys_missed.get(),
            keys_negative: counters.keys_negative.get(),
            keys_found_at_source: counters.keys_found_at_source.get(),
            keys_joined: counters.keys_joined.get(),
            keys_updated: counters.keys_updated.get(),
            rows_bad: counters.rows_bad.get(),
            lookups: counters.lookups.read(),
            source_requests: counters.source_requests.get(),
            source_keys: counters.source_keys.get(),
            source_rows: counters.source_rows.get(),
            source_rows_uninvited: counters.source_rows_uninvited.get(),
            source_errors: counters.source_errors.get(),
            source_under_way: counters.source_under_way.get(),
            ..self
        }
    }

    /// Adds the figures of the source's threads.
    fn with_pool(self, pool: PoolFigures) -> Status {
        Status {
            source_queue: pool.waiting,
            source_queue_keys: pool.waiting_keys,
            source_threads: pool.threads,
            source_threads_active: pool.active,
            ..self
        }
    }
}

fn rate(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// ClickHouse's names. Its simple layouts with several key columns are complex.
fn layout_type(definition: &Definition) -> &'static str {
    let form = match (&definition.structure.key, definition.layout.key_form) {
        (Key::Simple { .. }, KeyForm::Simple) => KeyForm::Simple,
        _ => KeyForm::Complex,
    };
    match (&definition.layout.kind, form) {
        (LayoutKind::Ssd(_), KeyForm::Simple) => "SSDCache",
        (LayoutKind::Ssd(_), KeyForm::Complex) => "SSDComplexKeyCache",
        (LayoutKind::Memory { .. }, KeyForm::Simple) => "Cache",
        (LayoutKind::Memory { .. }, KeyForm::Complex) => "ComplexKeyCache",
        (LayoutKind::Direct, KeyForm::Simple) => "Direct",
        (LayoutKind::Direct, KeyForm::Complex) => "ComplexKeyDirect",
        (LayoutKind::FullLoad(layout), form) => layout.type_name(form),
    }
}
