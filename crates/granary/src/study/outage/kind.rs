//! The dictionaries of the study, and what is expected of each while its source is away.

use crate::failure::{Failure, Result};
use crate::study::postgres::Postgres;
use crate::study::served::Served;

use super::size::OutageStudySize;

/// A dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DictionaryKind {
    /// Cached before the first fault, for longer than the study: always answered.
    Warm,
    /// Entries that live for seconds, and may be answered when expired: always answered.
    Stale,
    /// Entries that live for seconds: answered while the source is there.
    Fresh,
    /// More keys than it can keep: answered while the source is there.
    Cold,
    /// Nothing is cached: answered while the source is there.
    Direct,
}

pub const KINDS: [DictionaryKind; 5] = [
    DictionaryKind::Warm,
    DictionaryKind::Stale,
    DictionaryKind::Fresh,
    DictionaryKind::Cold,
    DictionaryKind::Direct,
];

/// Connections to the source per dictionary.
pub const THREADS: u64 = 4;
/// How long a lookup waits for the source; the default is 60 s.
const WAIT_MS: u64 = 2000;
/// The same for a quick run, which may run beside other load.
const QUICK_WAIT_MS: u64 = 15_000;

impl DictionaryKind {
    pub fn name(self) -> &'static str {
        match self {
            DictionaryKind::Warm => "warm",
            DictionaryKind::Stale => "stale",
            DictionaryKind::Fresh => "fresh",
            DictionaryKind::Cold => "cold",
            DictionaryKind::Direct => "direct",
        }
    }

    /// Percent of the requests.
    pub fn share(self) -> u64 {
        match self {
            DictionaryKind::Warm => 50,
            DictionaryKind::Stale => 20,
            DictionaryKind::Fresh => 15,
            DictionaryKind::Cold => 10,
            DictionaryKind::Direct => 5,
        }
    }

    /// Whether every error is a fault, whatever the source does.
    pub fn is_always_answered(self) -> bool {
        matches!(self, DictionaryKind::Warm | DictionaryKind::Stale)
    }

    /// Maximum keys of a request: fewer for keys that are asked of the source each time.
    pub fn batch_max(self) -> u64 {
        match self {
            DictionaryKind::Warm | DictionaryKind::Stale => 5000,
            DictionaryKind::Fresh => 500,
            DictionaryKind::Cold | DictionaryKind::Direct => 20,
        }
    }

    /// `LAYOUT(...) LIFETIME(...)`.
    pub fn layout(self, size: &OutageStudySize) -> String {
        let wait_ms = if size.is_quick { QUICK_WAIT_MS } else { WAIT_MS };
        let updates = format!("MAX_THREADS_FOR_UPDATES {THREADS} QUERY_WAIT_TIMEOUT_MILLISECONDS {wait_ms}");
        match self {
            DictionaryKind::Warm => format!(
                "LAYOUT(SSD_CACHE(FILE_SIZE 268435456 WRITE_BUFFER_SIZE 1048576 PATH 'warm' {updates})) \
                 LIFETIME(MIN 100000 MAX 100000)"
            ),
            DictionaryKind::Stale => format!(
                "LAYOUT(CACHE(SIZE_IN_CELLS 65536 ALLOW_READ_EXPIRED_KEYS 1 STRICT_MAX_LIFETIME_SECONDS 100000 \
                 {updates})) LIFETIME(MIN 2 MAX 5)"
            ),
            DictionaryKind::Fresh => {
                format!("LAYOUT(CACHE(SIZE_IN_CELLS 65536 {updates})) LIFETIME(MIN 2 MAX 5)")
            }
            DictionaryKind::Cold => format!(
                "LAYOUT(SSD_CACHE(FILE_SIZE 67108864 WRITE_BUFFER_SIZE 1048576 MAX_STORED_KEYS 10000 PATH 'cold' \
                 {updates})) LIFETIME(MIN 100000 MAX 100000)"
            ),
            DictionaryKind::Direct => "LAYOUT(DIRECT())".to_owned(),
        }
    }

    /// Creates the dictionary and returns the keys to ask for: all those of `warm` and `stale` are cached.
    pub fn prepare(self, size: &OutageStudySize, served: &Served, postgres: &Postgres) -> Result<Vec<u64>> {
        let (name, source, layout) = (self.name(), postgres.source("users"), self.layout(size));
        served.ask(&format!(
            "CREATE DICTIONARY {name} (id UInt64, name String, balance Int64) PRIMARY KEY id {source} {layout}"
        ))?;
        let keys: Vec<u64> = match self {
            DictionaryKind::Warm => (0..size.warm).collect(),
            DictionaryKind::Stale | DictionaryKind::Fresh => (0..size.short).collect(),
            // One in eleven is missing.
            DictionaryKind::Cold | DictionaryKind::Direct => (0..size.rows + size.rows / 10).collect(),
        };
        if !self.is_always_answered() {
            return Ok(keys);
        }
        let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        served.post(&format!("/dictionary/{name}"), &bytes)?;
        // A few keys look alike to the index, and one of each pair has evicted the other.
        let resident = served.ask(&format!("SELECT id FROM {name}"))?;
        let resident: Vec<u64> = resident.lines().filter_map(|line| line.parse().ok()).collect();
        match resident.len() as u64 * 100 >= keys.len() as u64 * 99 {
            true => Ok(resident),
            false => Err(Failure::Answer(format!("{} of {} keys of {name}", resident.len(), keys.len()))),
        }
    }
}
