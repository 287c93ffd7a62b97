//! Counters of the last hour, so that whoever opens the page sees what was before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use granary_dict::Status;
use granary_sql::Session;
use serde_json::{Value, json};

use crate::limits::{HISTORY_SAMPLES, HISTORY_SECONDS};

/// Counters of one dictionary at one moment.
struct Sample {
    unix_seconds: u64,
    keys_requested: u64,
    keys_hit: u64,
    source_keys: u64,
    flash_bytes_written: u64,
}

impl Sample {
    fn of(status: &Status, unix_seconds: u64) -> Self {
        Self {
            unix_seconds,
            keys_requested: status.keys_requested,
            keys_hit: status.keys_hit,
            source_keys: status.source_keys,
            flash_bytes_written: status.flash_bytes_written,
        }
    }
}

/// Samples by dictionary, the oldest first.
#[derive(Default)]
pub struct History {
    samples: Mutex<BTreeMap<String, VecDeque<Sample>>>,
}

impl History {
    /// Looks at all dictionaries.
    fn sample(&self, session: &Session) {
        let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let dictionaries = session.dictionaries();
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.retain(|known, _| dictionaries.iter().any(|(name, _)| name == known));
        for (name, dictionary) in dictionaries {
            let Some(dictionary) = dictionary else { continue };
            let samples = samples.entry(name).or_default();
            if samples.len() == HISTORY_SAMPLES {
                samples.pop_front();
            }
            samples.push_back(Sample::of(&dictionary.status(), unix_seconds));
        }
    }

    /// Samples for ever.
    pub async fn watch(self: Arc<Self>, session: Arc<Session>) {
        let mut ticks = tokio::time::interval(Duration::from_secs(HISTORY_SECONDS));
        loop {
            ticks.tick().await;
            self.sample(&session);
        }
    }

    /// `{"database.name": {"time": [...], "keys_requested": [...], ...}}`, of the dictionaries that may be seen.
    pub fn read(&self, may_see: impl Fn(&str) -> bool) -> Value {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |samples: &VecDeque<Sample>| {
            let column = |value: fn(&Sample) -> u64| -> Vec<u64> { samples.iter().map(value).collect() };
            json!({
                "time": column(|s| s.unix_seconds),
                "keys_requested": column(|s| s.keys_requested),
                "keys_hit": column(|s| s.keys_hit),
                "source_keys": column(|s| s.source_keys),
                "flash_bytes_written": column(|s| s.flash_bytes_written),
            })
        };
        let visible = samples.iter().filter(|(name, _)| may_see(name));
        visible.map(|(name, samples)| (name.clone(), of(samples))).collect::<serde_json::Map<_, _>>().into()
    }
}
