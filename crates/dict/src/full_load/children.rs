//! The way down a hierarchy: which keys name a key as their parent.

use crate::config::FullLoadLayout;

/// The children of each key that has some.
pub struct Children {
    /// The keys that have children, ascending, each once.
    parents: Vec<u64>,
    /// Where the children of each parent begin; one more than there are parents.
    starts: Vec<u32>,
    children: Vec<u64>,
}

/// ClickHouse's hash tables begin with `1 << 8` places, and grow fourfold, later twofold, when they are more than half
/// full.
const PLACES_BITS: u32 = 8;
/// From this many bits on they only double.
const PLACES_BITS_LARGE: u32 = 23;

impl Children {
    /// Takes `(parent, child)` pairs in the order of the rows. Siblings come in ClickHouse's order: in HASHED and
    /// SPARSE_HASHED that of its hash table, in other layouts that of the rows.
    pub(super) fn new(mut pairs: Vec<(u64, u64)>, form: FullLoadLayout) -> Children {
        match form {
            FullLoadLayout::Hashed | FullLoadLayout::SparseHashed => {
                let mask = places(pairs.len()) - 1;
                pairs.sort_by_key(|&(parent, child)| (parent, murmur3_finalizer(child) & mask));
            }
            _ => pairs.sort_by_key(|&(parent, _)| parent),
        }
        let (mut parents, mut starts) = (Vec::new(), Vec::new());
        for (place, &(parent, _)) in pairs.iter().enumerate() {
            if parents.last() != Some(&parent) {
                parents.push(parent);
                starts.push(place as u32);
            }
        }
        starts.push(pairs.len() as u32);
        Children { parents, starts, children: pairs.into_iter().map(|(_, child)| child).collect() }
    }

    /// The children of `parent`.
    pub fn children_of(&self, parent: u64) -> &[u64] {
        match self.parents.binary_search(&parent) {
            Ok(place) => &self.children[self.starts[place] as usize..self.starts[place + 1] as usize],
            Err(_) => &[],
        }
    }

    pub(super) fn bytes_allocated(&self) -> usize {
        (self.parents.capacity() + self.children.capacity()) * size_of::<u64>()
            + self.starts.capacity() * size_of::<u32>()
    }
}

/// The number of places of ClickHouse's table for `rows` rows.
fn places(rows: usize) -> u64 {
    let mut bits = PLACES_BITS;
    while rows as u64 > 1 << (bits - 1) {
        bits += if bits < PLACES_BITS_LARGE { 2 } else { 1 };
    }
    1 << bits
}

/// MurmurHash3's finalizer, by which ClickHouse's hash tables place integers.
pub fn murmur3_finalizer(key: u64) -> u64 {
    let mut mixed = (key ^ (key >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_children_in_the_order_of_its_layout() {
        let pairs = vec![(0, 1), (1, 2), (1, 3), (2, 4), (1, 900)];
        let of = |form, parent| Children::new(pairs.clone(), form).children_of(parent).to_vec();
        assert_eq!(of(FullLoadLayout::Flat, 1), [2, 3, 900]);
        assert_eq!(of(FullLoadLayout::HashedArray, 1), [2, 3, 900]);
        assert_eq!(
            of(FullLoadLayout::Hashed, 1).into_iter().filter(|&key| key < 900).collect::<Vec<_>>(),
            [3, 2]
        );
        assert_eq!((of(FullLoadLayout::Hashed, 0), of(FullLoadLayout::Hashed, 2)), (vec![1], vec![4]));
        assert!(of(FullLoadLayout::Hashed, 4).is_empty() && of(FullLoadLayout::Flat, u64::MAX).is_empty());
        assert!(Children::new(Vec::new(), FullLoadLayout::Flat).children_of(0).is_empty());
    }

    #[test]
    fn tables_grow_as_in_clickhouse() {
        assert_eq!((places(0), places(128), places(129)), (1 << 8, 1 << 8, 1 << 10));
        assert_eq!((places(1 << 23), places((1 << 23) + 1)), (1 << 24, 1 << 25));
    }
}
