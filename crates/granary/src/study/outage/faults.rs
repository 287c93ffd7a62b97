//! Stops or pauses PostgreSQL, and brings it back.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::size::{FAULTS, Fault, OutageStudySize};
use crate::failure::Result;
use crate::study::postgres::Postgres;
use crate::study::served::Served;

/// A period without the source.
pub struct OutageWindow {
    pub fault: Fault,
    pub failed: Instant,
    pub returned: Instant,
    /// Until when Granary may stay in back-off after its failures.
    pub may_fail_until: Instant,
    /// Granary's requests to the source in this period.
    pub requests: u64,
}

/// Tolerance for requests under way, and for the clock's whole seconds.
const MARGIN: Duration = Duration::from_secs(5);

/// Triggers all faults, at their times after `start`. `is_there` tells others whether the source may be asked.
pub fn happen(
    size: &OutageStudySize,
    start: Instant,
    postgres: &Mutex<Postgres>,
    served: &Served,
    is_there: impl Fn(bool),
) -> Result<Vec<OutageWindow>> {
    let mut windows = Vec::new();
    for (fault, from, to) in FAULTS {
        let until = |part: f64| (start + size.time.mul_f64(part)).saturating_duration_since(Instant::now());
        std::thread::sleep(until(from));
        is_there(false);
        let mut postgres = postgres.lock().expect("nobody panics with it");
        let asked = number(served, "sum(source_requests)")?;
        let failed = Instant::now();
        match fault {
            Fault::Stopped => postgres.stop(),
            Fault::Paused => postgres.pause(),
        }
        std::thread::sleep(until(to));
        let requests = number(served, "sum(source_requests)")? - asked;
        match fault {
            Fault::Stopped => postgres.start_again()?,
            Fault::Paused => postgres.resume(),
        }
        let returned = Instant::now();
        drop(postgres);
        is_there(true);
        // After failure n Granary waits, like ClickHouse, 5 s and at most 2^(n-1) more; one more failure may be under
        // way.
        // DIRECT has no back-off: each request fails.
        let failures = number(served, "max(if(type LIKE '%Direct', 0, error_count))")?;
        let wait = Duration::from_secs(5 + (1 << failures.min(9)));
        windows.push(OutageWindow {
            fault,
            failed,
            returned,
            may_fail_until: returned + wait + MARGIN,
            requests,
        });
        eprintln!("{fault:?} for {:.1} s, {failures} failures in a row", (returned - failed).as_secs_f64());
    }
    Ok(windows)
}

/// A number from `system.dictionaries`.
pub fn number(served: &Served, what: &str) -> Result<u64> {
    let text = served.ask(&format!("SELECT {what} FROM system.dictionaries"))?;
    text.parse().map_err(|_| crate::failure::Failure::Answer(text))
}
