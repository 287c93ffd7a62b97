//! Replies with data, written piece by piece.

use super::completions::Completions;
use super::handshake::ALLOCATION_CONTEXT;
use super::request::Request;
use super::{Errno, wire};
use crate::export::ExtentState;
use crate::limits::{EXTENTS_MAX, HOLE_BYTES_MIN};

/// The reply to a READ. Dropped before [`finish`](Self::finish), it fails the command with EIO.
#[derive(Debug)]
#[must_use = "dropped, it fails the command"]
pub struct ReadReply<'a> {
    completions: &'a mut Completions,
    request: Request,
    /// The start of the reply in the output.
    start: usize,
    /// The last chunk begun.
    chunk: Option<ReplyChunk>,
    /// Bytes of the request that have been answered.
    filled: u32,
    is_finished: bool,
}

#[derive(Clone, Copy, Debug)]
struct ReplyChunk {
    /// The place of its header.
    place: usize,
    is_hole: bool,
    /// Bytes of the export that it covers.
    len: u32,
}

impl<'a> ReadReply<'a> {
    pub(super) fn new(completions: &'a mut Completions, request: Request) -> Self {
        let start = completions.output.end();
        if !completions.structured {
            completions.simple(request.cookie, 0);
        }
        Self { completions, request, start, chunk: None, filled: 0, is_finished: false }
    }

    /// The number of bytes that are still to come.
    pub fn missing(&self) -> u32 {
        self.request.len - self.filled
    }

    /// Appends data.
    ///
    /// # Panics
    /// If it is more than is [`missing`](Self::missing).
    pub fn data(&mut self, data: &[u8]) {
        self.buffer(data.len()).copy_from_slice(data);
    }

    /// Appends `len` bytes with unspecified contents. The caller must fill all of them, or [fail](Self::fail) the
    /// command.
    ///
    /// # Panics
    /// If they are more than are [`missing`](Self::missing).
    pub fn buffer(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= self.missing() as usize, "a read gets no more than it asked for");
        if self.completions.structured && len > 0 {
            self.chunk_of(false, len as u32);
        }
        self.filled += len as u32;
        self.completions.output.reserve(len)
    }

    /// Appends zeroes; as a hole if the client understands that.
    ///
    /// # Panics
    /// If they are more than are [`missing`](Self::missing).
    pub fn zeroes(&mut self, len: u32) {
        assert!(len <= self.missing(), "a read gets no more than it asked for");
        if !self.completions.structured || self.request.is_single() || len < HOLE_BYTES_MIN {
            self.buffer(len as usize).fill(0);
            return;
        }
        self.chunk_of(true, len);
        self.filled += len;
    }

    /// Extends the last chunk, or begins another one.
    fn chunk_of(&mut self, is_hole: bool, len: u32) {
        if let Some(chunk) = self.chunk.as_mut().filter(|chunk| chunk.is_hole == is_hole) {
            chunk.len += len;
            return;
        }
        self.close_chunk(0);
        let place = self.completions.output.end();
        let kind = if is_hole { wire::REPLY_TYPE_OFFSET_HOLE } else { wire::REPLY_TYPE_OFFSET_DATA };
        self.completions.chunk(0, kind, self.request.cookie, 0);
        let offset = self.request.offset + u64::from(self.filled);
        self.completions.output.put(&offset.to_be_bytes());
        if is_hole {
            self.completions.output.put(&[0; 4]);
        }
        self.chunk = Some(ReplyChunk { place, is_hole, len });
    }

    /// Completes the last chunk's header.
    fn close_chunk(&mut self, flags: u16) {
        let Some(ReplyChunk { place, is_hole, len }) = self.chunk.take() else { return };
        let output = &mut self.completions.output;
        output.at(place + 4, 2).copy_from_slice(&flags.to_be_bytes());
        let payload = if is_hole { 12 } else { 8 + len };
        output.at(place + 16, 4).copy_from_slice(&payload.to_be_bytes());
        if is_hole {
            output.at(place + 28, 4).copy_from_slice(&len.to_be_bytes());
        }
    }

    /// Completes the command.
    ///
    /// # Panics
    /// If bytes are [`missing`](Self::missing).
    pub fn finish(mut self) {
        assert_eq!(self.missing(), 0, "a read is answered as a whole");
        self.close_chunk(wire::REPLY_FLAG_DONE);
        self.is_finished = true;
    }

    /// Fails the command. Appended data is not sent.
    pub fn fail(mut self, errno: Errno) {
        self.abort(errno);
    }

    fn abort(&mut self, errno: Errno) {
        self.completions.output.truncate(self.start);
        self.completions.refuse(self.request.cookie, errno);
        self.is_finished = true;
    }
}

