//! The times at which a dictionary is trained, and the values that it is trained on.
//!
//! The first is trained early, on few values, the second on many. From then on the compression ratio is watched: when
//! it falls, the values have changed, and are collected for another one. If a later training fails, values are
//! collected anew after a while, longer each time.

use crate::limits::{
    COMPRESSED_VALUE_BYTES_MIN, DICTIONARY_DIVISOR, EARLY_TRAINING_BYTES, RATIO_WINDOW_BYTES,
    SAMPLE_BYTES_MAX, TRAINING_BYTES, TRAINING_BYTES_MIN, TRAINING_SAMPLES_MIN, TRAINING_WAIT_BITS_MAX,
};

/// If the ratio falls below this share of the ratio right after a training, another one is due.
const FALLEN: f64 = 0.9;

/// Values to train on.
#[derive(Default)]
pub(super) struct TrainingSamples {
    bytes: Vec<u8>,
    sizes: Vec<usize>,
}

impl TrainingSamples {
    /// Adds a value, or the beginning of a long one.
    pub fn add(&mut self, value: &[u8]) {
        let sample = &value[..value.len().min(SAMPLE_BYTES_MAX)];
        self.bytes.extend_from_slice(sample);
        self.sizes.push(sample.len());
    }

    /// Bytes of the values.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// A dictionary of at most `bytes_max` bytes; `None`: the values have too little in common.
    pub fn train(&self, bytes_max: usize) -> Option<Vec<u8>> {
        let bytes = (self.bytes.len() / DICTIONARY_DIVISOR).min(bytes_max);
        let mut dictionary = Vec::with_capacity(bytes);
        zstd_safe::train_from_buffer(&mut dictionary, &self.bytes, &self.sizes).ok()?;
        Some(dictionary)
    }
}

/// The values that the training collects at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Values for the first dictionary.
    Early,
    /// Values for a later dictionary.
    Collecting,
    /// No values: a dictionary is being trained.
    Training,
    /// No values, until the ratio falls or it is time to try again.
    Watching,
}

/// Decides when a dictionary is trained for an application, and collects the values for it.
pub(super) struct Training {
    stage: Stage,
    samples: TrainingSamples,
    /// Bytes of values since the window began, raw and as they are stored.
    window: [u64; 2],
    /// The ratio of the first window after a training.
    ratio: Option<f64>,
    /// The last training, or the first one if none was begun, is the early one.
    was_early: bool,
    /// Failed trainings in a row.
    failures: u32,
    /// Windows until values are collected again whatever the ratio; 0: only the ratio decides.
    windows_to_wait: u32,
    /// Bytes of values for later trainings.
    training_bytes: usize,
}

impl Training {
    /// A training that shares the budget of bytes with others, `trainings` in all, with a minimum for each. With a
    /// dictionary it starts by watching the ratio.
    pub fn new(has_dictionary: bool, trainings: usize) -> Self {
        Self {
            stage: if has_dictionary { Stage::Watching } else { Stage::Early },
            samples: TrainingSamples::default(),
            window: [0; 2],
            ratio: None,
            was_early: !has_dictionary,
            failures: 0,
            windows_to_wait: 0,
            training_bytes: (TRAINING_BYTES / trainings).max(TRAINING_BYTES_MIN),
        }
    }

    /// Bytes of values to collect in the present stage.
    fn enough(&self) -> usize {
        match self.stage {
            Stage::Early => EARLY_TRAINING_BYTES,
            Stage::Collecting => self.training_bytes,
            Stage::Training | Stage::Watching => 0,
        }
    }

    /// Notes that a value was put, of which `kept` bytes are stored.
    pub fn note(&mut self, value: &[u8], kept: usize) {
        if self.stage == Stage::Training {
            return;
        }
        // Shorter values are not compressed.
        if self.samples.len() < self.enough() && value.len() >= COMPRESSED_VALUE_BYTES_MIN {
            self.samples.add(value);
        }
        self.window[0] += value.len() as u64;
        self.window[1] += kept as u64;
        let [raw, kept] = self.window;
        if raw < RATIO_WINDOW_BYTES || self.stage != Stage::Watching {
            return;
        }
        self.window = [0; 2];
        let ratio = raw as f64 / kept.max(1) as f64;
        let is_due = self.windows_to_wait == 1;
        self.windows_to_wait = self.windows_to_wait.saturating_sub(1);
        if is_due || ratio < *self.ratio.get_or_insert(ratio) * FALLEN {
            self.stage = Stage::Collecting;
        }
    }

