//! The choice of objects that leave DRAM to be written to flash. It decides and does nothing else: the cache asks it,
//! and so does a replay of a trace.
//!
//! Flash wears out by writes, and most objects of a cache are never read again: an object that is not written costs no
//! wear. After "Flashield: a DramFirst Key-value Cache that Controls Flash Write Amplification" (Eisenman et al., NSDI
//! 2019).

mod budget;
mod candidate;
mod flashield;
mod lifetime;
mod name;
mod returning;
mod reuse;
mod samples;
mod svm;

pub use candidate::{COUNT_MAX, Candidate, Decision};
pub use flashield::Flashield;
pub use name::UnknownAdmission;
pub(crate) use samples::sample_hash;

use crate::applications::Applications;
use crate::key::Key;
use budget::Budget;
use fastrand::Rng;
use flashield::Learners;
use returning::Returning;
use reuse::Reuse;

/// The choice of objects that go to flash.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Admission {
    /// Every entry, as soon as it is put.
    #[default]
    All,
    /// No entry.
    None,
    /// An entry that leaves DRAM is written with this probability (0 to 1).
    Probability(f64),
    /// An entry that leaves DRAM is written if it has left DRAM before, as far as that is remembered.
    RejectFirst,
    /// An entry that leaves DRAM is written if it was read there, or left DRAM before, as far as that is remembered;
    /// and so are a few others.
    Reuse,
    /// An entry that leaves DRAM is written if it is expected to be read again before it is updated.
    Flashield(Flashield),
}

enum Rule {
    Always(Decision),
    Probability(f64),
    RejectFirst(Returning),
    Reuse(Reuse),
    Flashield(Box<Learners>),
}

/// A running policy, with what it remembers of objects.
pub struct Admitter {
    rule: Rule,
    budget: Option<Budget>,
    random: Rng,
}

impl Admitter {
    /// A policy for `flash_bytes` bytes of flash. `bytes_per_day`: a bound on the writes beside the policy's decisions.
    pub fn new(
        admission: &Admission,
        applications: &Applications,
        flash_bytes: u64,
        bytes_per_day: Option<u64>,
        seed: u64,
    ) -> Self {
        let rule = match admission {
            Admission::All => Rule::Always(Decision::Flash),
            Admission::None => Rule::Always(Decision::Drop),
            Admission::Probability(p) => Rule::Probability(p.clamp(0.0, 1.0)),
            Admission::RejectFirst => Rule::RejectFirst(Returning::new(flash_bytes)),
            Admission::Reuse => Rule::Reuse(Reuse::new(flash_bytes, seed)),
            Admission::Flashield(options) => {
                Rule::Flashield(Box::new(Learners::new(options, applications, flash_bytes, seed)))
            }
        };
        Self { rule, budget: bytes_per_day.map(Budget::new), random: Rng::with_seed(seed) }
    }

    /// Sets the bytes of flash that were never written to; by default all of it.
    pub fn set_free_bytes(&mut self, free_bytes: u64) {
        if let Rule::Reuse(reuse) = &mut self.rule {
            reuse.set_free_bytes(free_bytes);
        }
    }

    /// Only reads of keys with a `sample_hash` below this need to be passed to [`on_read`](Self::on_read): few, so that
    /// readers seldom take the admitter's lock.
    pub fn sample_threshold(&self) -> u64 {
        if let Rule::Flashield(learners) = &self.rule { learners.sample_threshold() } else { 0 }
    }

    /// Whether the policy ever writes to flash.
    pub fn writes(&self) -> bool {
        !matches!(self.rule, Rule::Always(Decision::Drop))
    }

    /// Notes a lookup of a key. `found`: it was a hit.
    pub fn on_read(&mut self, key: Key<'_>, found: bool) {
        if let Rule::Flashield(learners) = &mut self.rule {
            learners.on_read(key, found);
        }
    }

    /// Notes that an object was put, new or over an older one.
    pub fn on_put(&mut self, key: Key<'_>, bytes: u64) {
        match &mut self.rule {
            Rule::Always(_) | Rule::Probability(_) => {}
            Rule::RejectFirst(returning) => returning.on_put(bytes, 1.0),
            Rule::Reuse(reuse) => reuse.on_put(bytes),
            Rule::Flashield(learners) => learners.on_put(key, bytes),
        }
    }

    /// Decides about a candidate at `now` (seconds of any clock). An admitted one counts as written.
    pub fn decide(&mut self, candidate: &Candidate<'_>, now: f64) -> Decision {
        let verdict = match &mut self.rule {
            Rule::Always(verdict) => *verdict,
            Rule::Probability(p) if self.random.f64() < *p => Decision::Flash,
            Rule::Probability(_) => Decision::Drop,
            Rule::RejectFirst(returning) => match returning.seen_before(candidate.key) {
                true => Decision::Flash,
                false => Decision::Drop,
            },
            Rule::Reuse(reuse) => reuse.decide(candidate),
            Rule::Flashield(learners) => learners.decide(candidate),
        };
        if verdict == Decision::Flash && self.affords(candidate.bytes, now) {
            return Decision::Flash;
        }
        Decision::Drop
    }

    /// Whether the budget has room for `bytes` bytes, which then count as written.
    pub fn affords(&mut self, bytes: u64, now: f64) -> bool {
        self.budget.as_mut().is_none_or(|budget| budget.spend(bytes, now))
    }

    /// Gives back `bytes` that counted as written: the write buffers had no room.
    pub fn refund(&mut self, bytes: u64) {
        self.budget.iter_mut().for_each(|budget| budget.refund(bytes));
    }

    /// Bytes of RAM that the policy takes.
    pub fn bytes_allocated(&self) -> usize {
        match &self.rule {
            Rule::Always(_) | Rule::Probability(_) => 0,
            Rule::RejectFirst(returning) => returning.bytes_allocated(),
            Rule::Reuse(reuse) => reuse.bytes_allocated(),
            Rule::Flashield(learners) => learners.bytes_allocated(),
        }
    }
}

#[cfg(test)]
mod tests;
