//! Reads through io_uring, on the calling thread: the ring, and what one call reads and waits for. Reads
//! that nobody waits for are in `read_queue.rs`, the buffers in `arena.rs`.

use super::arena::{self, ReadArena};
use super::extent::{Engine, Extent};
use super::frames::{Frames, bytes_each};
use super::read_in_flight::{ByDescriptor, ReadInFlight};
use crate::limits::{READ_BYTES_MAX, READ_DEPTH};
use io_uring::{IoUring, opcode, squeue, types::Fd};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The kernel takes no more reads: the ring is of no use any longer.
#[derive(Debug)]
pub(super) struct RefusedReads {
    pub error: io::Error,
    /// The extents that were not handed over, to be read some other way.
    pub left: Vec<usize>,
}

/// A ring, and the frames that its reads go to.
pub(super) struct Ring {
    ring: IoUring,
    /// The frames side by side; `None` between the calls of a ring that borrows them.
    arena: Option<ReadArena>,
    frame_bytes: usize,
    /// The kernel holds the arena, which makes reads cheaper.
    is_registered: bool,
    /// Reads were given up that the kernel may still be at.
    refused: bool,
    /// The reads in flight, each at the first of the frames that it fills.
    flights: [Option<ReadInFlight>; READ_DEPTH],
    frames: Frames,
    /// Reads in flight.
    count: usize,
    /// Completions that were not looked at yet: first frames and results.
    reaped: Vec<(usize, i32)>,
}

impl Ring {
    /// For batches of reads, with an arena that is borrowed for each.
    pub(super) fn new() -> io::Result<Self> {
        // Completions are reaped by the thread that submits, so the kernel need not interrupt it;
        // kernels before 6.1 do not know the flags.
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(READ_DEPTH as u32)
            .or_else(|_| IoUring::new(READ_DEPTH as u32))?;
        Ok(Self {
            ring,
            arena: None,
            frame_bytes: 0,
            is_registered: false,
            refused: false,
            flights: [None; READ_DEPTH],
            frames: Frames::new(),
            count: 0,
            reaped: Vec::with_capacity(READ_DEPTH),
        })
    }

    /// For a thread that always has many reads in flight, of at most `read_bytes_max` bytes each.
    pub(super) fn with_registered_buffers(read_bytes_max: usize) -> io::Result<Self> {
        let mut this = Self::new()?;
        this.frame_bytes = bytes_each(read_bytes_max);
        let arena = this.arena.insert(ReadArena::zeroed(this.frame_bytes * READ_DEPTH));
        let len = arena.len();
        let iovec = libc::iovec { iov_base: arena.part_start(0, len).cast(), iov_len: len };
        // SAFETY: the memory is mapped now. The kernel holds on to its pages while it is registered, and reads go to
        // it only while `arena` is that memory: it is never replaced.
        let registered = unsafe { this.ring.submitter().register_buffers(&[iovec]) };
        // Where there is a memlock limit, the kernel maps pages at each read.
        this.is_registered = registered.is_ok();
        Ok(this)
    }

    /// The reason why no read goes this way any more; `None`: they do.
    pub(super) fn refusal(&self) -> Option<io::Error> {
        self.refused.then(|| io::Error::other("an earlier read was refused"))
    }

    /// Reads that were begun and not finished.
    pub(super) fn begun(&self) -> usize {
        self.count
    }

    /// Reads that were begun and that the kernel may be at.
    pub(super) fn in_flight(&self) -> usize {
        self.count - self.reaped.len()
    }

    /// Has the kernel ring `event` whenever there is something to reap.
    pub(super) fn announce(&self, event: BorrowedFd<'_>) -> io::Result<()> {
        self.ring.submitter().register_eventfd(event.as_raw_fd())
    }

    /// Puts a read in the queue of those to submit; `false`: there is no frame for it.
    pub(super) fn begin(&mut self, file: BorrowedFd<'_>, extent: Extent, ticket: u64) -> bool {
        let Some(frame) = self.frames.take(self.frames_of(extent)) else { return false };
        self.flights[frame] = Some(ReadInFlight::new(extent, ticket));
        self.count += 1;
        self.start(file, frame);
        true
    }

