//! Runs that are compared take turns, several times each; the median is quoted.

/// Seconds (or another unit) of one contender's runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    values: Vec<f64>,
}

impl Samples {
    /// Adds a run.
    pub fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    /// The middle run (the mean of the two in the middle); NaN without runs.
    pub fn median(&self) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        }
    }

    /// The smallest run; NaN without runs.
    pub fn min(&self) -> f64 {
        self.values.iter().copied().fold(f64::NAN, f64::min)
    }

    /// The largest run; NaN without runs.
    pub fn max(&self) -> f64 {
        self.values.iter().copied().fold(f64::NAN, f64::max)
    }
}

/// Calls `run(contender)` for contender 0..`contenders` in turn, `rounds` times, and collects what
/// each call returns. The first error ends it.
pub fn interleave<E>(
    rounds: usize,
    contenders: usize,
    mut run: impl FnMut(usize) -> Result<f64, E>,
) -> Result<Vec<Samples>, E> {
    let mut samples = vec![Samples::default(); contenders];
    for _ in 0..rounds {
        for (contender, samples) in samples.iter_mut().enumerate() {
            samples.push(run(contender)?);
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_take_turns_and_medians_are_right() {
        let mut order = Vec::new();
        let samples = interleave(3, 2, |c| {
            order.push(c);
            Ok::<_, ()>(order.len() as f64)
        });
        assert_eq!(order, [0, 1, 0, 1, 0, 1]);
        let samples = samples.unwrap();
        assert_eq!((samples[0].median(), samples[1].median()), (3.0, 4.0));
        assert_eq!((samples[0].min(), samples[1].max()), (1.0, 6.0));
        assert!(Samples::default().median().is_nan());
    }
}
