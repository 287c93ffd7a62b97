//! Substrings: their positions and their text, in bytes or (-UTF8) in letters. Texts are UTF-8 here, so a letter cannot
//! be cut in two.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Int64Array, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;

use super::texts::{Texts, all_texts};
use super::{Function, of};
use crate::error::Error;
use crate::functions::numbers::wrapped;
use crate::types::fixed_bytes;

/// The position of one text in another, from 1; 0 if it is not found. An argument may give the first byte to search at.
macro_rules! position {
    ($name:literal, $find:expr) => {
        Function {
            name: $name,
            arguments: 2..=3,
            field: |given| (all_texts(&given[..2]) && unsigned(&given[2..])).then(|| of(DataType::UInt64)),
            answer: |given, _| {
                let (texts, wanted) = (Texts::of(&given[0])?, Texts::of(&given[1])?);
                let starts = given.get(2).map(whole_numbers).transpose()?;
                let find: fn(&str, &str) -> Option<usize> = $find;
                let place = |row: usize| {
                    let start = starts.as_ref().map_or(0, |starts| starts.value(row) as u64);
                    let skipped = usize::try_from(start).unwrap_or(usize::MAX).saturating_sub(1);
                    let (text, wanted) = (texts.at(row), wanted.at(row));
                    if wanted.is_empty() {
                        return if skipped <= text.len() { skipped as u64 + 1 } else { 0 };
                    }
                    // A match begins at the start of a letter.
                    let skipped =
                        (skipped.min(text.len())..).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                    find(&text[skipped..], wanted).map_or(0, |at| (skipped + at) as u64 + 1)
                };
                Ok(Arc::new(UInt64Array::from_iter_values((0..given[0].len()).map(place))))
            },
        }
    };
}

/// A number of units from an offset, which counts from 1, or backwards from the end; a negative length excludes that
/// many at the end.
macro_rules! substring {
    ($name:literal, $unit:expr) => {
        Function {
            name: $name,
            arguments: 2..=3,
            field: |given| {
                let has_letters = matches!($unit, TextUnit::Bytes) || fixed_bytes(&given[0]).is_none();
                (all_texts(&given[..1]) && has_letters && whole(&given[1..])).then(|| of(DataType::Utf8))
            },
            answer: |given, _| {
                let numbers = given[1..].iter().map(whole_numbers).collect::<Result<Vec<_>>>()?;
                cut(&given[0], $unit, |row, length| {
                    let start = match numbers[0].value(row) {
                        0 => return (0, 0),
                        offset if offset > 0 => i128::from(offset) - 1,
                        offset => length + i128::from(offset),
                    };
                    let end = match numbers.get(1).map(|lengths| i128::from(lengths.value(row))) {
                        None => length,
                        Some(wanted) if wanted >= 0 => start + wanted,
                        Some(without) => length + without,
                    };
                    (start, end)
                })
            },
        }
    };
}

