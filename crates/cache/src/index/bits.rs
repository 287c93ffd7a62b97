//! Bits of a cache line: fields at any bit, and the search for the n-th one of a word.

use crate::limits::BUCKET_BYTES;

/// The bytes of a bucket: one line of the processor's caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(super) struct Line(pub [u8; BUCKET_BYTES]);

const _: () = assert!(size_of::<Line>() == BUCKET_BYTES);

/// Most bits of a field: a load is 64 bits, 7 of which may lie before it.
pub(super) const FIELD_BITS_MAX: u32 = 57;

/// The lowest bits of a word.
#[inline]
pub(super) fn low_bits(bits: usize) -> u64 {
    (1 << bits) - 1
}

/// The offset of the 8 bytes that are loaded for `bit`, and the bit's number in them. For a bit beyond the bucket the
/// number is arbitrary.
#[inline]
fn word_of(bit: usize) -> (usize, usize) {
    let at = (bit / 8).min(BUCKET_BYTES - 8);
    // The mask changes nothing; it tells the compiler the range.
    (at, (bit - at * 8) & 63)
}

/// The 57 or more bits from `bit` on, or as many as the bucket has from there. Bits beyond the bucket are arbitrary.
#[inline]
pub(super) fn load(line: &Line, bit: usize) -> u64 {
    let (at, shift) = word_of(bit);
    u64::from_le_bytes(line.0[at..at + 8].try_into().expect("8 bytes")) >> shift
}

/// Replaces the bits of `mask`, shifted to `bit`; all fit one load.
#[inline]
pub(super) fn store(line: &mut Line, bit: usize, mask: u64, value: u64) {
    let (at, shift) = word_of(bit);
    let old = u64::from_le_bytes(line.0[at..at + 8].try_into().expect("8 bytes"));
    line.0[at..at + 8].copy_from_slice(&(old & !(mask << shift) | value << shift).to_le_bytes());
}

/// Moves the bits of the bucket from bit `from` on up by `by` bits, less than a word; the last ones drop out. The gap's
/// content is arbitrary.
pub(super) fn open_gap(line: &mut Line, from: usize, by: u32) {
    let words = words(line);
    let below = |i: usize| if i == 0 { 0 } else { words[i - 1] };
    replace_from(line, from, &words, std::array::from_fn(|i| words[i] << by | below(i) >> (64 - by)));
}

/// Moves the bits of the bucket from bit `from + by` on down by `by` bits, less than a word.
pub(super) fn close_gap(line: &mut Line, from: usize, by: u32) {
    let words = words(line);
    let above = |i: usize| words.get(i + 1).copied().unwrap_or_default();
    replace_from(line, from, &words, std::array::from_fn(|i| words[i] >> by | above(i) << (64 - by)));
}

const WORDS: usize = BUCKET_BYTES / 8;

