//! A request that fails for what it asks, or for a value of its answer, is repeated in halves, so that one key that the
//! source cannot be asked for, or one value that cannot be read, does not fail lookups of other keys.

use super::flight::{Flight, Loaded};
use super::load::SourceAccess;
use crate::error::{Code, DictError};
use crate::limits;
use crate::source::Source;
use arrow::array::{Array, ArrayRef};
use std::ops::Range;

/// The parts of a flight's keys that the source is still to be asked for.
#[derive(Default)]
struct Parts {
    left: Vec<Range<usize>>,
    requests: usize,
    has_answer: bool,
    /// The first failure.
    failure: Option<DictError>,
}

impl Parts {
    /// The largest part that is left: a few failing keys leave most others in large parts.
    fn pop(&mut self) -> Option<Range<usize>> {
        let largest = (0..self.left.len()).max_by_key(|i| self.left[*i].len())?;
        Some(self.left.swap_remove(largest))
    }

    /// Why it is no use to go on, if so: all requests so far have failed, or there were many already. `is_left_alone`:
    /// the failures count as an outage by now.
    fn given_up(&self, is_left_alone: bool) -> Option<&DictError> {
        let is_hopeless = self.requests >= limits::PARTS_MAX || !self.has_answer && is_left_alone;
        self.failure.as_ref().filter(|_| is_hopeless)
    }
}

impl SourceAccess {
    /// The rows of a flight's keys; for some of them there may be only a failure.
    ///
    /// # Errors
    /// Why no key could be loaded.
    pub(super) fn load_parts(
        &self,
        source: &mut Option<Box<dyn Source>>,
        flight: &Flight,
    ) -> Result<Loaded, DictError> {
        let count = flight.keys.len();
        let mut loaded = Loaded { rows: vec![None; count], ..Loaded::default() };
        let mut parts = Parts::default();
        parts.left.push(0..count);
        while let Some(part) = parts.pop() {
            if let Some(failure) = parts.given_up(self.backoff_remaining().is_some()) {
                loaded.failures.push((part, self.given_up(parts.requests, failure)));
                continue;
            }
            if parts.requests > 0
                && let Err(error) = self.await_turn(flight.wanted_until())
            {
                loaded.failures.push((part, error));
                continue;
            }
            parts.requests += 1;
            let slice = |array: &ArrayRef| array.slice(part.start, part.len());
            let keys: Vec<ArrayRef> = flight.arrays.iter().map(slice).collect();
            let asked_at = self.clock.now();
            match self.ask_for_keys(source, |source| source.load(&keys)) {
                Ok(batches) => {
                    parts.has_answer = true;
                    self.count_rows(&batches);
                    self.encode(&flight.keys, part.start, &batches, &mut loaded)?;
                    loaded.answered.push((part, asked_at));
                }
                // DIRECT shares no flights: no other lookup waits for it.
                Err(error) if !error.is_of_request() || self.storage.store().is_none() => return Err(error),
                Err(error) => {
                    parts.failure.get_or_insert(error.clone());
                    if part.len() == 1 {
                        self.refuse_key(flight.keys.get(part.start), &error);
                        loaded.failures.push((part, error));
                    } else {
                        let middle = part.start + part.len() / 2;
                        parts.left.extend([middle..part.end, part.start..middle]);
                    }
                }
            }
        }
        match parts.failure {
            Some(failure) if !parts.has_answer => Err(failure),
            _ => Ok(loaded),
        }
    }

    /// The error of keys that were given up after `requests` requests, of which one failed with `failure`.
    fn given_up(&self, requests: usize, failure: &DictError) -> DictError {
        let text = format!(
            "Update of dictionary {} was given up after {requests} requests, of which some failed: {failure}",
            self.name()
        );
        DictError::new(Code::CacheDictionaryUpdateFail, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `keys` stay unanswered where those at `failing` fail, and after how many requests.
    fn ask(keys: usize, failing: &[usize]) -> (usize, usize) {
        let mut parts = Parts::default();
        parts.left.push(0..keys);
        let (mut unanswered, mut refusals) = (0, 0);
        while let Some(part) = parts.pop() {
            if parts.given_up(refusals >= limits::REFUSALS_MAX).is_some() {
                unanswered += part.len();
                continue;
            }
            parts.requests += 1;
            if !failing.iter().any(|key| part.contains(key)) {
                (parts.has_answer, refusals) = (true, 0);
                continue;
            }
            refusals += 1;
            parts.failure.get_or_insert(DictError::bad_arguments("no"));
            match part.len() {
                1 => unanswered += 1,
                len => {
                    let middle = part.start + len / 2;
                    parts.left.extend([middle..part.end, part.start..middle]);
                }
            }
        }
        (unanswered, parts.requests)
    }

    #[test]
    fn keys_that_fail_cost_few_of_the_others() {
        let run = Vec::from_iter(2..22);
        for (failing, most) in [(&[0][..], 1), (&[0, 1], 2), (&[0, 30_000], 2), (&run, 64)] {
            let (unanswered, requests) = ask(65_536, failing);
            assert!(unanswered <= most && requests <= limits::PARTS_MAX, "{unanswered} in {requests}");
        }
        let all = Vec::from_iter(0..1000);
        assert_eq!(ask(1000, &all), (1000, limits::REFUSALS_MAX as usize));
        assert_eq!(ask(2, &[0, 1]), (2, 3));
    }
}
