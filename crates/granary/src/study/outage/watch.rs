//! Samples once a second: RAM, connections to the source, requests to it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::faults::number;
use super::size::OutageStudySize;
use crate::study::postgres::Postgres;
use crate::study::served::Served;

/// One sample.
pub struct Sample {
    /// Seconds since the start.
    pub seconds: f64,
    pub resident_bytes: u64,
    /// Connections to PostgreSQL; `None`: it could not be asked.
    pub connections: Option<u64>,
    /// Requests to PostgreSQL so far.
    pub source_requests: u64,
}

const PERIOD: Duration = Duration::from_secs(1);

/// Takes samples until the end.
pub fn watch(
    size: &OutageStudySize,
    start: Instant,
    postgres: &Mutex<Postgres>,
    served: &Served,
    is_there: &AtomicBool,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    while start.elapsed() < size.time {
        let clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
                       AND pid <> pg_backend_pid()";
        // The lock is held while a fault is triggered; a paused server would block us.
        let connections = match postgres.try_lock() {
            Ok(postgres) if is_there.load(Ordering::SeqCst) => postgres.number(clients).ok(),
            _ => None,
        };
        samples.push(Sample {
            seconds: start.elapsed().as_secs_f64(),
            resident_bytes: served.resident_bytes(),
            connections,
            source_requests: number(served, "sum(source_requests)").unwrap_or(0),
        });
        std::thread::sleep(PERIOD);
    }
    samples
}