/// The words of the bucket.
#[inline]
fn words(line: &Line) -> [u64; WORDS] {
    let (words, _) = line.0.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// Replaces the bits of the bucket from bit `from` on, which lies in it. All words are written without a branch,
/// several at once if the processor can.
#[inline]
fn replace_from(line: &mut Line, from: usize, words: &[u64; WORDS], by: [u64; WORDS]) {
    const KEPT: [u64; 2 * WORDS] = {
        let mut kept = [0; 2 * WORDS];
        let mut i = 0;
        while i < WORDS {
            kept[i] = u64::MAX;
            i += 1;
        }
        kept
    };
    let divided = (from / 64) & (WORDS - 1);
    let kept: &[u64; WORDS] = KEPT[WORDS - divided..].first_chunk().expect("as many follow");
    let mut new: [u64; WORDS] = std::array::from_fn(|i| words[i] & kept[i] | by[i] & !kept[i]);
    let low = low_bits(from % 64);
    new[divided] = words[divided] & low | by[divided] & !low;
    let (bytes, _) = line.0.as_chunks_mut::<8>();
    for (bytes, word) in bytes.iter_mut().zip(new) {
        *bytes = word.to_le_bytes();
    }
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const TOP_BITS: u64 = LOW_BITS << 7;

/// The number of eight bytes, all below 128, that are at most `n`, below 128.
#[inline]
fn at_most(bytes: u64, n: u64) -> usize {
    let tops = ((n * LOW_BITS) | TOP_BITS) - bytes;
    (((tops & TOP_BITS) >> 7).wrapping_mul(LOW_BITS) >> 56) as usize
}

/// The way in which the n-th one of a word is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Select {
    /// By the processor's bit-deposit instruction (`pdep`).
    Deposit,
    /// By sums over bytes and bits.
    Broadword,
}

impl Select {
    /// The faster one on this processor.
    pub fn of_processor() -> Self {
        // AMD's Zen 1 and 2 have `pdep` in slow microcode. They have neither `vaes` nor `avx512f`, unlike later
        // processors and most of Intel's.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && (is_x86_feature_detected!("vaes") || is_x86_feature_detected!("avx512f"))
        {
            return Self::Deposit;
        }
        Self::Broadword
    }

    /// The position of the one that has `n` ones below it. The word has more than `n` ones.
    #[inline]
    pub fn find(self, word: u64, n: usize) -> usize {
        match self {
            Self::Deposit => deposit_select(word, n),
            Self::Broadword => broadword_select(word, n),
        }
    }
}

/// Can be inlined into callers built for any processor, unlike the compiler's intrinsic.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn deposit_select(word: u64, n: usize) -> usize {
    let bit: u64;
    // SAFETY: `Select::Deposit` is made where the processor has both instructions; they touch two registers.
    unsafe {
        std::arch::asm!(
            "pdep {bit}, {bit}, {word}",
            "tzcnt {bit}, {bit}",
            bit = inout(reg) 1u64 << n => bit,
            word = in(reg) word,
            options(pure, nomem, nostack),
        );
    }
    bit as usize
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn deposit_select(word: u64, n: usize) -> usize {
    broadword_select(word, n)
}

/// Sums over bytes tell which byte has the bit, and sums over its bits which bit it is, without a branch (Vigna,
/// Broadword Implementation of Rank/Select Queries, 2008).
#[inline]
fn broadword_select(word: u64, n: usize) -> usize {
    let pairs = word - ((word >> 1) & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + ((pairs >> 2) & 0x3333_3333_3333_3333);
    // How many ones each byte and those below it have.
    let sums = ((nibbles + (nibbles >> 4)) & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(LOW_BITS);
    let bit = at_most(sums, n as u64) * 8;
    let below = ((sums << 8) >> bit) & 0xFF;
    // Each bit of that byte in a byte of its own, as a 1.
    let apart = ((word >> bit & 0xFF) * LOW_BITS) & 0x8040_2010_0804_0201;
    let ones = ((apart + (TOP_BITS - LOW_BITS)) | apart) >> 7 & LOW_BITS;
    bit + at_most(ones.wrapping_mul(LOW_BITS), n as u64 - below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_finds_each_one_of_a_word() {
        let mut word = 0x9E37_79B9_7F4A_7C15u64;
        for round in 0..2000u32 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            for word in [word, word & word >> 7, !(word & word << 9), 1 << (round % 64), u64::MAX] {
                let ones = (0..64).filter(|bit| word >> bit & 1 == 1);
                for (n, bit) in ones.enumerate() {
                    for select in [Select::Broadword, Select::of_processor()] {
                        assert_eq!(select.find(word, n), bit, "{select:?}: one {n} of {word:#x}");
                    }
                }
            }
        }
    }

    #[test]
    fn gaps_open_and_close() {
        let word = |i: u64| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        let line = Line(Vec::from_iter((0..8).flat_map(word)).try_into().unwrap());
        let bit = |line: &Line, bit: usize| line.0[bit / 8] >> (bit % 8) & 1;
        let bits = BUCKET_BYTES * 8;
        for from in 0..bits {
            for by in [1, 7, 8, 28, FIELD_BITS_MAX] {
                let mut moved = line;
                open_gap(&mut moved, from, by);
                let gap = by as usize;
                assert!((0..from).all(|at| bit(&moved, at) == bit(&line, at)));
                assert!((from + gap..bits).all(|at| bit(&moved, at) == bit(&line, at - gap)));
                close_gap(&mut moved, from, by);
                assert!((0..bits.saturating_sub(gap)).all(|at| bit(&moved, at) == bit(&line, at)));
            }
        }
    }

    #[test]
    fn a_stored_field_touches_no_other_bit() {
        for bits in [1, 5, 31, FIELD_BITS_MAX as usize] {
            for bit in 0..BUCKET_BYTES * 8 - bits {
                let mut line = Line([0xA5; BUCKET_BYTES]);
                let mask = low_bits(bits);
                store(&mut line, bit, mask, 0x0123_4567_89AB_CDEF & mask);
                assert_eq!(load(&line, bit) & mask, 0x0123_4567_89AB_CDEF & mask);
                store(&mut line, bit, mask, load(&Line([0xA5; BUCKET_BYTES]), bit) & mask);
                assert_eq!(line, Line([0xA5; BUCKET_BYTES]));
            }
        }
    }
}
