//! Sizes for keys without one: drawn by a hash of the key, so that a key keeps its size.

use twox_hash::XxHash3_64;

/// Maximum size of a value, as in a cache of small objects.
const VALUE_BYTES_MAX: f64 = (1 << 20) as f64;

/// Sizes of values in Facebook's ETC pool as published (Atikoglu et al., SIGMETRICS 2012): a generalised
/// Pareto distribution; the mean is 329 bytes, four fifths are under 500.
const ETC_SCALE: f64 = 214.476;
const ETC_SHAPE: f64 = 0.348_238;

/// Bytes of a key if a trace has numbers only: about the mean of ETC's keys.
pub(crate) const ASSIGNED_KEY_BYTES: u32 = 31;

/// A number in `0..1` for a key, different for each `purpose`.
pub(crate) fn fraction(key: u64, purpose: u64) -> f64 {
    (XxHash3_64::oneshot_with_seed(purpose, &key.to_le_bytes()) >> 11) as f64 / (1u64 << 53) as f64
}

/// The size of a key's value, distributed like ETC's.
pub(crate) fn etc_value_bytes(key: u64) -> u32 {
    let below = fraction(key, 1);
    let bytes = ETC_SCALE / ETC_SHAPE * ((1.0 - below).powf(-ETC_SHAPE) - 1.0);
    bytes.clamp(1.0, VALUE_BYTES_MAX) as u32
}

/// An exponentially distributed size with this mean.
pub(crate) fn exponential_bytes(key: u64, mean: f64) -> u32 {
    let below = fraction(key, 1);
    (-mean * (1.0 - below).ln()).clamp(1.0, VALUE_BYTES_MAX) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_distributed_as_they_say_and_keys_keep_theirs() {
        let mean =
            |size: &dyn Fn(u64) -> u32| (0..100_000).map(|key| f64::from(size(key))).sum::<f64>() / 100_000.0;
        assert!((315.0..340.0).contains(&mean(&etc_value_bytes)), "{}", mean(&etc_value_bytes));
        let exponential = mean(&|key| exponential_bytes(key, 1000.0));
        assert!((980.0..1020.0).contains(&exponential), "{exponential}");
        assert_eq!(etc_value_bytes(7), etc_value_bytes(7));
        assert!((0..1000).map(|key| fraction(key, 2)).all(|f| (0.0..1.0).contains(&f)));
    }
}
