//! Reads of one thread in the background.

use super::event::ring_event;
use super::extent::{Engine, Extent};
use super::pool_reads::PoolReads;
use super::read_in_flight::{ByDescriptor, Handover, ReadInFlight};
use super::ring::Ring;
use crate::buffer::AlignedBuffer;
use crate::device::Device;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Reads in flight: begun at one time, and handed over by a later [`poll`](Self::poll) when they have completed.
/// Meanwhile the kernel or the pool reads into buffers owned by this value. Dropping it waits for what is in flight.
///
/// Not shared and not sent: the kernel ties a ring to the thread that made it.
pub struct ReadQueue {
    /// Reads that wait for a buffer.
    waiting: VecDeque<(Extent, u64)>,
    backend: Backend,
    event: Option<Arc<OwnedFd>>,
    buffer_bytes: usize,
    /// The buffer for reads that `poll` makes itself, once there was one.
    plain: Option<AlignedBuffer>,
    _thread_bound: std::marker::PhantomData<*const ()>,
}

/// Reads returned by [`ReadQueue::poll_next`]'s callback that are submitted in one system call. The callback's hashing
/// and copying takes longer than the call, so the device should get the next reads early.
const GIVEN_SUBMITTED_TOGETHER: usize = 2;

enum Backend {
    Ring(Box<Ring>),
    Pool(PoolReads),
    /// Reads are made when they are handed over.
    Plain,
}

impl ReadQueue {
    /// For extents up to `buffer_bytes`, through `engine` or the next best.
    pub fn new(engine: Engine, buffer_bytes: usize) -> Self {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event =
            event.inspect_err(|error| tracing::warn!(%error, "reads are waited for")).ok().map(Arc::new);
        let ring = |event: &OwnedFd| {
            let ring = Ring::with_registered_buffers(buffer_bytes)?;
            ring.announce(event.as_fd())?;
            Ok::<_, io::Error>(Backend::Ring(Box::new(ring)))
        };
        let backend = match (&event, engine) {
            (Some(event), Engine::Ring) => {
                ring(event).unwrap_or_else(|_| Backend::Pool(PoolReads::new(event)))
            }
            (Some(event), Engine::Pool) => Backend::Pool(PoolReads::new(event)),
            (None, _) | (_, Engine::Plain) => Backend::Plain,
        };
        let _thread_bound = std::marker::PhantomData;
        Self { waiting: VecDeque::new(), backend, event, buffer_bytes, plain: None, _thread_bound }
    }

