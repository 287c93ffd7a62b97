//! Flashiness: will the object be read again before it is updated?

use super::candidate::{COUNT_MAX, Candidate, Decision};
use super::lifetime::Lifetime;
use super::samples::{ObjectCounts, Samples};
use super::svm::{Features, Svm};
use crate::applications::Applications;
use crate::key::Key;
use crate::limits::EXAMPLES_MIN;
use fastrand::Rng;

/// The threshold for admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flashield {
    /// Reads that an object must be expected to get while it is on flash: more means fewer writes and fewer hits.
    pub reads: u8,
}

impl Default for Flashield {
    fn default() -> Self {
        Self { reads: 1 }
    }
}

/// The samples and the machine that learn which objects of one application are read again.
#[derive(Default)]
struct Learner {
    samples: Samples,
    svm: Svm,
}

/// A learner for each application.
pub(super) struct Learners {
    options: Flashield,
    applications: Applications,
    learners: Vec<Learner>,
    lifetime: Lifetime,
    /// Bytes put, by all applications.
    clock: u64,
    random: Rng,
}

impl Learners {
    pub fn new(options: &Flashield, applications: &Applications, flash_bytes: u64, seed: u64) -> Self {
        Self {
            options: options.clone(),
            applications: applications.clone(),
            learners: (0..applications.count()).map(|_| Learner::default()).collect(),
            lifetime: Lifetime::new(flash_bytes),
            clock: 0,
            random: Rng::with_seed(seed),
        }
    }

    pub fn sample_threshold(&self) -> u64 {
        self.learners.iter().map(|learner| learner.samples.below()).max().unwrap_or(0)
    }

    pub fn on_read(&mut self, key: Key<'_>, found: bool) {
        let application = self.applications.index_of(key.bytes());
        self.learners[application].samples.on_read(key.hash(), found, &mut self.random);
    }

    pub fn on_put(&mut self, key: Key<'_>, bytes: u64) {
        self.lifetime.on_put(bytes);
        self.clock += bytes;
        let (lifetime, wanted) = (self.lifetime.bytes(), self.options.reads);
        let application = self.applications.index_of(key.bytes());
        let Learner { samples, svm } = &mut self.learners[application];
        let cut_short = samples.on_put(key.hash(), self.clock);
        let ended = std::iter::from_fn(|| samples.next(lifetime));
        for example in cut_short.into_iter().chain(ended) {
            svm.learn(&features(example.counts), example.reads_after >= wanted);
        }
    }

    pub fn decide(&mut self, candidate: &Candidate<'_>) -> Decision {
        let Candidate { key, bytes, reads, updates } = *candidate;
        let svm = &self.learners[self.applications.index_of(key.bytes())].svm;
        // An object that was never read is not flashy; until enough is learnt, its past reads decide.
        let flashy = reads > 0
            && match svm.examples() < EXAMPLES_MIN {
                true => reads >= self.options.reads.min(COUNT_MAX),
                false => svm.score(&features(ObjectCounts { reads, updates })) > 0.0,
            };
        if !flashy {
            return Decision::Drop;
        }
        self.lifetime.on_admit(bytes);
        Decision::Flash
    }

    /// Examples learnt from, for the application of `key`.
    #[cfg(test)]
    pub fn examples(&self, key: &[u8]) -> u32 {
        self.learners[self.applications.index_of(key)].svm.examples()
    }

    pub fn bytes_allocated(&self) -> usize {
        self.learners.iter().map(|learner| size_of::<Learner>() + learner.samples.bytes_allocated()).sum()
    }
}

fn features(counts: ObjectCounts) -> Features {
    let size = |count: u8| f32::from(count).ln_1p();
    [size(counts.reads), size(counts.updates), 1.0]
}
