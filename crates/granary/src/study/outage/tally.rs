//! Counts answers, and unexpected errors.

use std::time::Instant;

use super::faults::OutageWindow;
use super::kind::{DictionaryKind, KINDS};

/// An answer, or an error with its text.
pub struct OutageRequest {
    pub kind: DictionaryKind,
    pub started: Instant,
    pub ended: Instant,
    pub error: Option<Box<str>>,
}

/// Requests of one kind.
#[derive(Default)]
pub struct Tally {
    /// Answers while the source was there, and while it was away.
    pub answered: [u64; 2],
    /// Errors while the source was away, or in back-off after that.
    pub errors: u64,
    /// Unexpected errors.
    pub faults: u64,
    /// Microseconds of answers while the source was there, and while it was away; sorted.
    pub latencies: [Vec<u32>; 2],
}

/// The counts of all kinds.
pub struct Tallies {
    pub of: [Tally; KINDS.len()],
    /// Texts of the first faults.
    pub examples: Vec<String>,
    /// Seconds from each return of the source to the last error.
    pub recovered: Vec<f64>,
    /// Seconds from the last return of the source to the end of the first answer that needed it.
    pub total: u64,
}

const EXAMPLES: usize = 5;

/// Classifies all requests.
pub fn judge(requests: &[OutageRequest], windows: &[OutageWindow]) -> Tallies {
    let mut of = <[Tally; KINDS.len()]>::default();
    let mut examples = Vec::new();
    let mut recovered = vec![0.0f64; windows.len()];
    for request in requests {
        let tally = &mut of[KINDS.iter().position(|kind| *kind == request.kind).expect("listed")];
        let overlaps =
            |window: &&OutageWindow| request.ended >= window.failed && request.started <= window.returned;
        let is_away = windows.iter().any(|window| overlaps(&window));
        let Some(error) = &request.error else {
            tally.answered[usize::from(is_away)] += 1;
            let micros = (request.ended - request.started).as_micros();
            tally.latencies[usize::from(is_away)].push(u32::try_from(micros).unwrap_or(u32::MAX));
            continue;
        };
        // An error in a later window does not count for an earlier one, however long that has effects.
        let window = windows
            .iter()
            .rposition(|window| request.ended >= window.failed && request.started <= window.may_fail_until);
        match window {
            Some(window) if !request.kind.is_always_answered() => {
                tally.errors += 1;
                let after = request.ended.saturating_duration_since(windows[window].returned).as_secs_f64();
                recovered[window] = recovered[window].max(after);
            }
            _ => {
                tally.faults += 1;
                if examples.len() < EXAMPLES {
                    let when =
                        windows.first().map_or(0.0, |first| seconds_after(request.ended, first.failed));
                    examples.push(format!("{} ({when:.1} s): {error}", request.kind.name()));
                }
            }
        }
    }
    for latencies in of.iter_mut().flat_map(|tally| &mut tally.latencies) {
        latencies.sort_unstable();
    }
    Tallies { of, examples, recovered, total: requests.len() as u64 }
}

fn seconds_after(time: Instant, start: Instant) -> f64 {
    match time.checked_duration_since(start) {
        Some(after) => after.as_secs_f64(),
        None => -(start - time).as_secs_f64(),
    }
}

impl Tallies {
    /// Number of unexpected errors.
    pub fn faults(&self) -> u64 {
        self.of.iter().map(|tally| tally.faults).sum()
    }
}

/// The quantile `share` of sorted latencies, in milliseconds.
pub fn percentile_ms(sorted: &[u32], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).map_or(f64::NAN, |micros| f64::from(*micros) / 1e3)
}
