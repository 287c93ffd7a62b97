//! Streams drawn from published statistics of production caches.
//!
//! Requests are independent of each other: popularity is real, its change with time is not.

pub mod cachelib;
pub mod clusters;
mod popularity;
pub mod twitter;

/// How large a stream to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Requests.
    pub requests: u64,
    /// Keys; by default as many as leave each key its published mean number of requests.
    pub keys: Option<u64>,
    /// Repeats the stream.
    pub seed: u64,
}

impl Scale {
    /// Keys, given how often the statistics say that each is asked for.
    fn keys(&self, requests_a_key: f64) -> u64 {
        self.keys.unwrap_or((self.requests as f64 / requests_a_key.max(1.0)) as u64).max(1)
    }
}
