//! A trace in memory, prepared for several replays.

use super::NEVER;
use crate::trace::{Label, Operation, Request, Trace, TraceError};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// One request, with its key numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Seconds since the first request; never falls.
    pub seconds: u32,
    /// The key.
    pub key: u32,
    /// Bytes of key and value.
    pub bytes: u32,
    /// Seconds of lifetime once stored; 0 is for ever.
    pub ttl: u32,
    /// The operation.
    pub operation: Operation,
}

/// Requests to replay.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name in tables.
    pub name: String,
    /// How much of it is real.
    pub label: Label,
    /// The requests.
    pub steps: Vec<Step>,
    /// Number of different keys.
    pub keys: u32,
}

impl Workload {
    /// Maximum number of requests: positions have 32 bits, and RAM is finite.
    pub const REQUESTS_MAX: usize = 1 << 30;

    /// Reads a trace, or the first `limit` requests of it.
    pub fn load(trace: Trace, limit: usize) -> Result<Self, TraceError> {
        let (name, label) = (trace.name.clone(), trace.label);
        let limit = limit.min(Self::REQUESTS_MAX);
        let requests = trace.take(limit).collect::<Result<Vec<Request>, TraceError>>()?;
        Ok(Self::new(name, label, &requests))
    }

    /// From requests. A read without its object's size or lifetime takes the key's last known one, else its next; a key
    /// without any size takes the mean.
    pub fn new(name: impl Into<String>, label: Label, requests: &[Request]) -> Self {
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut told: Vec<LastSize> = Vec::new();
        let start = requests.iter().map(|request| request.time).min().unwrap_or(0);
        let mut seconds = 0;
        let mut steps: Vec<Step> = Vec::with_capacity(requests.len());
        for request in requests {
            let next = numbers.len() as u32;
            let key = *numbers.entry(request.key).or_insert(next);
            if key == next {
                told.push(LastSize::default());
            }
            let told = &mut told[key as usize];
            if request.value_bytes > 0 && request.operation != Operation::Delete {
                told.bytes = request.value_bytes;
            }
            if request.ttl > 0 || request.operation == Operation::Set {
                told.ttl = request.ttl;
            }
            seconds = seconds.max(u32::try_from(request.time - start).unwrap_or(NEVER - 1));
            steps.push(Step {
                seconds,
                key,
                bytes: if told.bytes > 0 { told.bytes.saturating_add(request.key_bytes) } else { 0 },
                ttl: told.ttl,
                operation: request.operation,
            });
        }
        let known: Vec<u64> = told.iter().map(|t| u64::from(t.bytes)).filter(|bytes| *bytes > 0).collect();
        let mean = known.iter().sum::<u64>() / (known.len() as u64).max(1);
        for (step, request) in steps.iter_mut().zip(requests).filter(|(step, _)| step.bytes == 0) {
            let bytes = match told[step.key as usize].bytes {
                0 => mean as u32,
                bytes => bytes,
            };
            step.bytes = bytes.saturating_add(request.key_bytes).max(1);
        }
        Self { name: name.into(), label, steps, keys: numbers.len() as u32 }
    }

    /// The requests `times` times, side by side, each time for other keys: a cache that finds a part of the objects
    /// finds the same part with `times` the space. `None`: there would be too many requests or keys.
    pub fn copies(self, times: u32) -> Option<Self> {
        let keys = self.keys.checked_mul(times)?;
        let requests = self.steps.len().checked_mul(times as usize)?;
        if requests > Self::REQUESTS_MAX {
            return None;
        }
        let mut steps = Vec::with_capacity(requests);
        for step in self.steps {
            steps.extend((0..times).map(|copy| Step { key: step.key * times + copy, ..step }));
        }
        Some(Self { steps, keys, ..self })
    }

    /// Returns the same requests with other sizes of objects: `bytes(key)`, for key and value together.
    pub fn with_object_bytes(mut self, bytes: impl Fn(u32) -> u32) -> Self {
        self.steps.iter_mut().for_each(|step| step.bytes = bytes(step.key));
        self
    }

    /// Removes requests for objects of more than `bytes_max` bytes; returns how many there were.
    pub fn leave_out_larger(&mut self, bytes_max: u64) -> usize {
        let before = self.steps.len();
        self.steps.retain(|step| u64::from(step.bytes) <= bytes_max);
        before - self.steps.len()
    }

    /// By request: the position of the next read that a copy made now can answer, or [`NEVER`]. A copy is useless once
    /// the object is written or deleted.
    pub fn next_reads(&self) -> Vec<u32> {
        let mut next = vec![NEVER; self.keys as usize];
        let mut reads = vec![NEVER; self.steps.len()];
        for (position, step) in self.steps.iter().enumerate().rev() {
            let key = step.key as usize;
            reads[position] = next[key];
            next[key] = match step.operation {
                Operation::Get => position as u32,
                Operation::Set | Operation::Delete => NEVER,
                Operation::Add => next[key],
            };
        }
        reads
    }

