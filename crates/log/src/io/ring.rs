//! Reads through io_uring, on the calling thread.

use super::Extent;
use crate::buffer::AlignedBuffer;
use crate::limits::{READ_BYTES_MAX, READ_DEPTH};
use io_uring::{IoUring, opcode, squeue, types::Fd};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What is being read into one buffer.
#[derive(Clone, Copy, Default)]
struct Flight {
    extent: usize,
    done: usize,
}

/// A ring and one buffer for each read in flight.
pub(super) struct Ring {
    ring: IoUring,
    arena: AlignedBuffer,
    buffer_bytes: usize,
    registered: bool,
    flights: [Flight; READ_DEPTH],
    idle: Vec<usize>,
}

impl Ring {
    pub(super) fn new() -> io::Result<Self> {
        // Completions are reaped by the thread that submits, so the kernel need not interrupt it;
        // kernels before 6.1 do not know the flags.
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(READ_DEPTH as u32)
            .or_else(|_| IoUring::new(READ_DEPTH as u32))?;
        let mut this = Self {
            ring,
            arena: AlignedBuffer::zeroed(READ_BYTES_MAX * READ_DEPTH),
            buffer_bytes: READ_BYTES_MAX,
            registered: false,
            flights: [Flight::default(); READ_DEPTH],
            idle: (0..READ_DEPTH).collect(),
        };
        this.register();
        Ok(this)
    }

    /// Without registered buffers (a memlock limit) the kernel maps pages at each read: slower, no error.
    fn register(&mut self) {
        let iovec = iovec_of(&mut self.arena);
        // SAFETY: the arena outlives the registration: it is dropped after the ring (field order)
        // and replaced only after `unregister_buffers`.
        self.registered = unsafe { self.ring.submitter().register_buffers(&[iovec]) }.is_ok();
    }

    fn fit(&mut self, extents: &[Extent]) {
        let longest = extents.iter().map(|e| e.len).max().unwrap_or(0);
        if longest > self.buffer_bytes {
            if self.registered {
                self.ring.submitter().unregister_buffers().expect("registered before");
            }
            self.buffer_bytes = longest;
            self.arena = AlignedBuffer::zeroed(longest * READ_DEPTH);
            self.register();
        }
    }

    pub(super) fn read_many(
        &mut self,
        file: BorrowedFd<'_>,
        extents: &[Extent],
        done: &mut dyn FnMut(usize, io::Result<&[u8]>),
    ) {
        self.fit(extents);
        let mut batch = Batch { ring: self, file, extents, reaped: Vec::with_capacity(READ_DEPTH) };
        let mut next = 0;
        while next < extents.len() || batch.in_flight() > 0 {
            while next < extents.len()
                && let Some(buffer) = batch.ring.idle.pop()
            {
                batch.start(buffer, Flight { extent: next, done: 0 });
                next += 1;
            }
            batch.wait();
            while let Some((buffer, result)) = batch.reaped.pop() {
                batch.finish(buffer, result, done);
            }
        }
    }
}

/// The reads of one call. Dropping it (also when a callback panics) waits for what is in flight,
/// so that no buffer is reused or freed under the kernel's hands.
struct Batch<'a> {
    ring: &'a mut Ring,
    file: BorrowedFd<'a>,
    extents: &'a [Extent],
    reaped: Vec<(usize, i32)>,
}

impl Batch<'_> {
    fn in_flight(&self) -> usize {
        READ_DEPTH - self.ring.idle.len() - self.reaped.len()
    }

    fn start(&mut self, buffer: usize, flight: Flight) {
        let extent = self.extents[flight.extent];
        self.ring.flights[buffer] = flight;
        let at = buffer * self.ring.buffer_bytes;
        let left = extent.len - flight.done;
        let (start, len) = (self.ring.arena.part_start(at + flight.done, left), left as u32);
        let offset = extent.offset + flight.done as u64;
        let fd = Fd(self.file.as_raw_fd());
        let entry: squeue::Entry = if self.ring.registered {
            opcode::ReadFixed::new(fd, start, len, 0).offset(offset).build()
        } else {
            opcode::Read::new(fd, start, len).offset(offset).build()
        };
        let entry = entry.user_data(buffer as u64);
        // SAFETY: the `len` bytes from `start` lie in the arena, are used by this read alone until it completes (the
        // buffer is not idle), and Drop waits for completion; the descriptor outlives the batch.
        let pushed = unsafe { self.ring.ring.submission().push(&entry) };
        pushed.expect("the queue has as many entries as there are buffers");
    }

    /// Waits for at least one completion and collects all that are there.
    fn wait(&mut self) {
        loop {
            match self.ring.ring.submit_and_wait(1) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The completion queue is full or memory is short: reap, then go on.
                Err(error) if matches!(error.raw_os_error(), Some(11 | 16)) => break,
                Err(error) => panic!("io_uring refuses to submit: {error}"),
            }
        }
        let completions = self.ring.ring.completion();
        self.reaped.extend(completions.map(|c| (c.user_data() as usize, c.result())));
    }

    fn finish(&mut self, buffer: usize, result: i32, done: &mut dyn FnMut(usize, io::Result<&[u8]>)) {
        let mut flight = self.ring.flights[buffer];
        let extent = self.extents[flight.extent];
        let outcome = match result {
            // EINTR, EAGAIN: ask again.
            -4 | -11 => return self.start(buffer, flight),
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            n if n < 0 => Err(io::Error::from_raw_os_error(-n)),
            n => {
                flight.done += n as usize;
                if flight.done < extent.len {
                    return self.start(buffer, flight);
                }
                Ok(())
            }
        };
        self.ring.idle.push(buffer);
        let at = buffer * self.ring.buffer_bytes;
        done(flight.extent, outcome.map(|()| self.ring.arena.part(at, extent.len)));
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            self.wait();
        }
        self.ring.idle = (0..READ_DEPTH).collect();
    }
}

fn iovec_of(arena: &mut AlignedBuffer) -> libc::iovec {
    let len = arena.len();
    libc::iovec { iov_base: arena.part_start(0, len).cast(), iov_len: len }
}
