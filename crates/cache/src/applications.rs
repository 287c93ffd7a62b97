//! Applications that share a cache, distinguished by the prefixes of their keys.

use twox_hash::XxHash3_64;

/// Prefixes of keys, one for each application; all other keys belong to one more application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applications {
    /// Each prefix with the number that identifies its application in files.
    prefixes: Vec<(Vec<u8>, u64)>,
}

impl Applications {
    /// Applications with these prefixes; the first one that matches a key counts.
    pub fn new(prefixes: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let numbered = |prefix: Vec<u8>| {
            let number = XxHash3_64::oneshot(&prefix).max(1);
            (prefix, number)
        };
        Self { prefixes: prefixes.into_iter().map(numbered).collect() }
    }

    /// The number of applications; never 0.
    pub fn count(&self) -> usize {
        self.prefixes.len() + 1
    }

    /// The index of a key's application, below [`count`](Self::count).
    #[inline]
    pub fn index_of(&self, key: &[u8]) -> usize {
        self.prefixes.iter().position(|(prefix, _)| key.starts_with(prefix)).unwrap_or(self.prefixes.len())
    }

    /// The number of an application in files: a hash of its prefix, independent of the others; 0: the application of
    /// all other keys.
    pub(crate) fn number(&self, index: usize) -> u64 {
        self.prefixes.get(index).map_or(0, |(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_prefix_that_fits_counts() {
        let applications = Applications::new([b"user:".to_vec(), b"us".to_vec()]);
        assert_eq!(applications.count(), 3);
        for (key, place) in [("user:1", 0), ("usher", 1), ("u", 2), ("", 2), ("1user:", 2)] {
            assert_eq!(applications.index_of(key.as_bytes()), place, "{key}");
        }
        assert_eq!(Applications::default().index_of(b"user:1"), 0);
        let others = Applications::new([b"us".to_vec()]);
        assert_eq!(others.number(0), applications.number(1), "its place among others does not matter");
        assert_ne!(applications.number(0), applications.number(1));
        assert_eq!((applications.number(2), others.number(1)), (0, 0));
    }
}
