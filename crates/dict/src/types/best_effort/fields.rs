//! The parts of a text of a time, read one after the other.

use super::super::calendar::days_from_civil;
use super::cursor::{Cursor, MONTHS, WEEKDAYS, number, place_of};
use super::{
    DAY_TWICE, Day, Fraction, NO_SUCH_DAY, NOTHING, Reason, Time, UNEXPECTED_DIGITS, UNEXPECTED_WORD,
    UnixFraction, WrittenTime,
};

/// Digits of a fraction that count.
const FRACTION_DIGITS_MAX: usize = 18;

/// What was read so far; 0: not read yet.
#[derive(Default)]
pub(super) struct TimeFields<'a> {
    text: Cursor<'a>,
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    has_time: bool,
    pub fraction: Fraction,
    has_fraction: bool,
    offset: Option<Offset>,
    meridiem: Option<Meridiem>,
    has_comma: bool,
}

#[derive(Clone, Copy, Default)]
struct Offset {
    is_negative: bool,
    hours: i64,
    minutes: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Meridiem {
    Am,
    Pm,
}

/// What comes after a part of the text.
enum Next {
    /// Another part.
    Part,
    /// The end, or something that is no part of a time.
    End,
}

impl<'a> TimeFields<'a> {
    /// A text of which nothing is read yet.
    pub fn of(text: &'a str) -> Self {
        Self { text: Cursor { rest: text.as_bytes() }, ..Self::default() }
    }

    /// Whether all of the text is read.
    pub fn is_at_end(&self) -> bool {
        self.text.rest.is_empty()
    }

    /// Reads part by part; gives Unix seconds if the text has them.
    pub fn read(&mut self, unix_fraction: UnixFraction) -> Result<Option<i64>, Reason> {
        while let Some(next) = self.text.peek() {
            if next == b',' && (self.year != 0) != self.has_time {
                self.has_comma = true;
                self.text.rest = &self.text.rest[1..];
                if self.text.rest.is_empty() {
                    break;
                }
            }
            let digits = if self.year == 0 || !self.has_time { self.text.digits() } else { &[] };
            let next = match digits.len() {
                9 | 10 | 13 | 16 | 19 if self.year == 0 && !self.has_time => {
                    return Ok(Some(self.unix(digits, unix_fraction)));
                }
                0 => self.other()?,
                _ => self.number(digits)?,
            };
            if matches!(next, Next::End) {
                break;
            }
        }
        Ok(None)
    }

    /// Unix seconds, or milliseconds, microseconds or nanoseconds.
    fn unix(&mut self, digits: &[u8], fraction: UnixFraction) -> i64 {
        let (seconds, parts) = digits.split_at(digits.len().min(10));
        self.fraction = Fraction { value: number(parts), digits: parts.len() as u32 };
        if parts.is_empty() && fraction == UnixFraction::Read && self.text.eat_byte(b'.') {
            self.read_fraction();
        }
        number(seconds)
    }

    fn read_fraction(&mut self) {
        let digits = self.text.digits();
        let digits = &digits[..digits.len().min(FRACTION_DIGITS_MAX)];
        self.fraction = Fraction { value: number(digits), digits: digits.len() as u32 };
    }

    /// A part that begins with digits.
    fn number(&mut self, digits: &[u8]) -> Result<Next, Reason> {
        match digits.len() {
            14 if self.year == 0 && !self.has_time => {
                self.set_day(&digits[..8])?;
                self.set_clock(&digits[8..])?;
            }
            8 if self.year == 0 => self.set_day(digits)?,
            6 if self.year == 0 && self.month == 0 => self.set_day(digits)?,
            6 if !self.has_time => self.set_clock(digits)?,
            4 if self.year == 0 => return self.year_first(number(digits)),
            1 | 2 => return self.short_first(number(digits)),
            _ => return Err(UNEXPECTED_DIGITS),
        }
        Ok(Next::Part)
    }

    /// `YYYYMMDD` or `YYYYMM`.
    fn set_day(&mut self, digits: &[u8]) -> Result<(), Reason> {
        let day = number(&digits[6..]);
        if day > 0 && (self.day != 0 || self.month != 0) {
            return Err(DAY_TWICE);
        }
        (self.year, self.month) = (number(&digits[..4]), number(&digits[4..6]));
        self.day = self.day.max(day);
        Ok(())
    }

