//! A request that fails for what it asks, or for what is answered, is made again in halves: one key that the source cannot
//! be asked for, or one value that cannot be read, is no concern of who wants others.

use super::flight::{Flight, Loaded};
use super::load::Loader;
use crate::error::DictError;
use crate::limits;
use crate::source::Source;
use arrow::array::{Array, ArrayRef};
use std::ops::Range;

/// What is left to ask for of a flight.
#[derive(Default)]
struct Parts {
    left: Vec<Range<usize>>,
    requests: usize,
    /// Keys that failed each by itself.
    alone: usize,
    has_answer: bool,
    /// The first.
    failure: Option<DictError>,
}

impl Parts {
    /// Whether it is no use to go on: all that is known is what fails, or there were many requests already.
    fn is_hopeless(&self) -> bool {
        self.requests >= limits::PARTS_MAX || !self.has_answer && self.alone > 1
    }

    fn note_failure(&mut self, part: &Range<usize>, error: DictError) {
        self.alone += usize::from(part.len() == 1);
        self.failure.get_or_insert(error);
    }
}

impl Loader {
    /// The rows of a flight's keys; of some of them it may be known only why there are none.
    ///
    /// # Errors
    /// Why none of them can be had.
    pub(super) fn load_parts(
        &self,
        source: &mut Option<Box<dyn Source>>,
        flight: &Flight,
    ) -> Result<Loaded, DictError> {
        let count = flight.keys.len();
        let mut loaded = Loaded { rows: vec![None; count], ..Loaded::default() };
        let mut parts = Parts::default();
        parts.left.push(0..count);
        while let Some(part) = parts.left.pop() {
            if let Some(failure) = parts.failure.as_ref().filter(|_| parts.is_hopeless()) {
                loaded.failures.push((part, failure.clone()));
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
            match self.ask_for_keys(source, |source| source.load(&keys)) {
                Ok(batches) => {
                    parts.has_answer = true;
                    self.count_rows(&batches);
                    self.encode(&flight.keys, part.start, &batches, &mut loaded)?;
                }
                // Of DIRECT nobody else waits for it.
                Err(error) if !error.is_of_request() || self.storage.store().is_none() => return Err(error),
                Err(error) => {
                    parts.note_failure(&part, error.clone());
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
}
