//! A linear support vector machine, trained one example at a time (Pegasos: stochastic steps down the
//! regularised hinge loss).

/// Numbers of an example, including a constant.
pub(super) const FEATURES: usize = 3;

/// The features of an object.
pub(super) type Features = [f32; FEATURES];

const REGULARISATION: f32 = 1e-3;

/// Steps get shorter down to this, so that the machine follows changes.
const STEP_MIN: f32 = 0.01;

#[derive(Default)]
pub(super) struct Svm {
    weights: Features,
    examples: u32,
}

impl Svm {
    /// The score of an object; above 0: flashy.
    pub fn score(&self, features: &Features) -> f32 {
        self.weights.iter().zip(features).map(|(w, x)| w * x).sum()
    }

    /// Examples learnt from.
    pub fn examples(&self) -> u32 {
        self.examples
    }

    pub fn learn(&mut self, features: &Features, flashy: bool) {
        self.examples = self.examples.saturating_add(1);
        let label = if flashy { 1.0 } else { -1.0 };
        let step = (1.0 / (1.0 + REGULARISATION * 100.0 * self.examples as f32)).max(STEP_MIN);
        let wrong = label * self.score(features) < 1.0;
        for (w, x) in self.weights.iter_mut().zip(features) {
            *w *= 1.0 - step * REGULARISATION;
            if wrong {
                *w += step * label * x;
            }
        }
    }
}
