//! The bytes of a text, taken one after the other.

use super::{Reason, UNEXPECTED_DIGITS, UNEXPECTED_WORD};

/// Digits that are read at once.
const DIGITS_MAX: usize = 19;

/// Letters of the longest name, `September`.
const NAME_MAX: usize = 9;

/// What is left of a text.
#[derive(Default)]
pub(super) struct Cursor<'a> {
    pub rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub fn eat(&mut self, wanted: impl Fn(u8) -> bool) -> Option<u8> {
        let byte = self.peek().filter(|byte| wanted(*byte))?;
        self.rest = &self.rest[1..];
        Some(byte)
    }

    pub fn eat_byte(&mut self, byte: u8) -> bool {
        self.eat(|next| next == byte).is_some()
    }

    pub fn take(&mut self, most: usize, is_of_it: impl Fn(&u8) -> bool) -> &'a [u8] {
        let length = self.rest.iter().take(most).take_while(|byte| is_of_it(byte)).count();
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    pub fn digits(&mut self) -> &'a [u8] {
        self.take(DIGITS_MAX, u8::is_ascii_digit)
    }

    pub fn letters(&mut self, most: usize) -> &'a [u8] {
        self.take(most, u8::is_ascii_alphabetic)
    }

    /// A number of one or two digits.
    pub fn short_number(&mut self) -> Result<i64, Reason> {
        match self.digits() {
            digits @ ([_] | [_, _]) => Ok(number(digits)),
            _ => Err(UNEXPECTED_DIGITS),
        }
    }

    /// A word, which is short or the whole name of a month or of a weekday.
    pub fn word(&mut self) -> Result<&'a [u8], Reason> {
        let word = self.letters(NAME_MAX + 1);
        match word.len() {
            0..=3 => Ok(word),
            _ if MONTHS.iter().chain(&WEEKDAYS).any(|name| word.eq_ignore_ascii_case(name.as_bytes())) => {
                Ok(word)
            }
            _ => Err(UNEXPECTED_WORD),
        }
    }
}

pub(super) fn number(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'))
}

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The number, from 1 on, of the name that has a word's first three letters, in whatever case.
pub(super) fn place_of(word: &[u8], names: &[&str]) -> Option<i64> {
    let begin = word.get(..3)?;
    let place = names.iter().position(|name| name.as_bytes()[..3].eq_ignore_ascii_case(begin))?;
    Some(place as i64 + 1)
}
