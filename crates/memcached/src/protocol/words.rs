//! Cuts a line into words as memcached does.

use crate::limits::WORDS_MAX;

/// The first words of a line. Only blanks separate; a zero byte ends the line.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    line: &'a [u8],
    words: [&'a [u8]; WORDS_MAX],
    /// The end of each word in `line`.
    ends: [usize; WORDS_MAX],
    count: usize,
}

/// All words of `line`.
pub fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

/// The words of `line` from `begin` on, and where each begins.
pub fn split_from(line: &[u8], begin: usize) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = begin;
    let words = line[begin..].split(|byte| *byte == b' ').map(move |word| {
        let at = next;
        next += word.len() + 1;
        (at, word)
    });
    words.filter(|(_, word)| !word.is_empty())
}

impl<'a> Words<'a> {
    /// Cuts `line`.
    pub fn of(line: &'a [u8]) -> Self {
        let line = match line.iter().position(|byte| *byte == 0) {
            Some(end) => &line[..end],
            None => line,
        };
        let mut words = Self { line, words: [&line[..0]; WORDS_MAX], ends: [0; WORDS_MAX], count: 0 };
        let mut at = 0;
        while words.count < WORDS_MAX {
            at += line[at..].iter().take_while(|byte| **byte == b' ').count();
            if at == line.len() {
                break;
            }
            let end = line[at..].iter().position(|byte| *byte == b' ').map_or(line.len(), |n| at + n);
            words.words[words.count] = &line[at..end];
            words.ends[words.count] = end;
            words.count += 1;
            at = end;
        }
        words
    }

    /// The words.
    pub fn as_slice(&self) -> &[&'a [u8]] {
        &self.words[..self.count]
    }

    /// The rest of the line behind word `i`.
    pub fn after(&self, i: usize) -> &'a [u8] {
        &self.line[self.ends[i]..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_separate_and_zero_ends() {
        let words = Words::of(b"  get a  b\tc\0 d");
        assert_eq!(words.as_slice(), [&b"get"[..], b"a", b"b\tc"]);
        assert_eq!(words.after(1), b"  b\tc");
        let long: String = (0..30).map(|i| format!(" {i}")).collect();
        let words = Words::of(long.as_bytes());
        assert_eq!((words.as_slice().len(), words.as_slice()[22]), (WORDS_MAX, &b"22"[..]));
        assert_eq!(split(words.after(22)).count(), 7);
        let from: Vec<_> = split_from(b"a  bc d", 1).collect();
        assert_eq!(from, [(3, &b"bc"[..]), (6, b"d")]);
    }
}
