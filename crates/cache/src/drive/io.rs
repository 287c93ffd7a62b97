//! The state that one thread keeps between lookups.

use super::by_block::{Usable, or_by_block};
use crate::framing::Log;
use crate::framing::block::{self, blocks_spanned, payload_size};
use crate::lookup::{LongEntry, Workspace};
use crate::record::{Record, parse};
use granary_log::{Engine, Extent, ReadAhead};

/// The state of one reading thread: a ring with its buffers, and a workspace for small batches.
#[derive(Default)]
pub struct Io {
    reads: granary_log::Io,
    /// The thread's own workspace; `None`: it is in use, or not yet made.
    pub(super) workspace: Option<Box<Workspace>>,
    long: LongReads,
}

/// Reads of entries over several blocks.
#[derive(Default)]
struct LongReads {
    extents: Vec<Extent>,
    parts: Vec<LongPart>,
    /// The number of valid blocks of each entry.
    good: Vec<usize>,
}

/// The part of an entry that one extent holds.
struct LongPart {
    /// The entry's index.
    entry: usize,
    /// The index, within the entry, of the part's first block.
    block: usize,
    /// The offset for that block's payload.
    at: usize,
}

impl Io {
    /// An `Io` with the best engine this machine allows.
    pub fn new() -> Self {
        Self::default()
    }

    /// An `Io` with `engine`, or the next best.
    pub fn with_engine(engine: Engine) -> Self {
        Self { reads: granary_log::Io::with_engine(engine), ..Self::default() }
    }

    /// The engine that reads go through.
    pub fn engine(&mut self) -> Engine {
        self.reads.engine()
    }

    pub(crate) fn extent_bytes_max(block_size: usize) -> usize {
        granary_log::Io::extent_bytes_max(block_size)
    }

    /// Begins the first reads of `extents`.
    pub(super) fn read_ahead<'a>(&'a mut self, log: &'a Log, extents: &[Extent]) -> ReadAhead<'a> {
        self.reads.read_ahead(log.device(), extents)
    }

    pub(crate) fn read_many(
        &mut self,
        device: &dyn granary_log::device::Device,
        extents: &[Extent],
        done: impl FnMut(usize, std::io::Result<&[u8]>),
    ) {
        self.reads.read_many(device, extents, done);
    }

    /// Reads entries over several blocks, all at once, and passes each to `done`; `None`: a block is invalid.
    pub(crate) fn read_long(
        &mut self,
        log: &Log,
        entries: &[LongEntry],
        records: &mut Vec<u8>,
        mut done: impl FnMut(LongEntry, Option<&[u8]>),
    ) {
        let geometry = log.geometry();
        let (size, payload, instance) = (geometry.block_size(), payload_size(geometry), log.instance());
        let step = Self::extent_bytes_max(size) / size;
        let Self { reads, long: LongReads { extents, parts, good }, .. } = self;
        extents.clear();
        parts.clear();
        let mut bytes = 0;
        for (entry, long) in entries.iter().enumerate() {
            let blocks = blocks_spanned(geometry, long.len);
            for block in (0..blocks).step_by(step) {
                let offset = geometry.offset(long.probe.block + block as u64);
                extents.push(Extent { offset, len: (blocks - block).min(step) * size });
                parts.push(LongPart { entry, block, at: bytes + block * payload });
            }
            bytes += blocks * payload;
        }
        records.resize(bytes, 0);
        good.clear();
        good.resize(entries.len(), 0);
        reads.read_many(log.device(), extents, |part, result| {
            let LongPart { entry, block, at } = parts[part];
            let LongEntry { probe, sequence, .. } = entries[entry];
            let mut again = None;
            let (bytes, _) = or_by_block(log, extents[part], Usable::AllOrNothing, result, &mut again);
            let block_number = probe.block + block as u64;
            good[entry] +=
                block::copy_payloads(geometry, bytes, (instance, block_number, sequence), &mut records[at..]);
        });
        let mut rest = &records[..];
        for (entry, good) in entries.iter().zip(good) {
            let blocks = blocks_spanned(geometry, entry.len);
            let (record, others) = rest.split_at(blocks * payload);
            rest = others;
            done(*entry, (*good == blocks).then_some(&record[..entry.len]));
        }
    }

    /// Reads the record over several blocks that begins at `block_number` into `record`; returns the record count of
    /// its first block. `None`: a block is invalid.
    pub(crate) fn read_record(
        &mut self,
        log: &Log,
        block_number: u64,
        sequence: u64,
        record: &mut Vec<u8>,
    ) -> Option<u16> {
        let first = self.read_payloads(log, block_number, 1, sequence, record)?;
        let Record::Entry(entry) = parse(record)? else { return None };
        let (len, blocks) = (entry.len(), blocks_spanned(log.geometry(), entry.len()));
        if blocks > 1 {
            let whole = log.geometry().blocks_per_segment() as usize;
            if blocks > whole {
                return None;
            }
            self.read_payloads(log, block_number, blocks, sequence, record)?;
        }
        record.truncate(len);
        Some(first)
    }

    fn read_payloads(
        &mut self,
        log: &Log,
        block_number: u64,
        blocks: usize,
        sequence: u64,
        record: &mut Vec<u8>,
    ) -> Option<u16> {
        let geometry = log.geometry();
        let (size, payload) = (geometry.block_size(), payload_size(geometry));
        let step = Self::extent_bytes_max(size) / size;
        let extents: Vec<Extent> = (0..blocks)
            .step_by(step)
            .map(|i| Extent {
                offset: geometry.offset(block_number + i as u64),
                len: (blocks - i).min(step) * size,
            })
            .collect();
        record.resize(blocks * payload, 0);
        let instance = log.instance();
        let mut first_count = None;
        let mut good = 0;
        self.reads.read_many(log.device(), &extents, |e, result| {
            let mut again = None;
            let (bytes, _) = or_by_block(log, extents[e], Usable::AllOrNothing, result, &mut again);
            for (i, bytes) in (e * step..).zip(bytes.chunks_exact(size)) {
                let header = block::check(bytes, instance, block_number + i as u64);
                let Some(header) = header.filter(|h| h.sequence == sequence) else { continue };
                good += 1;
                if i == 0 {
                    first_count = Some(header.count);
                }
                record[i * payload..(i + 1) * payload].copy_from_slice(block::payload(bytes));
            }
        });
        first_count.filter(|_| good == blocks)
    }
}
