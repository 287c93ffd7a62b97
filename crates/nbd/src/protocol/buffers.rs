//! A connection's buffers: bytes that have arrived, bytes to be sent.

use crate::limits::{BUFFER_BYTES, OUTPUT_STEP_BYTES};

/// Bytes that have arrived and were not consumed.
#[derive(Debug)]
pub(crate) struct Input {
    /// Completely initialised; `start..end` has arrived.
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    pub fn new() -> Self {
        Self { bytes: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    /// The bytes that have arrived.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub fn consume(&mut self, len: usize) {
        self.start += len;
        assert!(self.start <= self.end, "what is consumed has arrived");
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Space for arriving bytes: at least one, unless `wanted` bytes have arrived. `wanted` bytes fit the buffer.
    pub fn space(&mut self, wanted: usize) -> &mut [u8] {
        debug_assert!(wanted <= BUFFER_BYTES);
        if self.start > 0 && (self.end == self.bytes.len() || wanted > self.bytes.len() - self.start) {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// Notes that `len` bytes of the space were filled.
    pub fn arrived(&mut self, len: usize) {
        self.end += len;
        assert!(self.end <= self.bytes.len());
    }
}

/// Bytes to be sent.
#[derive(Debug)]
pub(crate) struct Output {
    /// Completely initialised; `start..end` is to be sent.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Output {
    pub fn new() -> Self {
        Self { bytes: Vec::new(), start: 0, end: 0 }
    }

    /// The bytes that are still to be sent.
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Notes that the first `len` bytes were sent.
    pub fn sent(&mut self, len: usize) {
        self.start += len;
        assert!(self.start <= self.end, "what is sent was pending");
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > self.end - self.start {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }

    /// The place of the next byte, until the next call of `sent`.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Removes the bytes put since `end` returned this.
    pub fn truncate(&mut self, end: usize) {
        assert!((self.start..=self.end).contains(&end));
        self.end = end;
    }

    /// The next `len` bytes, with unspecified contents.
    pub fn reserve(&mut self, len: usize) -> &mut [u8] {
        let (at, end) = (self.end, self.end + len);
        if end > self.bytes.len() {
            self.grow(end);
        }
        self.end = end;
        &mut self.bytes[at..end]
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        let len = match end <= BUFFER_BYTES {
            true => end.next_power_of_two().max(BUFFER_BYTES / 4),
            // Long replies count with their capacity, so at most one step of it may be unused.
            false => end.next_multiple_of(OUTPUT_STEP_BYTES),
        };
        self.bytes.reserve_exact(len - self.bytes.len());
        self.bytes.resize(len, 0);
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len()).copy_from_slice(bytes);
    }

    /// The bytes put at a place that `end` returned.
    pub fn at(&mut self, place: usize, len: usize) -> &mut [u8] {
        assert!(place + len <= self.end);
        &mut self.bytes[place..place + len]
    }

    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Gives back most of the room beyond `bytes`, if more than as much again is there. Places that [`end`](Self::end)
    /// gave are not valid any more.
    pub fn shrink(&mut self, bytes: usize) {
        let pending = self.end - self.start;
        let len = bytes.max(pending).max(BUFFER_BYTES);
        if self.bytes.len() > 2 * len {
            let mut fresh = Self::new();
            if bytes.max(pending) > BUFFER_BYTES {
                fresh.grow(len);
            }
            fresh.put(self.pending());
            *self = fresh;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_replies_take_a_step_more_than_they_are_at_the_most() {
        let mut output = Output::new();
        output.put(&[7; 100]);
        assert_eq!(output.capacity(), BUFFER_BYTES / 4);
        output.reserve(BUFFER_BYTES - 100);
        assert_eq!(output.capacity(), BUFFER_BYTES);
        for len in [1, 5 << 20, 32 << 20] {
            output.reserve(len);
            let (end, taken) = (output.end(), output.bytes.capacity());
            assert!(taken < end + OUTPUT_STEP_BYTES, "{taken} bytes for {end}");
            assert_eq!(output.capacity(), taken);
        }
        assert_eq!(output.pending()[..100], [7; 100]);
    }

    #[test]
    fn what_is_pending_stays_where_room_is_given_back() {
        let mut output = Output::new();
        output.put(&[1; 100]);
        output.put(&[7; 32 << 20]);
        output.sent(100 + (30 << 20));
        let has = output.capacity();
        output.shrink(20 << 20);
        assert_eq!(output.capacity(), has, "less than as much again");
        output.shrink(3 << 20);
        assert!((3 << 20..(3 << 20) + OUTPUT_STEP_BYTES).contains(&output.capacity()));
        assert_eq!(output.pending(), vec![7; 2 << 20]);
        output.sent(2 << 20);
        output.shrink(0);
        assert_eq!((output.capacity(), output.pending().len()), (0, 0));
    }
}