    fn frames_of(&self, extent: Extent) -> usize {
        extent.len.div_ceil(self.frame_bytes).max(1)
    }

    fn start(&mut self, file: BorrowedFd<'_>, frame: usize) {
        let flight = self.flights[frame].expect("it was begun");
        let Extent { offset, len } = flight.rest();
        let at = frame * self.frame_bytes + flight.done();
        let arena = self.arena.as_mut().expect("reads have frames");
        let (start, len) = (arena.part_start(at, len), len as u32);
        let fd = Fd(file.as_raw_fd());
        let entry: squeue::Entry = if self.is_registered {
            opcode::ReadFixed::new(fd, start, len, 0).offset(offset).build()
        } else {
            opcode::Read::new(fd, start, len).offset(offset).build()
        };
        let entry = entry.user_data(frame as u64);
        // The kernel holds the file as soon as the entry is submitted; a descriptor closed before is an error of the
        // read.
        // SAFETY: the `len` bytes from `start` lie in the arena, are used by this read alone until it completes (its
        // frames are taken), and whoever drops the ring waits for completion or gives the arena up.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue has as many entries as there are frames");
    }

    /// Whether a call of the kernel would submit something or bring something.
    pub(super) fn has_work(&mut self) -> bool {
        let submission = self.ring.submission();
        !submission.is_empty() || submission.taskrun() || submission.cq_overflow()
    }

