//! What one thread keeps between lookups.

use crate::framing::Log;
use crate::framing::block::{self, blocks_spanned, payload_size};
use crate::lookup::Workspace;
use crate::record::{Record, parse};
use granary_log::{Engine, Extent, ReadAhead};

/// The state of one reading thread: a ring with its buffers, and room to plan small batches in.
#[derive(Default)]
pub struct Io {
    reads: granary_log::Io,
    /// Room of the thread's own; `None`: it is in use, or there was none yet.
    pub(super) workspace: Option<Box<Workspace>>,
}

impl Io {
    /// With the best engine this machine allows.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this engine, or the next best.
    pub fn with_engine(engine: Engine) -> Self {
        Self { reads: granary_log::Io::with_engine(engine), ..Self::default() }
    }

    /// What reads go through.
    pub fn engine(&mut self) -> Engine {
        self.reads.engine()
    }

    pub(crate) fn extent_bytes_max(block_size: usize) -> usize {
        granary_log::Io::extent_bytes_max(block_size)
    }

    /// Begins the first of these reads.
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

    /// Reads the record over several blocks that begins at `place` into `record`; gives the count of
    /// its first block. `None`: a block is not what it should be.
    pub(crate) fn read_record(
        &mut self,
        log: &Log,
        place: u64,
        sequence: u64,
        record: &mut Vec<u8>,
    ) -> Option<u16> {
        let first = self.read_payloads(log, place, 1, sequence, record)?;
        let Record::Entry(entry) = parse(record)? else { return None };
        let (len, blocks) = (entry.len(), blocks_spanned(log.geometry(), entry.len()));
        if blocks > 1 {
            let whole = log.geometry().blocks_per_segment() as usize;
            if blocks > whole {
                return None;
            }
            self.read_payloads(log, place, blocks, sequence, record)?;
        }
        record.truncate(len);
        Some(first)
    }

    fn read_payloads(
        &mut self,
        log: &Log,
        place: u64,
        blocks: usize,
        sequence: u64,
        record: &mut Vec<u8>,
    ) -> Option<u16> {
        let geometry = log.geometry();
        let (size, payload) = (geometry.block_size(), payload_size(geometry));
        let step = Self::extent_bytes_max(size) / size;
        let extents: Vec<Extent> = (0..blocks)
            .step_by(step)
            .map(|i| Extent { offset: geometry.offset(place + i as u64), len: (blocks - i).min(step) * size })
            .collect();
        record.resize(blocks * payload, 0);
        let instance = log.instance();
        let mut first_count = None;
        let mut good = 0;
        self.reads.read_many(log.device(), &extents, |e, result| {
            let Ok(bytes) = result else { return };
            for (i, bytes) in (e * step..).zip(bytes.chunks_exact(size)) {
                let header = block::check(bytes, instance, place + i as u64);
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
