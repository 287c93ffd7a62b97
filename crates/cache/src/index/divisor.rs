//! Division by a constant number, without the processor's slow division.

/// A divisor with its reciprocal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    by: u64,
    /// 2^64 / by, rounded down.
    reciprocal: u64,
}

impl Divisor {
    /// Divides by `by`, which is not 0.
    pub fn new(by: u64) -> Self {
        let reciprocal = u64::try_from((1u128 << 64) / u128::from(by)).unwrap_or(u64::MAX);
        Self { by, reciprocal }
    }

    #[inline]
    pub fn get(self) -> u64 {
        self.by
    }

    /// Quotient and remainder.
    #[inline]
    pub fn divide(self, number: u64) -> (u64, u64) {
        // At most 1 too small, as the reciprocal is rounded down.
        let quotient = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = number - quotient * self.by;
        if rest < self.by { (quotient, rest) } else { (quotient + 1, rest - self.by) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_division() {
        for by in [1, 2, 3, 7, 10, 487, 1021, 1024, 65_537, (1 << 40) - 1, 1 << 57] {
            let divisor = Divisor::new(by);
            let around = |n: u64| [n.saturating_sub(1), n, n.saturating_add(1)];
            let edges = (0..2000).map(|i| by.saturating_mul(i)).flat_map(around);
            let spread = (0..2000).map(|i| i * (u64::MAX / 2000));
            for number in edges.chain(spread).chain([u64::MAX]) {
                assert_eq!(divisor.divide(number), (number / by, number % by), "{number} / {by}");
            }
        }
    }
}
