//! What was done, and which byte of the disk's log had been reached when it was answered.

use crate::disk::Cut;
use crate::logged::LoggedDisk;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An operation that was answered.
struct Operation {
    kind: &'static str,
    /// The bytes of the log when it was begun, and when it was answered.
    begin: u64,
    end: u64,
}

/// Operations, one after the other.
pub struct History {
    disk: Arc<LoggedDisk>,
    operations: Vec<Operation>,
}

impl History {
    pub fn new(disk: &crate::disk::Disk) -> Self {
        Self { disk: disk.logged(), operations: Vec::new() }
    }

    /// The number of the next operation.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Does something and notes when it was answered.
    pub fn note<T>(&mut self, kind: &'static str, operation: impl FnOnce() -> T) -> T {
        let begin = self.disk.log_bytes();
        let answer = operation();
        self.operations.push(Operation { kind, begin, end: self.disk.log_bytes() });
        answer
    }

    /// How many operations had been answered when the log had so many bytes.
    pub fn done(&self, log_bytes: u64) -> usize {
        self.operations.partition_point(|operation| operation.end <= log_bytes)
    }

    /// What an operation was.
    pub fn kind(&self, number: usize) -> Option<&'static str> {
        self.operations.get(number).map(|operation| operation.kind)
    }

    /// Moments of a loss of power: most right after an answer, of each kind of operation in turn, others in the middle
    /// of one.
    pub fn cuts(&self, count: usize, random: &mut Rng) -> Vec<Cut> {
        let mut kinds: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
        for operation in &self.operations {
            kinds.entry(operation.kind).or_default().push(operation);
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        random.shuffle(&mut kinds);
        let mut cuts = Vec::new();
        for number in 0..count {
            let (kind, operations) = &kinds[number % kinds.len()];
            let operation = random.choice(operations).expect("one of this kind");
            let is_answered = random.u8(..4) > 0;
            let log_bytes = match is_answered {
                true => operation.end,
                false => random.u64(operation.begin..=operation.end),
            };
            // None, half or all of what was not flushed.
            let kept = if random.bool() { 0 } else { random.u8(1..=2) };
            cuts.push(Cut { log_bytes, kept, after: kind });
        }
        // The image goes forward.
        cuts.sort_by_key(|cut| cut.log_bytes);
        cuts
    }
}