impl Drop for ReadReply<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.abort(Errno::Io);
        }
    }
}

/// The reply to a BLOCK_STATUS. Dropped before an extent was pushed, it fails the command with EIO.
#[derive(Debug)]
pub struct ExtentsReply<'a> {
    completions: &'a mut Completions,
    request: Request,
    /// The start of the reply in the output.
    start: usize,
    /// Bytes that the extents before the last one cover.
    described: u32,
    last: Option<(u32, ExtentState)>,
    count: usize,
}

impl<'a> ExtentsReply<'a> {
    pub(super) fn new(completions: &'a mut Completions, request: Request) -> Self {
        let start = completions.output.end();
        completions.chunk(wire::REPLY_FLAG_DONE, wire::REPLY_TYPE_BLOCK_STATUS, request.cookie, 0);
        completions.output.put(&ALLOCATION_CONTEXT.to_be_bytes());
        Self { completions, request, start, described: 0, last: None, count: 0 }
    }

    /// Appends a run of bytes; runs of the same state become one extent, and bytes beyond the request are cut off.
    /// Returns whether more extents fit; the client asks again for the rest.
    pub fn push(&mut self, len: u64, state: ExtentState) -> bool {
        let (last, is_same) = match self.last {
            Some((len, before)) => (len, before == state),
            None => (0, false),
        };
        let missing = self.request.len - self.described - last;
        let len = u32::try_from(len).unwrap_or(u32::MAX).min(missing);
        if len == 0 {
            return missing > 0;
        }
        if is_same {
            self.last = Some((last + len, state));
            return missing > len;
        }
        let is_full = self.last.is_some() && self.request.is_single() || self.count + 1 >= EXTENTS_MAX;
        if is_full {
            return false;
        }
        self.write_last();
        self.last = Some((len, state));
        missing > len
    }

    fn write_last(&mut self) {
        let Some((len, state)) = self.last.take() else { return };
        let flags = match state {
            ExtentState::Data => 0,
            ExtentState::Zero => wire::STATE_ZERO,
            ExtentState::Hole => wire::STATE_HOLE | wire::STATE_ZERO,
        };
        self.completions.output.put(&len.to_be_bytes());
        self.completions.output.put(&flags.to_be_bytes());
        self.described += len;
        self.count += 1;
    }

    /// Completes the command.
    pub fn finish(self) {}

    /// Fails the command.
    pub fn fail(mut self, errno: Errno) {
        (self.last, self.count) = (None, 0);
        self.complete(errno);
    }

    fn complete(&mut self, errno: Errno) {
        self.write_last();
        let output = &mut self.completions.output;
        if self.count == 0 {
            output.truncate(self.start);
            self.completions.refuse(self.request.cookie, errno);
            // The drop that follows has nothing left to do.
            self.count = usize::MAX;
            return;
        }
        let len = 4 + 8 * self.count as u32;
        output.at(self.start + 16, 4).copy_from_slice(&len.to_be_bytes());
    }
}

impl Drop for ExtentsReply<'_> {
    fn drop(&mut self) {
        if self.count != usize::MAX {
            self.complete(Errno::Io);
        }
    }
}