    /// `hhmmss`.
    fn set_clock(&mut self, digits: &[u8]) -> Result<(), Reason> {
        if self.hour != 0 {
            return Err("hour component is duplicated");
        }
        (self.hour, self.minute, self.second) =
            (number(&digits[..2]), number(&digits[2..4]), number(&digits[4..]));
        self.has_time = true;
        Ok(())
    }

    /// `YYYY`, after it a month, and after the same delimiter a day.
    fn year_first(&mut self, year: i64) -> Result<Next, Reason> {
        self.year = year;
        let Some(delimiter) = self.text.peek() else { return Ok(Next::Part) };
        if !(0x20..0x80).contains(&delimiter) || b",;'\"".contains(&delimiter) {
            return Ok(Next::End);
        }
        if self.month != 0 {
            return Ok(Next::Part);
        }
        self.text.rest = &self.text.rest[1..];
        // After a blank something else may follow.
        match self.text.short_number() {
            Ok(month) => self.month = month,
            Err(_) if delimiter == b' ' => return Ok(Next::Part),
            Err(reason) => return Err(reason),
        }
        if self.day == 0 && self.text.eat_byte(delimiter) {
            match self.text.short_number() {
                Ok(day) => self.day = day,
                Err(_) if delimiter == b' ' => {}
                Err(reason) => return Err(reason),
            }
        }
        Ok(Next::Part)
    }

    /// `hh:mm`, `hh:mm:ss`, `DD/MM/YYYY`, `DD-Mon-YY`, `DD`, or `hh` after a day.
    fn short_first(&mut self, value: i64) -> Result<Next, Reason> {
        if self.text.eat_byte(b':') {
            if self.has_time {
                return Err("time component is duplicated");
            }
            (self.hour, self.has_time) = (value, true);
            self.minute = self.text.short_number()?;
            if self.text.eat_byte(b':') {
                self.second = self.text.short_number()?;
            }
            return Ok(Next::Part);
        }
        if self.text.eat_byte(b',') {
            if self.month != 0 && self.day == 0 {
                self.day = value;
            }
            return Ok(Next::Part);
        }
        if self.text.eat(is_day_delimiter).is_some() {
            return self.day_first(value);
        }
        if self.day != 0 {
            self.hour = value;
        } else {
            self.day = value;
        }
        Ok(Next::Part)
    }

    /// What follows `DD/`.
    fn day_first(&mut self, day: i64) -> Result<Next, Reason> {
        if self.day != 0 {
            return Err(DAY_TWICE);
        }
        if self.month != 0 {
            return Err("month is duplicated");
        }
        self.day = day;
        let digits = self.text.digits();
        let is_named = digits.is_empty();
        self.month = match digits {
            [] => place_of(self.text.word()?, &MONTHS).ok_or(UNEXPECTED_WORD)?,
            [_] | [_, _] => number(digits),
            _ => return Err(UNEXPECTED_DIGITS),
        };
        if self.month > 12 {
            std::mem::swap(&mut self.month, &mut self.day);
        }
        if self.text.eat(is_day_delimiter).is_some() {
            if self.year != 0 {
                return Err("year component is duplicated");
            }
            self.year = match self.text.digits() {
                digits @ [_, _, _, _] => number(digits),
                digits @ [_, _] if number(digits) >= 70 => 1900 + number(digits),
                digits @ [_, _] => 2000 + number(digits),
                _ => return Err(UNEXPECTED_DIGITS),
            };
        } else if is_named && self.text.peek().is_some() {
            return self.other();
        }
        Ok(Next::Part)
    }

