//! How often the source is asked: MAX_REQUESTS_PER_SECOND.

use super::flight::lock;
use crate::environment::Clock;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// When the last requests began: at most `most` within any one second.
struct Window {
    most: usize,
    begun: VecDeque<Duration>,
}

impl Window {
    /// Begins a request at `now`, which never decreases; or returns how much too early that is, a second at most.
    fn begin(&mut self, now: Duration) -> Result<(), Duration> {
        while self.begun.front().is_some_and(|&first| first + SECOND <= now) {
            self.begun.pop_front();
        }
        if self.begun.len() < self.most {
            self.begun.push_back(now);
            return Ok(());
        }
        Err((self.begun[0] + SECOND).saturating_sub(now).min(SECOND))
    }
}

/// Source threads wait here for their turn.
pub(crate) struct Pace {
    /// `None`: no limit.
    window: Option<Mutex<Window>>,
    clock: Clock,
    /// Never notified: it is a wait that unlocks the window.
    pause: Condvar,
}

impl Pace {
    /// At most `per_second` requests within any one second of `clock`.
    pub fn new(per_second: Option<u64>, clock: Clock) -> Pace {
        let window = |most| Mutex::new(Window { most: most as usize, begun: VecDeque::new() });
        Pace { window: per_second.map(window), clock, pause: Condvar::new() }
    }

    /// Waits until a request may begin. `wanted` says until when it is worth the wait; it is asked before each
    /// try, a second apart or less, and its error ends the wait.
    pub fn wait<E>(&self, wanted: impl Fn() -> Result<Instant, E>) -> Result<(), E> {
        let Some(window) = &self.window else { return wanted().map(drop) };
        loop {
            let until = wanted()?;
            let mut window = lock(window);
            let Err(too_early) = window.begin(self.clock.elapsed()) else { return Ok(()) };
            let pause = too_early.min(until.saturating_duration_since(Instant::now()));
            drop(self.pause.wait_timeout(window, pause).unwrap_or_else(PoisonError::into_inner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_requests_than_it_may_and_none_waits_longer_than_it_must() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let most = random.usize(1..20);
            let mut window = Window { most, begun: VecDeque::new() };
            let (mut now, mut begun) = (Duration::ZERO, Vec::new());
            for _ in 0..500 {
                match window.begin(now) {
                    Ok(()) => begun.push(now),
                    Err(wait) => {
                        let last: Vec<_> = begun.iter().filter(|&&at| at + SECOND > now).collect();
                        assert_eq!(last.len(), most, "seed {seed}: it waits only if it must");
                        now += wait;
                        assert_eq!(window.begin(now), Ok(()), "seed {seed}: and as long as it must");
                        begun.push(now);
                    }
                }
                now += Duration::from_micros(random.u64(0..200_000) * random.u64(0..2));
            }
            for requests in begun.windows(most + 1) {
                assert!(requests[0] + SECOND <= requests[most], "seed {seed}");
            }
        }
    }
}
