//! LZ4 bodies: frames, one after the other.

use std::io::Read;

use granary_sql::Error;
use lz4_flex::frame::FrameDecoder;

use crate::limits::{BODY_BYTES_MAX, BODY_STEP_BYTES, LZ4_BLOCK_BYTES_ALL_MAX};

const MAGIC: u32 = 0x184D_2204;
/// Magic numbers of frames without data for the reader.
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;

fn wrong(what: &dyn std::fmt::Display) -> Error {
    Error::cannot_decompress(format!("Cannot decompress: {what}"))
}

/// Unpacks frames. `check_memory` is called before each step.
///
/// # Errors
/// A frame is damaged or truncated, the frames hold too much, or the error of `check_memory`.
pub fn unpacked(packed: &[u8], check_memory: impl Fn(usize) -> Result<(), Error>) -> Result<Vec<u8>, Error> {
    let mut plain = Vec::new();
    for frame in frames(packed)? {
        let mut left = frame;
        let mut frame = FrameDecoder::new(&mut left);
        loop {
            check_memory(BODY_STEP_BYTES)?;
            let step = frame.by_ref().take(BODY_STEP_BYTES as u64).read_to_end(&mut plain);
            let read = step.map_err(|error| wrong(&error))?;
            if plain.len() > BODY_BYTES_MAX {
                return Err(wrong(&format!("the body holds more than {BODY_BYTES_MAX} bytes")));
            }
            if read < BODY_STEP_BYTES {
                break;
            }
        }
        // The decoder ends a frame at a block of no bytes, whatever follows it.
        if !left.is_empty() {
            return Err(wrong(&"a frame has a block of no bytes"));
        }
    }
    Ok(plain)
}

/// The frames of a body, each complete according to its headers. A decoder allocates a block as long as the header
/// allows, whatever it holds: frames of headers alone would keep it busy for hours.
fn frames(packed: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let (mut frames, mut left, mut room) = (Vec::new(), packed, 0);
    while !left.is_empty() {
        let frame = frame(left).ok_or_else(|| wrong(&"the body is no frame of LZ4, or ends within one"))?;
        room += frame.block_bytes_max;
        if room > LZ4_BLOCK_BYTES_ALL_MAX {
            return Err(wrong(
                &"the body has too many frames: make fewer of them, or blocks that are smaller",
            ));
        }
        let (bytes, rest) = left.split_at(frame.len);
        if !frame.is_skippable {
            frames.push(bytes);
        }
        left = rest;
    }
    Ok(frames)
}

struct Frame {
    len: usize,
    /// Bytes of its longest block, as its header says.
    block_bytes_max: usize,
    is_skippable: bool,
}

/// The frame at the beginning of the bytes; `None`: there is none, or it is truncated.
fn frame(bytes: &[u8]) -> Option<Frame> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let magic = u32_at(0)?;
    if SKIPPABLE.contains(&magic) {
        let len = 8 + u32_at(4)? as usize;
        return (len <= bytes.len()).then_some(Frame { len, block_bytes_max: 0, is_skippable: true });
    }
    if magic != MAGIC {
        return None;
    }
    let [flags, block] = [*bytes.get(4)?, *bytes.get(5)?];
    let has = |bit: u32| usize::from(flags >> bit & 1);
    let (content_size, dictionary) = (8 * has(3), 4 * has(0));
    let (block_checksum, content_checksum) = (4 * has(4), 4 * has(2));
    let mut at = 6 + content_size + dictionary + 1;
    loop {
        // The highest bit marks a block that is stored uncompressed.
        let len = (u32_at(at)? & 0x7FFF_FFFF) as usize;
        at += 4;
        if u32_at(at - 4)? == 0 {
            break;
        }
        at = at.checked_add(len + block_checksum)?;
    }
    at += content_checksum;
    // There are no shorter blocks.
    let code = Some(block >> 4 & 7).filter(|code| *code >= 4)?;
    let block_bytes_max = 256usize << (2 * code);
    (at <= bytes.len()).then_some(Frame { len: at, block_bytes_max, is_skippable: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
    use std::io::Write;

    fn packed(info: FrameInfo, plain: &[u8]) -> Vec<u8> {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn plain_of(packed: &[u8]) -> Option<Vec<u8>> {
        unpacked(packed, |_| Ok(())).ok()
    }

    #[test]
    fn frames_in_a_row_are_one_body_and_what_breaks_off_is_none() {
        let text: Vec<u8> = (0..300_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let infos = [
            FrameInfo::new(),
            FrameInfo::new().block_size(BlockSize::Max64KB).block_checksums(true).content_checksum(true),
            FrameInfo::new().content_size(Some(text.len() as u64)),
        ];
        let frames: Vec<Vec<u8>> = infos.into_iter().map(|info| packed(info, &text)).collect();
        let empty = packed(FrameInfo::new(), b"");
        let skippable = [&0x184D_2A53u32.to_le_bytes()[..], &3u32.to_le_bytes(), b"abc"].concat();
        let all = [&frames[0][..], &skippable, &frames[1], &empty, &frames[2]].concat();
        assert_eq!(plain_of(&all), Some(text.repeat(3)));
        assert_eq!(plain_of(b""), Some(Vec::new()));
        let short = packed(FrameInfo::new().content_checksum(true), b"1\n2\n");
        for len in 1..short.len() {
            assert_eq!(plain_of(&short[..len]), None, "cut to {len} bytes");
        }
        // A stored block of no bytes, and the rest after it.
        let mut broken = short[..7].to_vec();
        broken.extend_from_slice(&0x8000_0000u32.to_le_bytes());
        broken.extend_from_slice(&short[7..]);
        assert_eq!(plain_of(&broken), None);
        assert_eq!(plain_of(&[&short[..], b"1\n"].concat()), None);
    }

    #[test]
    fn frames_of_nothing_are_bounded() {
        // A block of one byte that is compressed, in a frame with blocks of 4 MiB.
        let mut info = packed(FrameInfo::new().block_size(BlockSize::Max4MB), b"")[..7].to_vec();
        info.extend_from_slice(&1u32.to_le_bytes());
        info.extend_from_slice(&[0, 0, 0, 0, 0]);
        let many = info.repeat(LZ4_BLOCK_BYTES_ALL_MAX / (4 << 20) + 1);
        let refused = unpacked(&many, |_| panic!("nothing is unpacked")).unwrap_err();
        assert!(refused.to_string().contains("too many frames"), "{refused}");
    }
}
