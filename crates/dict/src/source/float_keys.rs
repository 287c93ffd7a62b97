//! Float32 keys in columns of 64 bits: these hold the number that the float is written as, 0.1, or its exact value,
//! 0.10000000149011612. Both are looked for.

use crate::types::{DataType, print_fixed};

/// The numbers of 64 bits that a Float32 may be: one or two.
pub(super) fn doubles(raw: &[u8]) -> Vec<f64> {
    let mut text = String::new();
    print_fixed(&DataType::Float32, raw, &mut text);
    let widened = raw.first_chunk().map(|raw| f64::from(f32::from_le_bytes(*raw)));
    let written = text.parse().ok().filter(|written: &f64| !written.is_nan() && Some(*written) != widened);
    written.into_iter().chain(widened).collect()
}

/// All keys with one of the given values in each column.
pub(super) fn combinations<T: Clone>(columns: Vec<Vec<T>>) -> Vec<Vec<T>> {
    let mut keys = vec![Vec::with_capacity(columns.len())];
    for column in columns {
        let with = |key: Vec<T>| {
            column.iter().cloned().map(move |value| {
                let mut key = key.clone();
                key.push(value);
                key
            })
        };
        keys = keys.into_iter().flat_map(with).collect();
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_is_what_it_is_written_as_and_what_it_is() {
        let of = |float: f32| doubles(&float.to_le_bytes());
        assert_eq!(of(0.1), [0.1, 0.10000000149011612]);
        assert_eq!(of(1.5), [1.5]);
        assert_eq!(of(f32::INFINITY), [f64::INFINITY]);
        assert_eq!(of(f32::NAN).len(), 1);
    }

    #[test]
    fn each_value_goes_with_each() {
        assert_eq!(combinations(vec![vec![1], vec![2, 3], vec![4]]), [[1, 2, 4], [1, 3, 4]]);
        assert_eq!(combinations::<u8>(vec![vec![], vec![1]]), Vec::<Vec<u8>>::new());
    }
}
