//! Streams with the published statistics of one of Twitter's caches.
//!
//! They cover the traced week with fewer keys: each is requested as often as in the trace, so that lifetimes keep their
//! meaning. Sizes are distributed exponentially around the published mean.

use super::Scale;
use super::clusters::Cluster;
use crate::trace::sizes::{exponential_bytes, fraction};
use crate::trace::{Label, Operation, Request, Trace};
use crate::workload::Skewed;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Seconds that were traced.
const WEEK: u64 = 7 * 24 * 3600;

/// Draws from the statistics of a cluster.
pub fn open(cluster: Cluster, scale: Scale) -> Trace {
    let keys = scale.keys(cluster.requests_an_object);
    let mut popularity = Skewed::new(keys, cluster.zipf, scale.seed);
    let mut random = SmallRng::seed_from_u64(scale.seed.wrapping_add(1));
    let name = format!("twitter{}", cluster.number);
    let requests = (0..scale.requests).map(move |position| {
        let key = popularity.next().expect("endless");
        Ok(Request {
            time: (u128::from(position) * u128::from(WEEK) / u128::from(scale.requests)) as u64,
            key,
            key_bytes: cluster.key_bytes as u32,
            value_bytes: exponential_bytes(key, cluster.value_bytes),
            operation: pick(&cluster.operations, random.random()).unwrap_or(Operation::Get),
            ttl: pick(&cluster.ttls, fraction(key, 3)).unwrap_or(0),
        })
    });
    Trace::new(name, Label::Synthetic, requests)
}

/// The value at `place` (0 to 1) in a list of shares, which need not add up to 1.
fn pick<T: Copy>(shares: &[(T, f64)], place: f64) -> Option<T> {
    let mut left = place * shares.iter().map(|(_, share)| share).sum::<f64>();
    let found = shares.iter().find(|(_, share)| {
        left -= share;
        left < 0.0
    });
    found.or(shares.last()).map(|(value, _)| *value)
}
