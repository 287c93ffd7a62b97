//! Values to compress: real ones from files, and drawn ones as in the seed of the study.

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::io;
use std::path::Path;
use twox_hash::XxHash3_64;

/// Further values to measure on are left out.
const TEST_BYTES_MAX: usize = 8 << 20;

/// Bytes of a drawn value, and how many at its beginning are not repeated in the rest.
const DRAWN_BYTES: usize = 1024;
const DRAWN_BYTES_OWN: usize = 257;

/// Values of one kind, half of the families to train on and the other half to measure on.
pub struct Values {
    /// The kind.
    pub name: String,
    /// Values to train on.
    pub train: Vec<Vec<u8>>,
    /// Values to measure on, none of them of a family that is trained on.
    pub test: Vec<Vec<u8>>,
}

impl Values {
    /// The values of a file that `rivals/values/values.py` has written: family, tab, value on each line.
    ///
    /// # Errors
    /// The file cannot be read, or has a line without a tab.
    pub fn load(path: &Path) -> io::Result<Self> {
        let (mut train, mut test) = (Vec::new(), Vec::new());
        for (family, value) in Self::lines(path)? {
            let half = if XxHash3_64::oneshot(family.as_bytes()) & 1 == 0 { &mut train } else { &mut test };
            half.push(value);
        }
        let mut random = SmallRng::seed_from_u64(1);
        train.shuffle(&mut random);
        test.shuffle(&mut random);
        let mut bytes = 0;
        test.retain(|value| {
            bytes += value.len();
            bytes <= TEST_BYTES_MAX
        });
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, train, test })
    }

    /// The lines of a file, each with its family.
    pub(super) fn lines(path: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
        let line = |line: &str| {
            let parts =
                line.split_once('\t').map(|(family, value)| (family.to_owned(), value.as_bytes().to_vec()));
            parts.ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "a line has no family before a tab")
            })
        };
        std::fs::read_to_string(path)?.lines().map(line).collect()
    }
}

/// Values of 1 KiB that Snappy compresses to some 380 bytes and that have nothing in common: random letters, followed
/// by pieces of these.
pub fn drawn(count: usize) -> Vec<Vec<u8>> {
    let mut random = SmallRng::seed_from_u64(2);
    let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    (0..count)
        .map(|_| {
            let letter = |random: &mut SmallRng| letters[random.random_range(0..letters.len())];
            let mut value: Vec<u8> = (0..DRAWN_BYTES_OWN).map(|_| letter(&mut random)).collect();
            while value.len() < DRAWN_BYTES {
                let len = random.random_range(32..64).min(DRAWN_BYTES - value.len());
                let from = random.random_range(0..DRAWN_BYTES_OWN - len);
                value.extend_from_within(from..from + len);
            }
            value
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_trained_on_or_measured_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kind.values");
        let lines: Vec<String> =
            (0..1000).map(|i| format!("family {}\t{} of {i}\n", i % 40, i % 40)).collect();
        std::fs::write(&path, lines.concat()).unwrap();
        let values = Values::load(&path).unwrap();
        let families = |values: &[Vec<u8>]| -> std::collections::BTreeSet<String> {
            let family =
                |value: &Vec<u8>| String::from_utf8_lossy(value).split(' ').next().unwrap().to_owned();
            values.iter().map(family).collect()
        };
        let (train, test) = (families(&values.train), families(&values.test));
        assert_eq!((values.name.as_str(), values.train.len() + values.test.len()), ("kind", 1000));
        assert!(
            train.is_disjoint(&test) && train.len() + test.len() == 40 && train.len() > 10 && test.len() > 10
        );
        std::fs::write(&path, "no family\n").unwrap();
        assert!(Values::load(&path).is_err());
    }

    #[test]
    fn snappy_compresses_drawn_values_as_the_seed_says() {
        let values = drawn(100);
        let mut snappy = snap::raw::Encoder::new();
        let len: usize = values.iter().map(|value| snappy.compress_vec(value).unwrap().len()).sum();
        assert!((370..390).contains(&(len / 100)), "{} bytes", len / 100);
        assert!(values.iter().all(|value| value.len() == DRAWN_BYTES));
    }
}
