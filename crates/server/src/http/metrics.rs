//! `/metrics`: the state of all dictionaries, memcached and volumes, and the requests served, for Prometheus.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use granary_dict::Status;
use granary_metrics::Latency;
use granary_sql::{Error, Session};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::App;
use super::caller::Caller;
use super::exception::Exception;
use crate::figures::{Figure, Kind, LatencyFigure, Memcached, SideServers, Volumes};
use Kind::{Counter, Gauge};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics.
pub struct Metrics {
    registry: Registry,
    requests: Family<Endpoint, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Endpoint {
    method: String,
    path: String,
    status: u16,
}

const METHODS: [Method; 9] = [
    Method::GET,
    Method::POST,
    Method::HEAD,
    Method::PUT,
    Method::DELETE,
    Method::OPTIONS,
    Method::PATCH,
    Method::TRACE,
    Method::CONNECT,
];

/// 100 us to 26 s, each bucket twice the previous one.
fn latencies() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 2.0, 19))
}

impl Metrics {
    pub fn new(session: Arc<Session>, side_servers: SideServers) -> Self {
        let mut registry = Registry::with_prefix("granary");
        let requests = Family::new_with_constructor(latencies as fn() -> Histogram);
        let help = "Time from a request's head to its answer's first bytes";
        registry.register("http_request_duration_seconds", help, requests.clone());
        registry.register_collector(Box::new(Dictionaries(session)));
        if let Some(memcached) = side_servers.memcached {
            registry.register_collector(Box::new(memcached));
        }
        if let Some(volumes) = side_servers.volumes {
            registry.register_collector(Box::new(volumes));
        }
        Self { registry, requests }
    }
}

/// GET `/metrics`.
pub async fn text(caller: Caller) -> Result<Response, Exception> {
    // The metrics cover all dictionaries.
    if caller.rights.dictionaries.is_some() {
        let message =
            format!("{}: Not enough privileges to see the metrics of all dictionaries", caller.user);
        return Err(Error::access_denied(message).into());
    }
    let mut text = String::new();
    encode(&mut text, &caller.app.metrics.registry)
        .map_err(|error| Error::logical_error(error.to_string()))?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}

/// Measures every request.
pub async fn measure(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    // Unknown methods share one series: clients could invent any number of them.
    let known = METHODS.iter().find(|known| *known == request.method());
    let method = known.map_or("other", Method::as_str).to_owned();
    let started = Instant::now();
    let response = next.run(request).await;
    let endpoint = Endpoint { method, path, status: response.status().as_u16() };
    app.metrics.requests.get_or_create(&endpoint).observe(started.elapsed().as_secs_f64());
    response
}

type OfDictionary = (&'static str, Kind, &'static str, fn(&Status) -> f64);

/// The figures shown of each dictionary.
const FIGURES: &[OfDictionary] = &[
    ("keys_requested", Counter, "Keys asked for, duplicates counted, NULLs not", |s| s.keys_requested as f64),
    ("keys_hit", Counter, "Keys answered by a fresh entry, absent ones too", |s| s.keys_hit as f64),
    ("keys_expired", Counter, "Keys found past their lifetime", |s| s.keys_expired as f64),
    ("keys_missed", Counter, "Keys for which the source was needed", |s| s.keys_missed as f64),
    ("keys_absent", Counter, "Keys answered by an entry that says the source has none", |s| {
        s.keys_negative as f64
    }),
    ("keys_joined", Counter, "Missing keys that another request was already asking for", |s| {
        s.keys_joined as f64
    }),
    ("hits_memory", Counter, "Entries found in the RAM tier", |s| s.hits_memory as f64),
    ("hits_block", Counter, "Entries found in blocks of the RAM tier", |s| s.hits_block as f64),
    ("hits_buffer", Counter, "Entries found in a write buffer", |s| s.hits_buffer as f64),
    ("hits_flash", Counter, "Entries found on flash", |s| s.hits_flash as f64),
    ("flash_block_reads", Counter, "Blocks read", |s| s.flash_block_reads as f64),
    ("flash_read_bytes", Counter, "Bytes read from flash", |s| s.flash_bytes_read as f64),
    ("flash_written_bytes", Counter, "Bytes written to flash", |s| s.flash_bytes_written as f64),
    ("put_bytes", Counter, "Bytes of the keys and rows that were put", |s| s.bytes_put as f64),
    ("write_amplification", Gauge, "Bytes written to flash for each byte put", |s| s.write_amplification),
    ("compression_ratio", Gauge, "Bytes of rows that were put over bytes kept of them", |s| {
        s.compression_ratio
    }),
    ("compression_versions", Gauge, "Dictionaries for compression that rows are compressed with now", |s| {
        s.compression_versions as f64
    }),
    ("compression_trainings", Counter, "Dictionaries for compression that were trained", |s| {
        s.compression_trainings as f64
    }),
    ("flash_blocks_corrupt", Counter, "Blocks that failed their check", |s| s.flash_blocks_corrupt as f64),
    ("entries_dropped", Counter, "Entries not kept because the device was too slow", |s| {
        s.entries_dropped as f64
    }),
    ("entries_too_large", Counter, "Entries not kept because they are too long", |s| {
        s.entries_too_large as f64
    }),
    ("index_evictions", Counter, "Entries that the index had no room for", |s| s.index_evictions as f64),
    (
        "index_displaced",
        Counter,
        "Entries that left the index for others that look like them, estimated",
        |s| s.index_displaced as f64,
    ),
    (
        "index_displaced_at_start",
        Counter,
        "Entries that the start left out for others that look like them",
        |s| s.index_displaced_at_start as f64,
    ),
    ("source_requests", Counter, "Requests to the source", |s| s.source_requests as f64),
    ("source_keys", Counter, "Keys asked of the source", |s| s.source_keys as f64),
    ("source_rows", Counter, "Rows that the source answered", |s| s.source_rows as f64),
    ("source_rows_uninvited", Counter, "Rows of keys that the source was not asked for", |s| {
        s.source_rows_uninvited as f64
    }),
    ("source_errors", Counter, "Requests to the source that failed", |s| s.source_errors as f64),
    ("source_queue", Gauge, "Requests that wait for a connection to the source", |s| s.source_queue as f64),
    ("source_failures_in_a_row", Gauge, "Failures since the source last answered", |s| s.error_count as f64),
    ("elements", Gauge, "Entries, absent and expired ones too", |s| s.element_count as f64),
    ("ram_bytes", Gauge, "RAM: index, RAM tier, write buffers, compression", |s| s.bytes_allocated as f64),
    ("ram_index_bytes", Gauge, "RAM of the index alone", |s| s.index_bytes as f64),
    ("ram_memory_bytes", Gauge, "RAM of the RAM tier, entries and blocks", |s| s.memory_bytes as f64),
    ("ram_block_bytes", Gauge, "RAM of its blocks alone", |s| s.block_bytes as f64),
    ("ram_buffer_bytes", Gauge, "RAM of write buffers alone", |s| s.buffer_bytes as f64),
    ("ram_compression_bytes", Gauge, "RAM that compression takes", |s| s.compression_bytes as f64),
    ("last_successful_update_seconds", Gauge, "Unix time of the source's last answer", |s| {
        s.last_successful_update_time as f64
    }),
];