    /// The collected values, once they are enough. The caller trains on them; none are collected meanwhile.
    pub fn samples_to_train_on(&mut self) -> Option<TrainingSamples> {
        let is_collecting = matches!(self.stage, Stage::Early | Stage::Collecting);
        let has_enough =
            self.samples.len() >= self.enough() && self.samples.sizes.len() >= TRAINING_SAMPLES_MIN;
        if !(is_collecting && has_enough) {
            return None;
        }
        self.was_early = self.stage == Stage::Early;
        self.stage = Stage::Training;
        Some(std::mem::take(&mut self.samples))
    }

    /// Notes the end of a training. `has_dictionary`: it brought a dictionary.
    pub fn has_trained(&mut self, has_dictionary: bool) {
        self.stage = if self.was_early { Stage::Collecting } else { Stage::Watching };
        (self.window, self.ratio) = ([0; 2], None);
        self.failures = if has_dictionary { 0 } else { self.failures + 1 };
        self.windows_to_wait =
            if has_dictionary { 0 } else { 1 << self.failures.min(TRAINING_WAIT_BITS_MAX) };
    }

    pub fn bytes_allocated(&self) -> usize {
        self.samples.bytes.capacity() + self.samples.sizes.capacity() * size_of::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_trained_early_one_from_many_and_another_when_the_ratio_falls() {
        let mut training = Training::new(false, 1);
        let put = |training: &mut Training, bytes: usize, kept: usize| {
            (0..bytes / 1000).for_each(|_| training.note(&[7; 1000], kept));
            training.samples_to_train_on().map(|samples| samples.bytes.len())
        };
        assert_eq!(put(&mut training, EARLY_TRAINING_BYTES / 2, 1000), None);
        assert!(put(&mut training, EARLY_TRAINING_BYTES, 1000).is_some());
        assert_eq!(put(&mut training, 2 * TRAINING_BYTES, 500), None, "one is being trained");
        training.has_trained(true);
        assert!(put(&mut training, TRAINING_BYTES + 1000, 400).is_some());
        training.has_trained(true);
        let window = RATIO_WINDOW_BYTES as usize + 1000;
        for kept in [100, 100, 108] {
            assert_eq!(put(&mut training, window, kept), None, "{kept} of 1000");
        }
        assert_eq!(put(&mut training, window, 115), None, "it has fallen: values are collected");
        assert!(put(&mut training, TRAINING_BYTES + 1000, 115).is_some());
        let mut watching = Training::new(true, 1);
        assert_eq!(put(&mut watching, 2 * TRAINING_BYTES, 500), None);
    }

    #[test]
    fn a_training_that_failed_is_tried_again_later_and_later() {
        let mut training = Training::new(true, 1);
        let window = RATIO_WINDOW_BYTES as usize + 1000;
        // Windows that are put until there are samples. The values of one are enough.
        let mut windows = |has_dictionary: bool| {
            training.has_trained(has_dictionary);
            (1..300).find(|_| {
                (0..window / 1000).for_each(|_| training.note(&[7; 1000], 1000));
                training.samples_to_train_on().is_some()
            })
        };
        // The last window is the one in which samples are collected.
        assert_eq!([false; 3].map(&mut windows), [Some(3), Some(5), Some(9)]);
        assert_eq!((0..8).map(|_| windows(false)).last(), Some(Some(65)));
        assert_eq!(windows(true), None, "the ratio stays");
        assert_eq!(windows(false), Some(3));
    }

    #[test]
    fn no_more_is_collected_than_is_trained_on() {
        for (trainings, most) in [(1, TRAINING_BYTES), (3, TRAINING_BYTES / 3), (100, TRAINING_BYTES_MIN)] {
            let mut training = Training::new(false, trainings);
            for enough in [EARLY_TRAINING_BYTES, most] {
                // As if another application's training ran meanwhile: the samples are not taken.
                (0..2 * TRAINING_BYTES / 1000).for_each(|_| training.note(&[7; 1000], 1000));
                let samples = training.samples_to_train_on().unwrap();
                assert!((enough..enough + 1000).contains(&samples.len()), "{trainings}: {}", samples.len());
                training.has_trained(true);
            }
        }
    }
}
