//! Figures of the last hour, for a page that is opened later.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use granary_dict::Status;
use granary_metrics::Latency;
use granary_sql::{Rights, Session};
use serde_json::{Map, Value, json};

use super::series::Series;
use crate::figures::{LatencyFigure, SideServers, VolumeFigures};
use crate::limits::{HISTORY_FAILURES, HISTORY_SECONDS};

type DictionaryFigure = (&'static str, fn(&Status) -> u64);

/// The figures kept of each dictionary, by their names in `system.dictionaries`.
const FIGURES: &[DictionaryFigure] = &[
    ("keys_requested", |s| s.keys_requested),
    ("keys_hit", |s| s.keys_hit),
    ("keys_expired", |s| s.keys_expired),
    ("keys_missed", |s| s.keys_missed),
    ("hits_memory", |s| s.hits_memory),
    ("hits_buffer", |s| s.hits_buffer),
    ("hits_flash", |s| s.hits_flash),
    ("flash_bytes_read", |s| s.flash_bytes_read),
    ("flash_bytes_written", |s| s.flash_bytes_written),
    ("source_requests", |s| s.source_requests),
    ("source_keys", |s| s.source_keys),
    ("source_errors", |s| s.source_errors),
    ("index_evictions", |s| s.index_evictions),
    ("entries_dropped", |s| s.entries_dropped),
    ("entries_too_large", |s| s.entries_too_large),
    ("element_count", |s| s.element_count),
    ("index_bytes", |s| s.index_bytes),
    ("memory_bytes", |s| s.memory_bytes),
    ("buffer_bytes", |s| s.buffer_bytes),
];

/// The samples of one dictionary, and the failures of its source.
#[derive(Default)]
struct DictionaryTrack {
    series: Series,
    /// Lookups up to the newest sample.
    lookups: Latency,
    /// The oldest first.
    failures: VecDeque<Failure>,
}

/// A failure of a source, and when it was first and last seen.
struct Failure {
    first: u64,
    last: u64,
    text: String,
}

impl DictionaryTrack {
    fn look(&mut self, status: &Status, unix_seconds: u64) {
        self.note_failure(&status.last_exception, unix_seconds);
        let lookups = status.lookups.since(&self.lookups);
        self.lookups = status.lookups;
        let latencies =
            [("lookup_us_p50", lookups.quantile_us(0.5)), ("lookup_us_p99", lookups.quantile_us(0.99))];
        let figures = FIGURES.iter().map(|(name, figure)| (*name, figure(status)));
        self.series.push(unix_seconds, figures.chain(latencies));
    }

    /// A failure that the previous sample had, too, is the same one.
    fn note_failure(&mut self, text: &str, unix_seconds: u64) {
        let before = self.series.newest();
        match self.failures.back_mut() {
            _ if text.is_empty() => {}
            Some(newest) if newest.text == text && Some(newest.last) == before => newest.last = unix_seconds,
            _ => {
                if self.failures.len() == HISTORY_FAILURES {
                    self.failures.pop_front();
                }
                let failure = Failure { first: unix_seconds, last: unix_seconds, text: text.to_owned() };
                self.failures.push_back(failure);
            }
        }
    }

    fn since(&self, unix_seconds: u64) -> Value {
        let failure =
            |failure: &Failure| json!({"first": failure.first, "last": failure.last, "text": failure.text});
        let failures: Vec<Value> = self.failures.iter().map(failure).collect();
        json!({"series": self.series.since(unix_seconds), "failures": failures})
    }
}

/// The samples of one volume.
#[derive(Default)]
struct VolumeTrack {
    series: Series,
    /// Latencies up to the newest sample.
    latencies: BTreeMap<&'static str, Latency>,
}

impl VolumeTrack {
    fn look(&mut self, volume: &VolumeFigures, unix_seconds: u64) {
        let mut figures: Vec<(Cow<'static, str>, u64)> =
            volume.figures.iter().map(|figure| (figure.name.into(), figure.value)).collect();
        for LatencyFigure { name, latency, .. } in &volume.latencies {
            let earlier = self.latencies.insert(name, *latency).unwrap_or_default();
            let latency = latency.since(&earlier);
            figures.push((format!("{name}_us_p50").into(), latency.quantile_us(0.5)));
            figures.push((format!("{name}_us_p99").into(), latency.quantile_us(0.99)));
        }
        self.series.push(unix_seconds, figures);
    }
}

#[derive(Default)]
struct Tracks {
    dictionaries: BTreeMap<String, DictionaryTrack>,
    memcached: Series,
    volumes: BTreeMap<String, VolumeTrack>,
}

/// Samples of everything.
pub struct History {
    side_servers: SideServers,
    tracks: Mutex<Tracks>,
}

impl History {
    pub fn new(side_servers: SideServers) -> Self {
        Self { side_servers, tracks: Mutex::default() }
    }

    /// Samples all dictionaries, memcached and volumes.
    fn sample(&self, session: &Session) {
        let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let dictionaries = session.dictionaries();
        let SideServers { memcached, volumes } = &self.side_servers;
        let figures = memcached.as_ref().map(|memcached| (memcached.figures)()).unwrap_or_default();
        let volumes = volumes.as_ref().map(|volumes| (volumes.figures)()).unwrap_or_default();
        let mut tracks = self.tracks.lock().unwrap_or_else(PoisonError::into_inner);
        tracks.dictionaries.retain(|known, _| dictionaries.iter().any(|(name, _)| name == known));
        for (name, dictionary) in dictionaries {
            let Some(dictionary) = dictionary else { continue };
            tracks.dictionaries.entry(name).or_default().look(&dictionary.status(), unix_seconds);
        }
        if !figures.is_empty() {
            tracks.memcached.push(unix_seconds, figures.iter().map(|figure| (figure.name, figure.value)));
        }
        for volume in volumes {
            tracks.volumes.entry(volume.name.clone()).or_default().look(&volume, unix_seconds);
        }
    }

    /// Takes samples for ever.
    pub async fn watch(self: Arc<Self>, session: Arc<Session>) {
        let mut ticks = tokio::time::interval(Duration::from_secs(HISTORY_SECONDS));
        loop {
            ticks.tick().await;
            self.sample(&session);
        }
    }

    /// `{"dictionaries": {"database.name": {"series": .., "failures": [..]}}, "memcached": {"address": .., "series":
    /// ..}, "volumes": {"address": .., "series": {"name": ..}}}`, of samples taken after `since`. A user who may not
    /// read all dictionaries sees those that he may read, and neither memcached nor volumes.
    pub fn read(&self, rights: &Rights, since: u64) -> Value {
        let tracks = self.tracks.lock().unwrap_or_else(PoisonError::into_inner);
        let visible = tracks.dictionaries.iter().filter(|(name, _)| rights.may_read(name));
        let dictionaries: Map<String, Value> =
            visible.map(|(name, track)| (name.clone(), track.since(since))).collect();
        let seen = Some(&self.side_servers).filter(|_| rights.dictionaries.is_none());
        let memcached = seen.and_then(|seen| seen.memcached.as_ref());
        let memcached = memcached
            .map(|memcached| json!({"address": memcached.address, "series": tracks.memcached.since(since)}));
        let series: Map<String, Value> =
            tracks.volumes.iter().map(|(name, track)| (name.clone(), track.series.since(since))).collect();
        let volumes = seen.and_then(|seen| seen.volumes.as_ref());
        let volumes = volumes.map(|volumes| json!({"address": volumes.address, "series": series}));
        json!({"dictionaries": dictionaries, "memcached": memcached, "volumes": volumes})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_go_on_are_one() {
        let mut track = DictionaryTrack::default();
        let mut look = |unix_seconds, failure: &str| {
            track.look(&Status { last_exception: failure.to_owned(), ..Status::default() }, unix_seconds);
            track.since(unix_seconds)["failures"].clone()
        };
        assert_eq!(look(10, ""), json!([]));
        look(20, "no such table");
        let one = json!({"first": 20, "last": 30, "text": "no such table"});
        assert_eq!(look(30, "no such table"), json!([one]));
        look(40, "");
        let again = json!({"first": 50, "last": 50, "text": "no such table"});
        assert_eq!(look(50, "no such table"), json!([one, again]));
        for unix_seconds in 60..60 + HISTORY_FAILURES as u64 {
            look(unix_seconds, &format!("failure {unix_seconds}"));
        }
        let kept = look(100, "");
        assert_eq!((kept.as_array().unwrap().len(), &kept[0]["first"]), (HISTORY_FAILURES, &json!(60)));
    }

    #[test]
    fn latencies_are_those_since_the_sample_before() {
        let mut track = DictionaryTrack::default();
        let mut look = |unix_seconds, bucket: usize, count| {
            let mut status = Status::default();
            status.lookups.counts[bucket] = count;
            track.look(&status, unix_seconds);
            track.since(unix_seconds - 1)["series"]["lookup_us_p99"].clone()
        };
        assert_eq!(look(10, 3, 5), json!([8]));
        // No lookups meanwhile.
        assert_eq!(look(20, 3, 5), json!([0]));
        assert_eq!(look(30, 3, 6), json!([8]));
        // Another dictionary of that name.
        assert_eq!(look(40, 4, 2), json!([16]));
    }
}
