//! The consumer's part in segments of opaque blocks: the layout of records, checksums and summaries.

use crate::device::Device;
use crate::geometry::Geometry;
use std::ops::Range;

/// A segment's number, its place, and the seed of its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentId {
    /// The shape of the log.
    pub geometry: Geometry,
    /// The log's instance. It changes whenever the content is given up.
    pub instance: u64,
    /// The sequence number of the segment.
    pub sequence: u64,
    /// The segment's first block, counted from the log's beginning.
    pub first_block: u64,
}

/// The blocks of a full segment that are written: two ranges, counted from the segment's first block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealedBlocks {
    /// The data, written first.
    pub data: Range<usize>,
    /// The summary, which vouches for the data. It is empty where recovery reads the data itself.
    pub summary: Range<usize>,
}

/// A log on its device, for reading summaries.
#[derive(Clone, Copy)]
pub struct SummarySource<'a> {
    /// The shape of the log.
    pub geometry: &'a Geometry,
    /// Seeds the checksums.
    pub instance: u64,
    /// The number that the consumer's summaries depend on.
    pub salt: u64,
    /// The device that the log lies on.
    pub device: &'a dyn Device,
}

/// The layout of a segment. The log calls it and knows nothing of what the blocks hold.
pub trait Framing: Send + Sync + Sized + 'static {
    /// Builds a segment: the bookkeeping of its content so far, kept in RAM beside its blocks.
    type Builder: Send + Sync;
    /// The contents of a segment as recovery and reclaiming see them, without its data.
    type Summary: Send + Sync;

    /// Begins a segment, whose blocks are zero.
    fn begin(&self, id: &SegmentId) -> Self::Builder;

    /// The bytes of RAM that a builder takes beside its blocks.
    fn bytes_allocated(builder: &Self::Builder) -> usize;

    /// Completes `blocks`, the whole segment, for the device. Nothing is added afterwards.
    fn seal(&self, id: &SegmentId, builder: &mut Self::Builder, blocks: &mut [u8]) -> SealedBlocks;

    /// Completes what was added so far. Returns the number of blocks, from the segment's beginning, that recovery needs
    /// to find it. More may be added behind them. `None`: the segment can only be sealed.
    fn commit(&self, _id: &SegmentId, _builder: &mut Self::Builder, _blocks: &mut [u8]) -> Option<usize> {
        None
    }

    /// Notes that the blocks before this position in the segment, which [`commit`](Self::commit) gave, are durable.
    fn note_synced(&self, _builder: &mut Self::Builder, _position: usize) {}

    /// The ranges of blocks that are no longer zero. They are cleared before the memory is used again.
    fn used(&self, geometry: &Geometry, builder: &Self::Builder) -> [Range<usize>; 2];

    /// The summary as [`read`](Self::read) would return it from the device.
    fn summarize(&self, id: &SegmentId, builder: &Self::Builder) -> Self::Summary;

    /// The sequence number and the first block of a summary's segment.
    fn position(summary: &Self::Summary) -> (u64, u64);

    /// The summaries of the segments in these neighbouring slots; `None` where there is no whole and valid one.
    fn read(&self, source: &SummarySource<'_>, slots: Range<u64>) -> Vec<Option<Self::Summary>>;

    /// Like [`read`](Self::read), for recovery, which holds the summaries of all segments until the consumer takes
    /// them: an implementation may leave out what the consumer reads again then.
    fn read_to_recover(&self, source: &SummarySource<'_>, slots: Range<u64>) -> Vec<Option<Self::Summary>> {
        self.read(source, slots)
    }

    /// Removes from `entries`, journal entries of a lost segment, the changes that `later`, a newer segment that was
    /// found, replaces in every respect. `later` may lack what [`read_to_recover`](Self::read_to_recover) left out.
    fn remove_replaced(&self, _entries: &mut Vec<u64>, _later: &Self::Summary) {}

    /// Takes over the blocks of a segment that another process was filling, or had sealed, when it was killed: its
    /// records, as far as they were added whole. `None`: the blocks are not what a segment with this number has.
    fn take_over(&self, _id: &SegmentId, _salt: u64, _blocks: &mut [u8]) -> Option<Self::Builder> {
        None
    }

    /// The sequence number that a valid block carries; `None` if it is not valid in its place or carries none.
    fn sequence_of_block(&self, source: &SummarySource<'_>, block: u64, bytes: &[u8]) -> Option<u64>;
}