    /// Readable after a read has completed. Watch it edge-triggered, or read it before each [`poll`](Self::poll); then
    /// it is readable again when more has completed. It may be spurious. `None`: `poll` makes the reads and waits for
    /// them.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        Some(self.event.as_ref()?.as_fd())
    }

    #[cfg(test)]
    pub(super) fn ring(&self) -> Option<&Ring> {
        if let Backend::Ring(ring) = &self.backend { Some(ring) } else { None }
    }

    /// Begins a read. It is submitted by the next [`poll`](Self::poll), or once there is a buffer for it.
    pub fn begin(&mut self, extent: Extent, ticket: u64) {
        assert!(extent.len <= self.buffer_bytes, "a read fits its buffer");
        self.waiting.push_back((extent, ticket));
    }

    /// The number of reads begun and not yet handed over.
    pub fn len(&self) -> usize {
        let in_flight = match &self.backend {
            Backend::Ring(ring) => ring.begun(),
            Backend::Pool(pool) => pool.in_flight,
            Backend::Plain => 0,
        };
        self.waiting.len() + in_flight
    }

    /// Whether all reads were handed over.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until a [`poll`](Self::poll) has something to hand over or to submit. For a thread that has nothing else
    /// to wait for: it needs no [`event`](Self::event).
    pub fn wait(&mut self) {
        match &mut self.backend {
            Backend::Ring(ring) if ring.in_flight() > 0 => {
                if let Err(error) = ring.enter(1) {
                    tracing::error!(%error, "io_uring does not wait for reads");
                }
            }
            Backend::Pool(pool) => pool.wait(),
            Backend::Ring(_) | Backend::Plain => {}
        }
    }

    /// Submits reads as far as there are buffers, and hands over the completed ones: `done(ticket, bytes or error)`.
    /// `device` is the same each time. It waits for no read that is in flight. Where reads are not made in the
    /// background (by [`Engine::Plain`], for a device without a descriptor, or if there is no [`event`](Self::event)),
    /// it makes them itself, one after the other.
    pub fn poll(&mut self, device: &dyn Device, mut done: impl FnMut(u64, io::Result<&[u8]>)) {
        self.poll_next(device, |ticket, result| {
            done(ticket, result);
            None
        });
    }

    /// Like [`poll`](Self::poll), for a thread that has more to read: `done` may return a read to
    /// [`begin`](Self::begin), with its ticket, which the device makes while the other completed reads are handed over.
    pub fn poll_next(
        &mut self,
        device: &dyn Device,
        mut done: impl FnMut(u64, io::Result<&[u8]>) -> Option<(Extent, u64)>,
    ) {
        let buffer_bytes = self.buffer_bytes;
        self.poll_dyn(device, &mut |ticket, result| {
            done(ticket, result)
                .inspect(|(extent, _)| assert!(extent.len <= buffer_bytes, "a read fits its buffer"))
        });
    }

    fn poll_dyn(&mut self, device: &dyn Device, done: &mut Handover<'_>) {
        if let Some(by) = ByDescriptor::of(device) {
            match &mut self.backend {
                Backend::Ring(ring) => {
                    let Err(error) = poll_ring(ring, &mut self.waiting, by, done) else {
                        if let (true, Some(event)) = (ring.has_work(), &self.event) {
                            // The kernel did not take or hand over everything: the caller must poll again.
                            ring_event(event);
                        }
                        return;
                    };
                    tracing::error!(%error, "io_uring takes no more reads, reading with a thread pool");
                    let left: Vec<ReadInFlight> = ring.unfinished().collect();
                    self.backend = self
                        .event
                        .as_ref()
                        .map_or(Backend::Plain, |event| Backend::Pool(PoolReads::new(event)));
                    left.into_iter().for_each(|f| self.waiting.push_front((f.extent, f.ticket)));
                    return self.poll_dyn(device, done);
                }
                Backend::Pool(pool) => return pool.poll(&mut self.waiting, by, done),
                Backend::Plain => {}
            }
        }
        // Aligned, for the device may be a file opened with O_DIRECT.
        let mut next = Vec::new();
        while let Some((Extent { offset, len }, ticket)) = self.waiting.pop_front() {
            let buffer = self.plain.get_or_insert_with(|| AlignedBuffer::zeroed(self.buffer_bytes));
            let bytes = &mut buffer[..len];
            let result = device.read_at(offset, bytes);
            next.extend(done(ticket, result.map(|()| &*bytes)));
        }
        if let (false, Some(event)) = (next.is_empty(), &self.event) {
            ring_event(event);
        }
        self.waiting.extend(next);
    }
}

fn poll_ring(
    ring: &mut Ring,
    waiting: &mut VecDeque<(Extent, u64)>,
    by: ByDescriptor<'_>,
    done: &mut Handover<'_>,
) -> io::Result<()> {
    if let Some(error) = ring.refusal() {
        return Err(error);
    }
    loop {
        begin_waiting(ring, waiting, by);
        if ring.has_work() {
            ring.enter(0)?;
        } else {
            ring.collect();
        }
        let (mut completed, mut given) = (0, 0);
        while let Some(completion) = ring.next() {
            completed += 1;
            if let Some((ticket, result)) = ring.finish(by, completion)
                && let Some((extent, ticket)) = done(ticket, result)
            {
                given += 1;
                if !waiting.is_empty() || !ring.begin(by.file, extent, ticket) {
                    waiting.push_back((extent, ticket));
                } else if given % GIVEN_SUBMITTED_TOGETHER == 0 {
                    ring.submit();
                }
            }
        }
        if given > 0 {
            // A caller that always has more to read polls again; with a fast device this loop would never end.
            begin_waiting(ring, waiting, by);
            ring.submit();
            return Ok(());
        }
        // Buffers are free again, or the rest of a short read is due: submit them at once.
        if completed == 0 || (waiting.is_empty() && !ring.has_work()) {
            return Ok(());
        }
    }
}

/// Begins waiting reads as far as there are buffers. The last read is not submitted.
fn begin_waiting(ring: &mut Ring, waiting: &mut VecDeque<(Extent, u64)>, by: ByDescriptor<'_>) {
    while let Some((extent, ticket)) = waiting.front().copied() {
        if !ring.begin(by.file, extent, ticket) {
            break;
        }
        waiting.pop_front();
        // The device starts on it while the next one is prepared: a virtual machine's disk makes up to a fifth more
        // reads a second than with reads submitted together.
        if !waiting.is_empty() {
            ring.submit();
        }
    }
}
