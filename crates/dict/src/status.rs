//! What `system.dictionaries` shows.

/// Figures of one dictionary. Counters start at its opening.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    pub state: LoadState,
    /// ClickHouse's name of the layout's class, such as `SSDComplexKeyCache`.
    pub layout_type: &'static str,
    /// The source, without secrets.
    pub source: String,
    pub element_count: u64,
    /// Entries the cache can hold; 0: not known.
    pub capacity: u64,
    /// element_count / capacity.
    pub load_factor: f64,
    /// RAM: index, hot tier, write buffers.
    pub bytes_allocated: u64,
    pub index_bytes: u64,
    /// Rows of all lookups, duplicates counted.
    pub keys_requested: u64,
    /// Answered from the cache, stale and negative answers too.
    pub keys_hit: u64,
    /// Found, but past their lifetime.
    pub keys_expired: u64,
    /// Not in the cache.
    pub keys_missed: u64,
    /// Answered by an entry that says the source has no such key.
    pub keys_negative: u64,
    /// Requested rows that the source then had.
    pub keys_found_at_source: u64,
    /// Missing keys for which another lookup's request was already under way.
    pub keys_joined: u64,
    /// Rows in the cache that could not be decoded (counted as missed).
    pub rows_bad: u64,
    pub hits_memory: u64,
    pub hits_buffer: u64,
    pub hits_flash: u64,
    pub flash_block_reads: u64,
    pub flash_bytes_read: u64,
    pub flash_bytes_written: u64,
    pub source_requests: u64,
    /// Keys asked of the source.
    pub source_keys: u64,
    /// Rows it answered.
    pub source_rows: u64,
    pub source_errors: u64,
    /// keys_hit / keys_requested.
    pub hit_rate: f64,
    /// (keys_hit + keys_found_at_source) / keys_requested.
    pub found_rate: f64,
    pub lifetime_min_seconds: u64,
    pub lifetime_max_seconds: u64,
    /// Unix seconds of opening or of the last reload.
    pub loading_start_time: u64,
    /// Unix seconds of the last request that the source answered; 0: none yet.
    pub last_successful_update_time: u64,
    /// Failures of the source since it last answered.
    pub error_count: u64,
    /// The last failure; empty: none since the source last answered.
    pub last_exception: String,
}

/// ClickHouse's `status` column; an opened dictionary is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadState {
    #[default]
    NotLoaded,
    Loaded,
}

impl LoadState {
    /// ClickHouse's name.
    pub fn name(self) -> &'static str {
        match self {
            LoadState::NotLoaded => "NOT_LOADED",
            LoadState::Loaded => "LOADED",
        }
    }
}
