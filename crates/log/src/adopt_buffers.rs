//! Writes the write buffers of a killed process, as if they had been sealed at that moment. See docs/format.md, "Write
//! buffers".

use crate::buffer::AlignedBuffer;
use crate::device::Device;
use crate::framing::{Framing, SealedBlocks, SegmentId, SummarySource};
use crate::journal;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Writes the segments in `buffers` that are not on the device; those that cannot be taken over are lost. `known_head`:
/// everything up to this segment is on the device, or was given up.
pub(crate) fn write_buffers<F: Framing>(
    framing: &F,
    source: &SummarySource<'_>,
    buffers: Vec<(u64, AlignedBuffer)>,
    records: &[journal::Record],
    known_head: u64,
) {
    let floor = records.iter().map(|record| record.durable).fold(known_head, u64::max);
    let mut buffers: BTreeMap<u64, AlignedBuffer> = buffers.into_iter().collect();
    for (sequence, memory) in &mut buffers {
        if *sequence <= floor || is_on_device(framing, source, *sequence) {
            continue;
        }
        let geometry = *source.geometry;
        let first_block = geometry.first_block(*sequence);
        let id = SegmentId { geometry, instance: source.instance, sequence: *sequence, first_block };
        let Some(mut builder) = framing.take_over(&id, source.salt, memory) else {
            tracing::warn!(
                segment = *sequence,
                "a write buffer of the process before is not whole: it is lost"
            );
            continue;
        };
        let SealedBlocks { data, summary } = framing.seal(&id, &mut builder, memory);
        // The data first: a summary on the device vouches for its data.
        let write = |blocks| write(source.device, &id, memory, blocks);
        match write(data).and_then(|()| write(summary)) {
            Ok(()) => {}
            Err(error) => {
                tracing::error!(%error, "cannot write a write buffer of the process before: it is lost")
            }
        }
    }
    buffers.values().for_each(AlignedBuffer::end);
}

fn is_on_device<F: Framing>(framing: &F, source: &SummarySource<'_>, sequence: u64) -> bool {
    let slot = source.geometry.slot(sequence);
    let found = framing.read(source, slot..slot + 1).pop().flatten();
    found.is_some_and(|summary| F::position(&summary).0 == sequence)
}

fn write(device: &dyn Device, id: &SegmentId, memory: &[u8], blocks: Range<usize>) -> io::Result<()> {
    if blocks.is_empty() {
        return Ok(());
    }
    let size = id.geometry.block_size();
    let bytes = &memory[blocks.start * size..blocks.end * size];
    device.write_at(id.geometry.offset(id.first_block + blocks.start as u64), &[bytes])
}