    /// Bytes of all objects that are ever read or stored, each with its last size.
    pub fn unique_bytes(&self) -> u64 {
        let mut bytes = vec![0; self.keys as usize];
        for step in self.steps.iter().filter(|step| step.operation != Operation::Delete) {
            bytes[step.key as usize] = step.bytes;
        }
        bytes.into_iter().map(u64::from).sum()
    }

    /// Maximum bytes that an unbounded cache holds at a time: less than [`Self::unique_bytes`] if objects are deleted
    /// or their lifetimes end. Budgets are stated as a part of this.
    pub fn working_set_bytes(&self) -> u64 {
        let mut held = vec![(0u32, NEVER); self.keys as usize];
        let mut ends: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        let (mut bytes, mut most) = (0, 0);
        for step in &self.steps {
            while let Some(Reverse((end, key))) = ends.peek().copied()
                && end <= step.seconds
            {
                ends.pop();
                if held[key as usize].1 == end {
                    bytes -= u64::from(std::mem::take(&mut held[key as usize].0));
                    held[key as usize].1 = NEVER;
                }
            }
            let held = &mut held[step.key as usize];
            let stored = match step.operation {
                Operation::Delete => Some((0, NEVER)),
                Operation::Get | Operation::Add if held.0 == step.bytes => None,
                Operation::Add if held.0 > 0 => None,
                _ => Some((step.bytes, step.end())),
            };
            if let Some((size, end)) = stored {
                bytes = bytes - u64::from(held.0) + u64::from(size);
                *held = (size, end);
                if end != NEVER {
                    ends.push(Reverse((end, step.key)));
                }
            }
            most = most.max(bytes);
        }
        most
    }

    /// Number of reads among the requests.
    pub fn reads(&self) -> u64 {
        self.steps.iter().filter(|step| step.operation == Operation::Get).count() as u64
    }
}

impl Step {
    /// When the object's lifetime ends if it is stored now.
    pub fn end(&self) -> u32 {
        if self.ttl == 0 { NEVER } else { self.seconds.saturating_add(self.ttl).min(NEVER - 1) }
    }
}

#[derive(Default)]
struct LastSize {
    bytes: u32,
    ttl: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(time: u64, key: u64, operation: Operation, value_bytes: u32, ttl: u32) -> Request {
        Request { time, key, key_bytes: 10, value_bytes, operation, ttl }
    }

    #[test]
    fn what_a_read_does_not_tell_is_taken_from_what_is_told_elsewhere() {
        use Operation::{Delete, Get, Set};
        let requests = [
            request(100, 7, Get, 0, 0),
            request(101, 7, Set, 90, 60),
            request(100, 7, Get, 0, 0),
            request(103, 8, Get, 0, 0),
            request(104, 7, Delete, 0, 0),
        ];
        let workload = Workload::new("test", Label::RealSized, &requests);
        let seen: Vec<_> = workload.steps.iter().map(|s| (s.seconds, s.key, s.bytes, s.ttl)).collect();
        let expected = [(0, 0, 100, 0), (1, 0, 100, 60), (1, 0, 100, 60), (3, 1, 100, 0), (4, 0, 100, 60)];
        assert_eq!(seen, expected);
        assert_eq!((workload.keys, workload.unique_bytes(), workload.reads()), (2, 200, 3));
        // The copy of the first request is overwritten before it is read.
        assert_eq!(workload.next_reads(), [NEVER, 2, NEVER, NEVER, NEVER]);
    }

    #[test]
    fn copies_are_side_by_side_and_what_is_too_large_is_left_out() {
        use Operation::Get;
        let requests = [request(0, 7, Get, 90, 0), request(1, 8, Get, 190, 0), request(2, 7, Get, 90, 0)];
        let workload = Workload::new("test", Label::RealSized, &requests);
        assert!(workload.clone().copies(u32::MAX).is_none());
        let mut twice = workload.copies(2).unwrap();
        let seen: Vec<_> = twice.steps.iter().map(|step| (step.seconds, step.key, step.bytes)).collect();
        let expected = [(0, 0, 100), (0, 1, 100), (1, 2, 200), (1, 3, 200), (2, 0, 100), (2, 1, 100)];
        assert_eq!((&*seen, twice.keys, twice.working_set_bytes()), (&expected[..], 4, 600));
        assert_eq!((twice.leave_out_larger(100), twice.steps.len()), (2, 4));
    }

    #[test]
    fn the_working_set_is_what_is_good_at_a_time() {
        use Operation::{Delete, Get, Set};
        let requests = [
            request(0, 1, Set, 90, 10),
            request(5, 2, Set, 90, 10),
            // 1 has expired, and 2 is overwritten: both ends of lifetimes are in the heap.
            request(10, 2, Set, 190, 100),
            request(15, 3, Get, 40, 0),
            request(16, 2, Delete, 0, 0),
            request(17, 4, Get, 90, 0),
        ];
        let workload = Workload::new("test", Label::RealSized, &requests);
        assert_eq!(workload.working_set_bytes(), 250);
    }
}
