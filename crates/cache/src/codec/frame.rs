//! Zstandard frames without what a record says anyway: their magic number, the dictionary and the length of the value.
//! RFC 8878, 3.1.1, has a frame's header.

/// What every frame begins with.
const MAGIC: [u8; 4] = 0xFD2F_B528u32.to_le_bytes();

/// One segment, whose length takes four bytes; no checksum, no dictionary.
const DESCRIPTOR: u8 = 0b1010_0000;

/// Bytes of the header that [`with_header`] writes.
const HEADER_SIZE: usize = 9;

/// The blocks of a frame: what follows its header; `None`: it is none.
pub(super) fn blocks(frame: &[u8]) -> Option<&[u8]> {
    let rest = frame.strip_prefix(&MAGIC)?;
    let descriptor = *rest.first()?;
    let is_one_segment = descriptor >> 5 & 1 == 1;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let len = match descriptor >> 6 {
        0 => usize::from(is_one_segment),
        size => 1 << size,
    };
    rest.get(1 + usize::from(!is_one_segment) + dictionary + len..)
}

/// A frame of these blocks, for a value of `raw_len` bytes.
pub(super) fn with_header(blocks: &[u8], raw_len: usize, frame: &mut Vec<u8>) {
    frame.clear();
    frame.reserve(HEADER_SIZE + blocks.len());
    frame.extend_from_slice(&MAGIC);
    frame.push(DESCRIPTOR);
    frame.extend_from_slice(&(raw_len as u32).to_le_bytes());
    frame.extend_from_slice(blocks);
}