    /// Submits what was begun, waits for so many completions, and collects all that are there. An error is
    /// final: what is in flight cannot be waited for.
    pub(super) fn enter(&mut self, wanted: usize) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(wanted) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Memory is short or the completion queue is full: reap, then go on.
                Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::AGAIN | Errno::BUSY)) => {
                    break;
                }
                Err(error) => {
                    self.refused = true;
                    return Err(error);
                }
            }
        }
        self.collect();
        Ok(())
    }

    /// Submits what was begun. What does not go now goes with the next [`enter`](Self::enter), which tells why not.
    pub(super) fn submit(&self) {
        let _ = self.ring.submit();
    }

    /// Collects completions that are there.
    pub(super) fn collect(&mut self) {
        let Self { ring, reaped, .. } = self;
        reaped.extend(ring.completion().map(|c| (c.user_data() as usize, c.result())));
    }

    /// A completion that was collected.
    pub(super) fn next(&mut self) -> Option<(usize, i32)> {
        self.reaped.pop()
    }

    /// Takes a completion into account. Returns the ticket of its read, and the bytes, which are in their frames until
    /// the next read begins. `None`: the read goes on.
    pub(super) fn finish(
        &mut self,
        by: ByDescriptor<'_>,
        (frame, result): (usize, i32),
    ) -> Option<(u64, io::Result<&[u8]>)> {
        let flight = self.flights[frame].as_mut().expect("it was begun");
        let answer =
            if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result as usize) };
        let arena = self.arena.as_mut().expect("reads have frames");
        let bytes = arena.part(frame * self.frame_bytes + flight.done(), flight.rest().len);
        let Some(outcome) = flight.advance(by, Engine::Ring, bytes, answer) else {
            self.start(by.file, frame);
            return None;
        };
        let ReadInFlight { extent, ticket, .. } = *flight;
        self.flights[frame] = None;
        self.count -= 1;
        self.frames.give_back(frame, self.frames_of(extent));
        let at = frame * self.frame_bytes;
        let arena = self.arena.as_mut().expect("reads have frames");
        Some((ticket, outcome.map(|()| &*arena.part(at, extent.len))))
    }

    /// The reads that were begun and not finished.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = ReadInFlight> {
        self.flights.iter().flatten().copied()
    }

    /// Begins the first of these reads, as many as there is room for, and waits for nothing; gives how many. They
    /// are finished by [`read_many`](Self::read_many) of extents that begin with them, or given up by
    /// [`end_batch`](Self::end_batch).
    pub(super) fn read_ahead(&mut self, file: BorrowedFd<'_>, extents: &[Extent]) -> usize {
        if self.refused || extents.is_empty() || !self.begin_batch(extents) {
            return 0;
        }
        let fits = |i: &usize| self.begin(file, extents[*i], *i as u64);
        let begun = (0..extents.len()).take_while(fits).count();
        self.submit();
        begun
    }

    /// `begun`: how many of the extents are on their way already.
    pub(super) fn read_many(
        &mut self,
        by: ByDescriptor<'_>,
        extents: &[Extent],
        begun: usize,
        done: &mut dyn FnMut(usize, io::Result<&[u8]>),
    ) -> Result<(), RefusedReads> {
        if let Some(error) = self.refusal() {
            // A callback panicked before anybody learnt of it.
            return Err(RefusedReads { error, left: (0..extents.len()).collect() });
        }
        if begun == 0 && !self.begin_batch(extents) {
            let error = io::Error::other("reads that were begun ahead cannot be ended");
            return Err(RefusedReads { error, left: (0..extents.len()).collect() });
        }
        let mut batch = Batch { ring: self, file: by.file, extents };
        let mut next = begun;
        while next < extents.len() || batch.ring.in_flight() > 0 {
            while batch.start_next(&mut next) {}
            if let Err(error) = batch.ring.wait() {
                let unfinished = batch.ring.unfinished().map(|flight| flight.ticket as usize);
                let left = unfinished.chain(next..extents.len()).collect();
                return Err(RefusedReads { error, left });
            }
            let mut begun = 0;
            while let Some(completion) = batch.ring.next() {
                if let Some((extent, result)) = batch.ring.finish(by, completion) {
                    done(extent as usize, result);
                }
                // The device goes on while the rest of what it brought is looked at.
                if batch.start_next(&mut next) {
                    begun += 1;
                    if begun % SUBMITTED_TOGETHER == 0 {
                        batch.ring.submit();
                    }
                }
            }
        }
        Ok(())
    }

    /// Borrows an arena with frames for these; `false`: the one before is still read into, and stays.
    fn begin_batch(&mut self, extents: &[Extent]) -> bool {
        // Reads that were begun ahead and never ended, as their handle was forgotten.
        if self.count > 0 {
            self.end_batch();
            if self.refused {
                return false;
            }
        }
        let longest = extents.iter().map(|extent| extent.len).fold(READ_BYTES_MAX, usize::max);
        self.frame_bytes = bytes_each(longest);
        self.arena = Some(arena::borrow(self.frame_bytes * READ_DEPTH));
        true
    }

    /// Waits for what is in flight, so that no frame is reused or freed under the kernel's hands; where it cannot
    /// wait, the arena is never freed.
    pub(super) fn end_batch(&mut self) {
        while !self.refused && self.in_flight() > 0 {
            // If it is refused, the arena is never freed nor read into again.
            let _ = self.wait();
        }
        self.reaped.clear();
        self.flights = [None; READ_DEPTH];
        self.frames = Frames::new();
        self.count = 0;
        if !self.refused {
            self.arena.take().into_iter().for_each(arena::give_back);
        }
    }

    /// Waits for a completion, or for several where many reads are in flight: each call of the kernel and
    /// each notice to the device is then for several reads.
    fn wait(&mut self) -> io::Result<()> {
        self.enter((self.in_flight() / WAITED_FOR_DIVISOR).max(1))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Reads that nobody waits for may be under way: see `read_queue.rs`.
        while !self.refused && self.in_flight() > 0 {
            // If it is refused, the arena is never freed.
            let _ = self.enter(1);
        }
        if self.refused {
            // The kernel may write to it.
            std::mem::forget(self.arena.take());
        }
    }
}

/// Reads that one call of the kernel takes while completions are looked at.
const SUBMITTED_TOGETHER: usize = 8;

/// Of the reads in flight, one in so many is waited for: the others keep the device busy meanwhile.
const WAITED_FOR_DIVISOR: usize = 8;

/// The reads of one call. Dropping it ends them, also when a callback panics.
struct Batch<'a> {
    ring: &'a mut Ring,
    file: BorrowedFd<'a>,
    extents: &'a [Extent],
}