/// The dictionaries, read at each scrape.
struct Dictionaries(Arc<Session>);

impl fmt::Debug for Dictionaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dictionaries")
    }
}

impl Collector for Dictionaries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let statuses: Vec<(String, Option<Status>)> = self
            .0
            .dictionaries()
            .into_iter()
            .map(|(name, dictionary)| (escaped(&name), dictionary.map(|dictionary| dictionary.status())))
            .collect();
        let help = "1: can be asked; 0: could not be opened or loaded, or is unloaded";
        let mut family = encoder.encode_descriptor("dictionary_up", help, None, MetricType::Gauge)?;
        for (name, status) in &statuses {
            let is_up = status.as_ref().is_some_and(|status| !status.state.is_failed());
            let up = ConstGauge::new(i64::from(is_up));
            up.encode(family.encode_family(&[("dictionary", name.as_str())])?)?;
        }
        let help = "Time of a lookup of a batch of keys";
        let name = "dictionary_lookup_duration_seconds";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (name, status) in &statuses {
            let Some(Status { lookups, .. }) = status else { continue };
            encode_latency(family.encode_family(&[("dictionary", name.as_str())])?, lookups)?;
        }
        for (figure, kind, help, value) in FIGURES {
            let name = format!("dictionary_{figure}");
            let mut family = encoder.encode_descriptor(&name, help, None, metric_type(*kind))?;
            for (dictionary, status) in &statuses {
                let Some(status) = status else { continue };
                let labels = [("dictionary", dictionary.as_str())];
                let one = family.encode_family(&labels)?;
                match kind {
                    Counter => ConstCounter::new(value(status)).encode(one)?,
                    Gauge => ConstGauge::new(value(status)).encode(one)?,
                }
            }
        }
        Ok(())
    }
}

/// memcached, read at each scrape.
impl Collector for Memcached {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Figure { name, kind, help, value } in (self.figures)() {
            let name = format!("memcached_{name}");
            let one = encoder.encode_descriptor(&name, help, None, metric_type(kind))?;
            match kind {
                Counter => ConstCounter::new(value).encode(one)?,
                Gauge => ConstGauge::new(value as f64).encode(one)?,
            }
        }
        Ok(())
    }
}

/// Volumes, read at each scrape. All have the same figures.
impl Collector for Volumes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let volumes = (self.figures)();
        let Some(first) = volumes.first() else { return Ok(()) };
        for (i, LatencyFigure { name, help, .. }) in first.latencies.iter().enumerate() {
            let name = format!("volume_{name}_duration_seconds");
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Histogram)?;
            for volume in &volumes {
                let labels = [("volume", volume.name.as_str())];
                encode_latency(family.encode_family(&labels)?, &volume.latencies[i].latency)?;
            }
        }
        for (i, Figure { name, kind, help, .. }) in first.figures.iter().enumerate() {
            let name = format!("volume_{name}");
            let mut family = encoder.encode_descriptor(&name, help, None, metric_type(*kind))?;
            for volume in &volumes {
                let (labels, value) = ([("volume", volume.name.as_str())], volume.figures[i].value);
                let one = family.encode_family(&labels)?;
                match kind {
                    Counter => ConstCounter::new(value).encode(one)?,
                    Gauge => ConstGauge::new(value as f64).encode(one)?,
                }
            }
        }
        Ok(())
    }
}

fn encode_latency(mut encoder: MetricEncoder<'_>, latency: &Latency) -> fmt::Result {
    let seconds = |bucket| Latency::bucket_us_max(bucket).map_or(f64::MAX, |us| us as f64 / 1e6);
    let counts = latency.counts.iter().enumerate();
    let buckets: Vec<(f64, u64)> = counts.map(|(bucket, count)| (seconds(bucket), *count)).collect();
    encoder.encode_histogram::<NoLabelSet>(latency.total.as_secs_f64(), latency.count(), &buckets, None)
}

fn metric_type(kind: Kind) -> MetricType {
    match kind {
        Counter => MetricType::Counter,
        Gauge => MetricType::Gauge,
    }
}

/// A label's value as OpenMetrics writes it.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
