//! Batches of reads, with as many in flight as the queue holds, and [`ReadQueue`], reads that complete in the
//! background. Both belong to one thread.

mod arena;
mod event;
mod extent;
mod frames;
mod pool;
mod pool_reads;
mod read_in_flight;
mod read_queue;
mod ring;

pub use arena::read_buffer_bytes;
pub use extent::{Engine, Extent};
pub use read_queue::ReadQueue;

use crate::buffer::AlignedBuffer;
use crate::device::Device;
use crate::limits::{READ_BYTES_MAX, RINGS_MAX};
use pool::PoolReader;
use read_in_flight::ByDescriptor;
use ring::{RefusedReads, Ring};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The I/O state of one thread: a ring with its buffers, or its way to the pool.
///
/// Not shared and not sent: the kernel ties the ring to the thread that made it.
pub struct Io {
    reader: Reader,
    plain: Option<AlignedBuffer>,
    _thread_bound: std::marker::PhantomData<*const ()>,
}

/// Number of rings of this process.
static RINGS: AtomicUsize = AtomicUsize::new(0);

/// The right to be one of [`RINGS`].
struct RingPermit;

impl RingPermit {
    /// `None`: the process has [`RINGS_MAX`] rings.
    fn take() -> Option<Self> {
        // Dropped again below if no ring is left.
        let permit = Self;
        (RINGS.fetch_add(1, Ordering::Relaxed) < RINGS_MAX).then_some(permit)
    }
}

impl Drop for RingPermit {
    fn drop(&mut self) {
        RINGS.fetch_sub(1, Ordering::Relaxed);
    }
}

enum Reader {
    Unset,
    Ring(Box<Ring>, RingPermit),
    Pool(PoolReader),
    Plain,
}

impl Default for Io {
    fn default() -> Self {
        Self::new()
    }
}

impl Io {
    /// The best engine this machine allows; it is set up at the first read.
    pub fn new() -> Self {
        Self { reader: Reader::Unset, plain: None, _thread_bound: std::marker::PhantomData }
    }

    /// `engine`, or the next best.
    pub fn with_engine(engine: Engine) -> Self {
        let mut io = Self::new();
        io.reader = match engine {
            Engine::Ring => Self::best(),
            Engine::Pool => Reader::Pool(PoolReader::new()),
            Engine::Plain => Reader::Plain,
        };
        io
    }

    fn best() -> Reader {
        let Some(permit) = RingPermit::take() else { return Reader::Pool(PoolReader::new()) };
        match Ring::new() {
            Ok(ring) => Reader::Ring(Box::new(ring), permit),
            Err(error) => {
                static ONCE: std::sync::Once = std::sync::Once::new();
                ONCE.call_once(|| tracing::warn!(%error, "no io_uring here, reading with a thread pool"));
                Reader::Pool(PoolReader::new())
            }
        }
    }

    /// The engine that reads go through.
    pub fn engine(&mut self) -> Engine {
        if matches!(self.reader, Reader::Unset) {
            self.reader = Self::best();
        }
        match self.reader {
            Reader::Ring(..) => Engine::Ring,
            Reader::Pool(_) => Engine::Pool,
            Reader::Unset | Reader::Plain => Engine::Plain,
        }
    }

    /// Longest extent for blocks of `block_size` bytes.
    pub fn extent_bytes_max(block_size: usize) -> usize {
        (READ_BYTES_MAX / block_size).max(1) * block_size
    }

    /// Reads every extent and hands each to `done(index, bytes or error)` as it arrives, in any
    /// order. The next read starts as soon as one has been handed over.
    pub fn read_many(
        &mut self,
        device: &dyn Device,
        extents: &[Extent],
        done: impl FnMut(usize, io::Result<&[u8]>),
    ) {
        self.read_from(device, extents, 0, done);
    }

    /// Begins to read the first extents, as many as there is room for, while the caller does other things. Without a
    /// ring none is begun.
    pub fn read_ahead<'a>(&'a mut self, device: &'a dyn Device, extents: &[Extent]) -> ReadAhead<'a> {
        let mut begun = 0;
        if let Some(descriptor) = device.descriptor()
            && self.engine() == Engine::Ring
            && let Reader::Ring(ring, _) = &mut self.reader
        {
            begun = ring.read_ahead(descriptor, extents);
        }
        ReadAhead { io: self, device, begun }
    }

    /// `begun`: how many of the extents the ring has begun to read.
    fn read_from(
        &mut self,
        device: &dyn Device,
        extents: &[Extent],
        begun: usize,
        mut done: impl FnMut(usize, io::Result<&[u8]>),
    ) {
        if extents.is_empty() {
            return;
        }
        if let Some(by) = ByDescriptor::of(device) {
            self.engine();
            match &mut self.reader {
                Reader::Ring(ring, _) => {
                    let Err(RefusedReads { error, left }) = ring.read_many(by, extents, begun, &mut done)
                    else {
                        return;
                    };
                    tracing::error!(%error, "io_uring takes no more reads, reading with a thread pool");
                    let rest: Vec<Extent> = left.iter().map(|i| extents[*i]).collect();
                    // Replaced first, for `done` may panic, and nothing may be read through that ring again.
                    self.reader = Reader::Pool(PoolReader::new());
                    if let Reader::Pool(pool) = &mut self.reader {
                        pool.read_many(by, &rest, &mut |i, result| done(left[i], result));
                    }
                    return;
                }
                Reader::Pool(pool) => return pool.read_many(by, extents, &mut done),
                Reader::Unset | Reader::Plain => {}
            }
        }
        for (i, extent) in extents.iter().enumerate() {
            // Aligned, for the device may be a file opened with O_DIRECT.
            let fits = self.plain.take().filter(|buffer| buffer.len() >= extent.len);
            let buffer = fits.unwrap_or_else(|| AlignedBuffer::zeroed(extent.len.max(READ_BYTES_MAX)));
            let bytes = &mut self.plain.insert(buffer)[..extent.len];
            let result = device.read_at(extent.offset, bytes);
            done(i, result.map(|()| &*bytes));
        }
    }
}

/// Reads of one thread that were begun. Dropping it waits for them and discards their bytes.
pub struct ReadAhead<'a> {
    io: &'a mut Io,
    device: &'a dyn Device,
    begun: usize,
}

impl ReadAhead<'_> {
    /// The number of extents whose reads are in flight.
    pub fn begun(&self) -> usize {
        self.begun
    }

    /// Like [`Io::read_many`], for extents that begin with those in flight.
    pub fn read_many(mut self, extents: &[Extent], done: impl FnMut(usize, io::Result<&[u8]>)) {
        let begun = std::mem::take(&mut self.begun);
        debug_assert!(begun <= extents.len(), "they begin with those that were begun");
        self.io.read_from(self.device, extents, begun, done);
    }
}

impl Drop for ReadAhead<'_> {
    fn drop(&mut self) {
        if let (1.., Reader::Ring(ring, _)) = (self.begun, &mut self.io.reader) {
            ring.end_batch();
        }
    }
}