    /// A part that begins with no digit.
    fn other(&mut self) -> Result<Next, Reason> {
        let is_time_next = self.year != 0 && !self.has_time;
        match self.text.peek() {
            Some(b' ') => _ = self.text.eat_byte(b' '),
            Some(b'T') if is_time_next => _ = self.text.eat_byte(b'T'),
            Some(b'Z') => {
                self.text.eat_byte(b'Z');
                self.offset.get_or_insert_default();
            }
            Some(b'.') => {
                if !self.has_time {
                    return Err("unexpected point symbol");
                }
                if std::mem::replace(&mut self.has_fraction, true) {
                    return Err("duplicate fractional part");
                }
                self.text.eat_byte(b'.');
                self.read_fraction();
            }
            Some(sign @ (b'+' | b'-')) => {
                self.text.eat_byte(sign);
                self.signed(sign == b'-')?;
            }
            Some(letter) if letter.is_ascii_alphabetic() => self.named()?,
            _ => return Ok(Next::End),
        }
        Ok(Next::Part)
    }

    /// What follows a sign: the offset of a zone, or `hhmmss` after a day.
    fn signed(&mut self, is_negative: bool) -> Result<(), Reason> {
        let digits = self.text.digits();
        if digits.len() == 6 && !self.has_time && self.year != 0 && self.month != 0 && self.day != 0 {
            return self.set_clock(digits);
        }
        let offset = self.offset.get_or_insert_default();
        if offset.hours != 0 || offset.minutes != 0 {
            return Err("time zone offset is duplicated");
        }
        offset.is_negative |= is_negative;
        match digits.len() {
            3 | 4 => {
                let (hours, minutes) = digits.split_at(digits.len() - 2);
                (offset.hours, offset.minutes) = (number(hours), number(minutes));
            }
            1 | 2 => {
                offset.hours = number(digits);
                if self.text.eat_byte(b':') {
                    let minutes = self.text.short_number()?;
                    self.offset.get_or_insert_default().minutes = minutes;
                }
            }
            _ => return Err(UNEXPECTED_DIGITS),
        }
        Ok(())
    }

    /// A month, a weekday, a half of the day, or a zone.
    fn named(&mut self) -> Result<(), Reason> {
        let word = self.text.word()?;
        if let Some(month) = place_of(word, &MONTHS) {
            self.month = month;
            return Ok(());
        }
        if place_of(word, &WEEKDAYS).is_some() {
            self.text.eat_byte(b',');
            return Ok(());
        }
        match word.to_ascii_uppercase().as_slice() {
            b"AM" => self.meridiem = self.meridiem.or(Some(Meridiem::Am)),
            b"PM" => self.meridiem = Some(Meridiem::Pm),
            b"UTC" | b"GMT" => _ = self.offset.get_or_insert_default(),
            b"MSK" => self.offset.get_or_insert_default().hours = 3,
            b"MSD" => self.offset.get_or_insert_default().hours = 4,
            [_] => return Err("unexpected alphabetical character"),
            _ => return Err(UNEXPECTED_WORD),
        }
        Ok(())
    }

    /// The time that all parts together give.
    pub fn written(self) -> Result<WrittenTime, Reason> {
        if self.has_comma && (!self.has_time || self.year == 0 || self.month == 0 || self.day == 0) {
            return Err("unexpected word after Date");
        }
        if self.year == 0 && self.month == 0 && self.day == 0 && !self.has_time {
            return Err(NOTHING);
        }
        let (month, day) = (self.month.max(1), self.day.max(1));
        // A year that has a 29th of February.
        let year_of_any = 2000;
        let day = match self.year {
            0 => days_from_civil(year_of_any, month, day).map(|_| Day::Last { month, day }),
            year => days_from_civil(year, month, day).map(Day::Known),
        };
        let hour = match self.meridiem {
            Some(Meridiem::Am) if self.hour == 12 => 0,
            Some(Meridiem::Pm) if self.hour < 12 => self.hour + 12,
            _ => self.hour,
        };
        let seconds = hour * 3600 + self.minute * 60 + self.second;
        let offset = self.offset.map(|Offset { is_negative, hours, minutes }| {
            let offset = hours * 3600 + minutes * 60;
            if is_negative { -offset } else { offset }
        });
        let time = Time::Shown { day: day.ok_or(NO_SUCH_DAY)?, seconds, offset };
        Ok(WrittenTime { time, fraction: self.fraction })
    }
}

fn is_day_delimiter(byte: u8) -> bool {
    matches!(byte, b'/' | b'.' | b'-')
}
