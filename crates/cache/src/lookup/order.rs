//! Probes in the order of their blocks.

use super::probe::Probe;

/// Scratch space to sort probes in.
#[derive(Default)]
pub(crate) struct Sorting {
    pub spare: Vec<Probe>,
    /// The end of each block's probes.
    ends: Vec<u32>,
}

/// Sorts probes by block. If there are not many more blocks than probes, as in a large batch over a file of the batch's
/// size, it is a counting sort in two passes.
pub(crate) fn order(probes: &mut Vec<Probe>, Sorting { spare, ends }: &mut Sorting) {
    if probes.is_sorted_by_key(|probe| probe.block) {
        return;
    }
    let blocks = || probes.iter().map(|probe| probe.block);
    let (first, last) = (blocks().min().unwrap_or(0), blocks().max().unwrap_or(0));
    if probes.len() < COUNTED_PROBES_MIN || (last - first) / PLACES_PER_PROBE_MAX >= probes.len() as u64 {
        // A stable sort merges two sorted halves. It allocates space for many probes, and frees it.
        return probes.sort_by_key(|probe| probe.block);
    }
    ends.clear();
    ends.resize((last - first) as usize + 2, 0);
    blocks().for_each(|block| ends[(block - first) as usize + 1] += 1);
    for i in 1..ends.len() {
        ends[i] += ends[i - 1];
    }
    spare.clear();
    spare.resize(probes.len(), probes[0]);
    for probe in probes.iter() {
        let at = &mut ends[(probe.block - first) as usize];
        spare[*at as usize] = *probe;
        *at += 1;
    }
    std::mem::swap(probes, spare);
}

/// Fewer are sorted as fast without counting.
const COUNTED_PROBES_MIN: usize = 256;

/// With more blocks for each probe most counts would be zero.
const PLACES_PER_PROBE_MAX: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::search::KeyDigest;

    #[test]
    fn probes_are_in_the_order_of_their_places_and_stay_in_that_of_their_keys() {
        let mut random = 7u64;
        let mut sorting = Sorting::default();
        for (probes, blocks) in [(0, 1), (1, 1), (500, 3), (500, 1999), (500, 2001), (500, 1 << 60)] {
            let mut probes: Vec<Probe> = (0..probes)
                .map(|key| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let block = (1 << 61) + (random >> 4) % blocks;
                    Probe { block, key, digest: KeyDigest::of(&key.to_le_bytes()), is_found: key % 3 == 0 }
                })
                .collect();
            let mut expected = probes.clone();
            expected.sort_by_key(|probe| (probe.block, probe.key));
            order(&mut probes, &mut sorting);
            assert_eq!(format!("{probes:?}"), format!("{expected:?}"));
        }
    }
}