/// A number of units at one end; a negative number excludes them at the other.
macro_rules! end {
    ($name:literal, $unit:expr, $part:expr) => {
        Function {
            name: $name,
            arguments: 2..=2,
            field: |given| {
                let has_letters = matches!($unit, TextUnit::Bytes) || fixed_bytes(&given[0]).is_none();
                (all_texts(&given[..1]) && has_letters && whole(&given[1..])).then(|| of(DataType::Utf8))
            },
            answer: |given, _| {
                let counts = whole_numbers(&given[1])?;
                let part: fn(i128, i128) -> (i128, i128) = $part;
                cut(&given[0], $unit, |row, length| {
                    let count = i128::from(counts.value(row));
                    part(if count < 0 { (length + count).max(0) } else { count }, length)
                })
            },
        }
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    position!("position", |text, wanted| text.find(wanted)),
    position!("positionCaseInsensitive", |text, wanted| {
        text.to_ascii_lowercase().find(&wanted.to_ascii_lowercase())
    }),
    Function {
        name: "locate",
        arguments: 2..=2,
        field: |given| all_texts(given).then(|| of(DataType::UInt64)),
        answer: |given, _| {
            let (wanted, texts) = (Texts::of(&given[0])?, Texts::of(&given[1])?);
            let place = |row| texts.at(row).find(wanted.at(row)).map_or(0, |at| at as u64 + 1);
            Ok(Arc::new(UInt64Array::from_iter_values((0..given[0].len()).map(place))))
        },
    },
    substring!("substring", TextUnit::Bytes),
    substring!("substringUTF8", TextUnit::Letters),
    end!("left", TextUnit::Bytes, |count, _| (0, count)),
    end!("leftUTF8", TextUnit::Letters, |count, _| (0, count)),
    end!("right", TextUnit::Bytes, |count, length| (length - count, length)),
    end!("rightUTF8", TextUnit::Letters, |count, length| (length - count, length)),
    Function {
        name: "repeat",
        arguments: 2..=2,
        field: |given| (all_texts(&given[..1]) && whole(&given[1..])).then(|| of(DataType::Utf8)),
        answer: |given, _| repeated(given),
    },
    Function {
        name: "reverse",
        arguments: 1..=1,
        field: |given| (all_texts(given) && fixed_bytes(&given[0]).is_none()).then(|| of(DataType::Utf8)),
        answer: |given, _| {
            let texts = Texts::of(&given[0])?;
            let reversed = |row| match texts.at(row) {
                text if text.is_ascii() => Ok(text.chars().rev().collect()),
                text => Err(broken_letters("reverse", text).into()),
            };
            Ok(Arc::new(StringArray::from(
                (0..given[0].len()).map(reversed).collect::<Result<Vec<String>>>()?,
            )))
        },
    },
];

#[derive(Clone, Copy)]
enum TextUnit {
    Bytes,
    Letters,
}

fn whole(given: &[FieldRef]) -> bool {
    given.iter().all(|field| field.data_type().is_integer())
}

fn unsigned(given: &[FieldRef]) -> bool {
    given.iter().all(|field| field.data_type().is_unsigned_integer())
}

/// 64-bit integers; 2^63 and more count from the end, as in ClickHouse.
fn whole_numbers(array: &ArrayRef) -> Result<Int64Array> {
    let numbers = wrapped(array);
    if numbers.iter().flatten().any(|number| number == i64::MIN) {
        return Err(
            Error::argument_out_of_bound(format!("{} is too far for a place in a text", i64::MIN)).into()
        );
    }
    Ok(numbers)
}

/// The error for a cut within a letter.
pub(super) fn broken_letters(name: &str, text: &str) -> Error {
    Error::incorrect_data(format!(
        "Function {name} would take a letter of '{text}' apart, and texts are UTF-8"
    ))
}

/// The part between the positions that `part` returns for the row and the text's length.
fn cut(texts: &ArrayRef, unit: TextUnit, part: impl Fn(usize, i128) -> (i128, i128)) -> Result<ArrayRef> {
    let rows = texts.len();
    let texts = Texts::of(texts)?;
    let cut = |row: usize| {
        let text = texts.at(row);
        let length = match unit {
            TextUnit::Bytes => text.len(),
            TextUnit::Letters => text.chars().count(),
        };
        let (start, end) = part(row, length as i128);
        let [start, end] = [start, end].map(|place| place.clamp(0, length as i128) as usize);
        if start >= end {
            return Ok("");
        }
        match unit {
            TextUnit::Bytes => text.get(start..end).ok_or_else(|| broken_letters("substring", text).into()),
            TextUnit::Letters => {
                let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
                let from = places.nth(start).unwrap_or(0);
                let to = places.nth(end - start - 1).unwrap_or(text.len());
                Ok(&text[from..to])
            }
        }
    };
    Ok(Arc::new(StringArray::from((0..rows).map(cut).collect::<Result<Vec<&str>>>()?)))
}

/// Maximum repetitions of a text, and maximum bytes of a block of them: as in ClickHouse, and less than Arrow's limit.
const TIMES_MAX: i64 = 1_000_000;
const REPEATED_BYTES_MAX: usize = 1 << 30;

fn repeated(given: &[ArrayRef]) -> Result<ArrayRef> {
    let (texts, times) = (Texts::of(&given[0])?, whole_numbers(&given[1])?);
    let is_unsigned = given[1].data_type().is_unsigned_integer();
    let (mut all, mut bytes) = (Vec::with_capacity(given[0].len()), 0_usize);
    for row in 0..given[0].len() {
        let count = times.value(row);
        if count > TIMES_MAX || is_unsigned && count < 0 {
            let what = format!("Function repeat repeats a text at most {TIMES_MAX} times");
            return Err(Error::too_large_string_size(what).into());
        }
        let count = usize::try_from(count).unwrap_or(0);
        bytes = bytes.saturating_add(texts.at(row).len().saturating_mul(count));
        if bytes > REPEATED_BYTES_MAX {
            let what =
                format!("Function repeat would make more than {REPEATED_BYTES_MAX} bytes of a block of rows");
            return Err(Error::too_large_string_size(what).into());
        }
        all.push(texts.at(row).repeat(count));
    }
    Ok(Arc::new(StringArray::from(all)))
}
