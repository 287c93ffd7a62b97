//! Batches divided: among the partitions of their keys, and into parts that find room.

use crate::cache::Cache;
use crate::entry::Entry;
use crate::framing::block;
use crate::key::KeyHash;
use crate::limits::{PARTITIONS_MAX, TIMEOUT_MAX};
use crate::partition::Partition;
use crate::record::HEADER_SIZE_MAX;
use std::ops::Range;
use std::time::{Duration, Instant};

impl Cache {
    /// Divides a batch: calls `each` with a partition, its items in the order of the batch, and their places.
    pub(crate) fn for_each_partition<T: Copy>(
        &self,
        batch: &[T],
        hash: impl Fn(&T) -> KeyHash,
        mut each: impl FnMut(&Partition, &[T], BatchPositions<'_>),
    ) {
        if let [only] = &self.partitions[..] {
            return each(only, batch, BatchPositions::All);
        }
        let of = |item: &T| hash(item).partition(self.partitions.len());
        if let [one] = batch {
            return each(&self.partitions[of(one)], batch, BatchPositions::All);
        }
        // Dealt out by counting, in the order of the batch.
        let mut ends = [0; PARTITIONS_MAX as usize];
        batch.iter().for_each(|item| ends[of(item)] += 1);
        let mut items = Vec::with_capacity(ends.iter().copied().max().unwrap_or(0));
        let mut begin = 0;
        for end in &mut ends {
            (*end, begin) = (begin, begin + *end);
        }
        let mut positions = vec![0; batch.len()];
        for (item, position) in batch.iter().zip(0u32..) {
            let end = &mut ends[of(item)];
            positions[*end] = position;
            *end += 1;
        }
        let mut begin = 0;
        for (partition, end) in self.partitions.iter().zip(ends) {
            let positions = &positions[std::mem::replace(&mut begin, end)..end];
            if !positions.is_empty() {
                items.clear();
                items.extend(positions.iter().map(|position| batch[*position as usize]));
                each(partition, &items, BatchPositions::Some(positions));
            }
        }
    }

    /// Divides entries into batches that each find room if no other thread puts: the iterator yields a batch as soon as
    /// the cache is no longer [behind](Self::is_behind), or once `timeout`, which is for all batches, has run out.
    pub fn batches_with_room(
        &self,
        entries: &[Entry<'_>],
        timeout: Duration,
    ) -> impl Iterator<Item = Range<usize>> {
        let now = Instant::now();
        let deadline = now.checked_add(timeout).unwrap_or(now + TIMEOUT_MAX);
        let mut first = 0;
        std::iter::from_fn(move || {
            let rest = &entries[first..];
            if rest.is_empty() {
                return None;
            }
            let batch = first..first + self.prefix_that_fits(rest);
            self.for_each_partition(
                &entries[batch.clone()],
                |entry| entry.key.hash(),
                |partition, _, _| partition.wait_for_room(deadline),
            );
            first = batch.end;
            Some(batch)
        })
    }

    /// The number of leading entries that fit half a write buffer; at least one.
    fn prefix_that_fits(&self, entries: &[Entry<'_>]) -> usize {
        let Some(geometry) = self.partitions[0].geometry() else { return entries.len() };
        let mut bytes = 0;
        let fits = |entry: &&Entry<'_>| {
            let record = entry.key.bytes().len() + entry.value.map_or(0, <[u8]>::len) + HEADER_SIZE_MAX;
            bytes += block::bytes_taken(geometry, record) as u64;
            bytes <= geometry.segment_bytes() / 2
        };
        entries.iter().take_while(fits).count().max(1)
    }
}

/// The places in the batch of a partition's items.
#[derive(Clone, Copy)]
pub(crate) enum BatchPositions<'a> {
    All,
    Some(&'a [u32]),
}

impl BatchPositions<'_> {
    /// The place in the batch of the partition's `i`-th item.
    #[inline]
    pub fn position(self, i: usize) -> usize {
        match self {
            Self::All => i,
            Self::Some(positions) => positions[i] as usize,
        }
    }
}
