//! One pass over all events, and its figures.

use granary_sql::format::Format;

use crate::client::Client;
use crate::failure::Result;

/// Figures of a pass, and the dictionary's size after it.
pub struct Pass {
    pub seconds: f64,
    pub lookups: u64,
    pub hits: u64,
    /// Hits in the RAM tier or a write buffer.
    pub hits_memory: u64,
    pub hits_flash: u64,
    pub source_requests: u64,
    pub source_keys: u64,
    pub source_rows: u64,
    pub block_reads: u64,
    pub bytes_written: u64,
    pub entries: u64,
    pub index_bytes: u64,
    pub bytes_allocated: u64,
}

const COUNTERS: &str = "\
SELECT keys_requested, keys_hit, hits_memory + hits_buffer, hits_flash, source_requests, source_keys, source_rows,
       flash_block_reads, flash_bytes_written, element_count, index_bytes, bytes_allocated
FROM system.dictionaries WHERE database = 'default' AND name = 'users'";

impl Pass {
    /// Runs the query and asks `system.dictionaries` before and after.
    pub fn run(client: &Client, query: &str, events: u64) -> Result<Pass> {
        let before = client.numbers::<12>(COUNTERS)?;
        let reply = client.answer(query, Format::TabSeparated, Some(events))?;
        let after = client.numbers::<12>(COUNTERS)?;
        let rose = |i: usize| (after[i] - before[i]) as u64;
        Ok(Pass {
            seconds: reply.seconds,
            lookups: rose(0),
            hits: rose(1),
            hits_memory: rose(2),
            hits_flash: rose(3),
            source_requests: rose(4),
            source_keys: rose(5),
            source_rows: rose(6),
            block_reads: rose(7),
            bytes_written: rose(8),
            entries: after[9] as u64,
            index_bytes: after[10] as u64,
            bytes_allocated: after[11] as u64,
        })
    }
}