impl Batch<'_> {
    /// Starts the read of extent `next` and moves on; `false`: there is none, or no frame for it.
    fn start_next(&mut self, next: &mut usize) -> bool {
        if *next == self.extents.len() || !self.ring.begin(self.file, self.extents[*next], *next as u64) {
            return false;
        }
        *next += 1;
        true
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.ring.end_batch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{Engine, Io, Reader, RingPermit};
    use crate::skip::skipped;
    use std::mem::ManuallyDrop;
    use std::os::fd::{AsFd, OwnedFd};

    /// Puts something that is no ring in place of the ring's descriptor.
    fn break_ring(ring: &Ring) {
        let null = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: the descriptor is the ring's, which from here on is told EOPNOTSUPP or the like.
        let mut target = ManuallyDrop::new(unsafe {
            <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(ring.ring.as_raw_fd())
        });
        rustix::io::dup2(null.as_fd(), &mut target).unwrap();
    }

    /// A ring. `None`: there is none here, and the test is reported as skipped.
    fn ring() -> Option<Ring> {
        let ring = Ring::new().ok();
        if ring.is_none() {
            skipped("no io_uring: no ring can refuse reads");
        }
        ring
    }

    #[test]
    fn a_refusing_ring_gives_way_to_the_pool_in_flight() {
        use crate::io::ReadQueue;
        use std::collections::BTreeSet;
        if ring().is_none() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let bytes: Vec<u8> = (0..1 << 20).map(|i: u32| (i / 512 * 7) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let device = crate::device::FileDevice::open(&path, bytes.len() as u64).unwrap();
        let extent = |i: u64| Extent { offset: i % 256 * 4096, len: 4096 };
        for (waits, given) in [(false, 0), (true, 0), (true, 80)] {
            let mut flights = ReadQueue::new(Engine::Ring, READ_BYTES_MAX);
            let mut left: BTreeSet<u64> = BTreeSet::new();
            for round in 0..3 {
                for i in round * 100..(round + 1) * 100 - given {
                    flights.begin(extent(i), i);
                    left.insert(i);
                }
                // Begun by the callback.
                let mut next = (round + 1) * 100 - given..(round + 1) * 100;
                // Some are under way.
                flights.poll(&device, |i, _| assert!(left.remove(&i)));
                if round == 1 {
                    break_ring(flights.ring().expect("there are rings here"));
                }
                while !left.is_empty() {
                    if waits {
                        flights.wait();
                    }
                    flights.poll_next(&device, |i, result| {
                        assert!(left.remove(&i), "one answer each");
                        let at = i as usize % 256 * 4096;
                        assert_eq!(result.unwrap(), &bytes[at..at + 4096]);
                        next.next().map(|i| {
                            left.insert(i);
                            (extent(i), i)
                        })
                    });
                }
                assert!(next.is_empty());
            }
            assert!(flights.ring().is_none() && flights.is_empty());
        }
    }

    #[test]
    fn a_refusing_ring_gives_way_to_the_pool() {
        let Some(ring) = ring() else { return };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let bytes: Vec<u8> = (0..1 << 20).map(|i: u32| (i / 512 * 7) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let device = crate::device::FileDevice::open(&path, bytes.len() as u64).unwrap();
        let extents: Vec<Extent> = (0..200).map(|i| Extent { offset: i * 4096, len: 4096 }).collect();
        let mut io = Io::new();
        io.reader = Reader::Ring(Box::new(ring), RingPermit::take().expect("few rings are there yet"));
        for breaks in [false, true, false] {
            if let (true, Reader::Ring(ring, _)) = (breaks, &io.reader) {
                break_ring(ring);
            }
            let mut seen = vec![0; extents.len()];
            io.read_many(&device, &extents, |i, result| {
                seen[i] += 1;
                assert_eq!(result.unwrap(), &bytes[i * 4096..(i + 1) * 4096]);
            });
            assert_eq!(seen, vec![1; extents.len()]);
        }
        assert_eq!(io.engine(), Engine::Pool);
    }
}
