//! Zstandard frames without what the record has anyway: magic number, dictionary and length of the value, and the block
//! header if there is only one block. RFC 8878, 3.1.1, has the format.

/// The first bytes of every frame.
const MAGIC: [u8; 4] = 0xFD2F_B528u32.to_le_bytes();

/// One segment, whose length takes four bytes; no checksum, no dictionary.
const DESCRIPTOR: u8 = 0b1010_0000;

/// Bytes of the header that [`rebuild`] writes.
const HEADER_SIZE: usize = 9;

/// Bytes of a block's header: whether it is the last (bit 0), its type (bits 1 and 2), its length.
const BLOCK_HEADER_SIZE: usize = 3;

/// The lowest three bits of the header of a last block with compressed data.
const LAST_COMPRESSED: u32 = 1 | 2 << 1;

/// The part of a frame that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// The compressed data of its only block.
    Block(&'a [u8]),
    /// All its blocks, with their headers.
    Blocks(&'a [u8]),
}

/// The part of a frame that is stored; `None`: the bytes are no frame.
pub(super) fn content(frame: &[u8]) -> Option<Content<'_>> {
    let rest = frame.strip_prefix(&MAGIC)?;
    let descriptor = *rest.first()?;
    let is_one_segment = descriptor >> 5 & 1 == 1;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let len = match descriptor >> 6 {
        0 => usize::from(is_one_segment),
        size => 1 << size,
    };
    let blocks = rest.get(1 + usize::from(!is_one_segment) + dictionary + len..)?;
    Some(match blocks.split_first_chunk() {
        Some((header, data)) if *header == block_header(data.len()) => Content::Block(data),
        _ => Content::Blocks(blocks),
    })
}

/// The header of a frame's only block, with `len` bytes of compressed data.
fn block_header(len: usize) -> [u8; BLOCK_HEADER_SIZE] {
    // Lengths have 21 bits, and longer values several blocks.
    let [first, second, third, _] = ((len as u32) << 3 | LAST_COMPRESSED).to_le_bytes();
    [first, second, third]
}

/// Makes the frame of a value of `raw_len` bytes.
pub(super) fn rebuild(content: Content<'_>, raw_len: usize, frame: &mut Vec<u8>) {
    let (Content::Block(bytes) | Content::Blocks(bytes)) = content;
    frame.clear();
    frame.reserve(HEADER_SIZE + BLOCK_HEADER_SIZE + bytes.len());
    frame.extend_from_slice(&MAGIC);
    frame.push(DESCRIPTOR);
    frame.extend_from_slice(&(raw_len as u32).to_le_bytes());
    if let Content::Block(data) = content {
        frame.extend_from_slice(&block_header(data.len()));
    }
    frame.extend_from_slice(bytes);
}
