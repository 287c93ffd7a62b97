//! Streams drawn from published statistics of production caches.
//!
//! Requests are independent of each other: popularity is real, but its change over time is missing.

pub mod cachelib;
pub mod clusters;
mod popularity;
pub mod twitter;

/// Size of the drawn stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Requests.
    pub requests: u64,
    /// Number of keys; `None`: as many as give each key its published mean number of requests.
    pub keys: Option<u64>,
    /// Seed: equal ones repeat the stream.
    pub seed: u64,
}

impl Scale {
    /// Number of keys, given the published mean number of requests per key.
    fn keys(&self, requests_a_key: f64) -> u64 {
        self.keys.unwrap_or((self.requests as f64 / requests_a_key.max(1.0)) as u64).max(1)
    }
}
