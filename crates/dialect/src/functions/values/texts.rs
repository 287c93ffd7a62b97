//! Texts: parts, letters, encodings.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, UInt8Array, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;

use super::lists::{list_field, list_of_texts};
use super::substrings::broken_letters;
use super::{Function, of};
use crate::error::Error;
use crate::functions::numbers::{array_bits, wrapped};
use crate::limits::BATCH_BYTES_MAX;
use crate::types::fixed_bytes;

/// A function that maps each text.
macro_rules! mapped {
    ($name:literal, $of:expr) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| (all_texts(given) && fixed_bytes(&given[0]).is_none()).then(|| of(DataType::Utf8)),
            answer: |given, _| {
                let texts = Texts::of(&given[0])?;
                let answers = (0..given[0].len()).map(|row| $of(texts.at(row)));
                Ok(Arc::new(StringArray::from_iter_values(answers)))
            },
        }
    };
}

/// Whether a text contains another one.
macro_rules! has {
    ($name:literal, $has:expr) => {
        Function {
            name: $name,
            arguments: 2..=2,
            field: |given| all_texts(given).then(|| of(DataType::UInt8)),
            answer: |given, _| {
                let (texts, wanted) = (Texts::of(&given[0])?, Texts::of(&given[1])?);
                let has: fn(&str, &str) -> bool = $has;
                let answers = (0..given[0].len()).map(|row| u8::from(has(texts.at(row), wanted.at(row))));
                Ok(Arc::new(UInt8Array::from_iter_values(answers)))
            },
        }
    };
}

/// A text with the letters of another one, or blanks, removed at its ends.
macro_rules! trimmed {
    ($name:literal, $trim:expr) => {
        Function {
            name: $name,
            arguments: 1..=2,
            field: |given| all_texts(given).then(|| of(DataType::Utf8)),
            answer: |given, _| {
                let texts = Texts::of(&given[0])?;
                let letters = given.get(1).map(Texts::of).transpose()?;
                let trim: for<'a> fn(&'a str, &dyn Fn(char) -> bool) -> &'a str = $trim;
                let answers = (0..given[0].len()).map(|row| {
                    let letters = letters.as_ref().map_or(" ", |letters| letters.at(row));
                    trim(texts.at(row), &|letter| letters.contains(letter)).to_owned()
                });
                Ok(Arc::new(StringArray::from_iter_values(answers)))
            },
        }
    };
}

/// A text with parts replaced.
macro_rules! replaced {
    ($name:literal, $replace:expr) => {
        Function {
            name: $name,
            arguments: 3..=3,
            field: |given| all_texts(given).then(|| of(DataType::Utf8)),
            answer: |given, _| {
                let [texts, from, to] = [0, 1, 2].map(|at| Texts::of(&given[at]));
                let (texts, from, to) = (texts?, from?, to?);
                let replace: fn(&str, &str, &str) -> String = $replace;
                let mut bytes = 0;
                let replaced = |row| {
                    let (text, from, to) = (texts.at(row), from.at(row), to.at(row));
                    let found = if from.is_empty() { 0 } else { text.matches(from).count() };
                    add_bytes(&mut bytes, text.len() + found * to.len().saturating_sub(from.len()))?;
                    Ok(if found == 0 { text.to_owned() } else { replace(text, from, to) })
                };
                let replaced = (0..given[0].len()).map(replaced).collect::<Result<Vec<String>>>()?;
                Ok(Arc::new(StringArray::from(replaced)))
            },
        }
    };
}

/// A text padded with another one to a length in bytes, or cut to it.
macro_rules! padded {
    ($name:literal, $joined:expr) => {
        Function {
            name: $name,
            arguments: 2..=3,
            field: |given| {
                let numbers = given[1].data_type().is_integer();
                (all_texts(&given[..1]) && numbers && all_texts(&given[2..])).then(|| of(DataType::Utf8))
            },
            answer: |given, _| pad(given, $joined),
        }
    };
}

/// The parts of a text between separators.
macro_rules! split {
    ($name:literal, $check:expr) => {
        Function {
            name: $name,
            arguments: 2..=2,
            field: |given| all_texts(given).then(|| list_field(Field::new("item", DataType::Utf8, false))),
            answer: |given, field| {
                let (between, texts) = (Texts::of(&given[0])?, Texts::of(&given[1])?);
                list_of_texts(field, given[0].len(), |row, parts| {
                    let between = between.at(row);
                    let check: fn(&str) -> Result<()> = $check;
                    check(between)?;
                    if between.is_empty() && !texts.at(row).is_ascii() {
                        return Err(broken_letters("splitByString", texts.at(row)).into());
                    }
                    match between {
                        "" => parts.extend(texts.at(row).chars().map(String::from)),
                        _ => parts.extend(texts.at(row).split(between).map(str::to_owned)),
                    }
                    Ok(())
                })
            },
        }
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    mapped!("lower", |text: &str| text.to_ascii_lowercase()),
    mapped!("upper", |text: &str| text.to_ascii_uppercase()),
    mapped!("lowerUTF8", |text: &str| text.to_lowercase()),
    mapped!("upperUTF8", |text: &str| text.to_uppercase()),
    Function {
        name: "lengthUTF8",
        arguments: 1..=1,
        field: |given| all_texts(given).then(|| of(DataType::UInt64)),
        answer: |given, _| {
            let texts = Texts::of(&given[0])?;
            let letters = (0..given[0].len()).map(|row| texts.at(row).chars().count() as u64);
            Ok(Arc::new(UInt64Array::from_iter_values(letters)))
        },
    },
    has!("startsWith", |text, wanted| text.starts_with(wanted)),
    has!("endsWith", |text, wanted| text.ends_with(wanted)),
    trimmed!("trimLeft", |text, is_one| text.trim_start_matches(is_one)),
    trimmed!("trimRight", |text, is_one| text.trim_end_matches(is_one)),
    trimmed!("trimBoth", |text, is_one| text.trim_matches(is_one)),
    replaced!("replaceOne", |text, from, to| text.replacen(from, to, 1)),
    replaced!("replaceAll", |text, from, to| text.replace(from, to)),
    mapped!("base64Encode", |text: &str| STANDARD.encode(text)),
    Function {
        name: "base64Decode",
        arguments: 1..=1,
        field: |given| all_texts(given).then(|| of(DataType::Utf8)),
        answer: |given, _| decoded(&given[0], "base64Decode", |text| STANDARD.decode(text).ok()),
    },
    Function {
        name: "unhex",
        arguments: 1..=1,
        field: |given| all_texts(given).then(|| of(DataType::Utf8)),
        answer: |given, _| {
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
            // If their number is odd, the first digit stands alone.
            decoded(&given[0], "unhex", |text| {
                let digits = if text.len() % 2 == 0 { text.to_owned() } else { format!("0{text}") };
                digits.as_bytes().chunks(2).map(byte).collect()
            })
        },
    },
    Function {
        name: "hex",
        arguments: 1..=1,
        field: |given| (all_texts(given) || given[0].data_type().is_integer()).then(|| of(DataType::Utf8)),
        answer: |given, _| hex(&given[0]),
    },
    padded!("leftPad", |text: &str, padding: &str| format!("{padding}{text}")),
    padded!("rightPad", |text: &str, padding: &str| format!("{text}{padding}")),
    split!("splitByChar", |between| match between.len() {
        1 => Ok(()),
        _ => Err(Error::bad_arguments("The separator of splitByChar must be one byte").into()),
    }),
    split!("splitByString", |_| Ok(())),
    Function {
        name: "countSubstrings",
        arguments: 2..=2,
        field: |given| all_texts(given).then(|| of(DataType::UInt64)),
        answer: |given, _| {
            let (texts, wanted) = (Texts::of(&given[0])?, Texts::of(&given[1])?);
            let count = |row| match wanted.at(row) {
                "" => 0,
                wanted => texts.at(row).matches(wanted).count() as u64,
            };
            Ok(Arc::new(UInt64Array::from_iter_values((0..given[0].len()).map(count))))
        },
    },
    Function {
        name: "isValidUTF8",
        arguments: 1..=1,
        field: |given| all_texts(given).then(|| of(DataType::UInt8)),
        answer: |given, _| Ok(Arc::new(UInt8Array::from_iter_values(std::iter::repeat_n(1, given[0].len())))),
    },
];

pub(super) fn all_texts(given: &[FieldRef]) -> bool {
    given.iter().all(|field| field.data_type().is_string())
}

/// A column of texts; NULL is read as an empty one.
pub(super) struct Texts(StringArray);

impl Texts {
    pub fn of(array: &ArrayRef) -> Result<Texts> {
        Ok(Texts(cast(array, &DataType::Utf8)?.as_string().clone()))
    }

    pub fn at(&self, row: usize) -> &str {
        if self.0.is_null(row) { "" } else { self.0.value(row) }
    }
}

/// Decodes texts; the results must be UTF-8.
fn decoded(array: &ArrayRef, name: &str, decode: impl Fn(&str) -> Option<Vec<u8>>) -> Result<ArrayRef> {
    let texts = Texts::of(array)?;
    let decode = |row| {
        let text = texts.at(row);
        decode(text).and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| {
            Error::incorrect_data(format!("Function {name} cannot make a text in UTF-8 of '{text}'")).into()
        })
    };
    let decoded = (0..array.len()).map(decode).collect::<Result<Vec<String>>>()?;
    Ok(Arc::new(StringArray::from(decoded)))
}

/// The bytes of a text, two digits each; for a number, without leading zero bytes.
fn hex(array: &ArrayRef) -> Result<ArrayRef> {
    let Some(bits) = array_bits(array) else {
        let texts = Texts::of(array)?;
        let digits = |row| texts.at(row).bytes().map(|byte| format!("{byte:02X}")).collect::<String>();
        return Ok(Arc::new(StringArray::from_iter_values((0..array.len()).map(digits))));
    };
    let width = 8 * array.data_type().primitive_width().unwrap_or(8);
    let digits = |bits: &u64| {
        let number = bits & (u64::MAX >> (64 - width));
        let digits = format!("{number:X}");
        if digits.len() % 2 == 0 { digits } else { format!("0{digits}") }
    };
    Ok(Arc::new(StringArray::from_iter_values(bits.iter().map(digits))))
}

fn whole_letters(text: &str, length: usize) -> Result<&str> {
    text.get(..length).ok_or_else(|| broken_letters("leftPad or rightPad", text).into())
}

/// Adds to the bytes of the texts that a function makes for a batch.
///
/// # Errors
/// TOO_LARGE_STRING_SIZE if they exceed [`BATCH_BYTES_MAX`].
pub(super) fn add_bytes(bytes: &mut usize, more: usize) -> Result<()> {
    *bytes = bytes.saturating_add(more);
    match *bytes <= BATCH_BYTES_MAX {
        true => Ok(()),
        false => {
            let what = format!("The texts of one block would have more than {BATCH_BYTES_MAX} bytes");
            Err(Error::too_large_string_size(what).into())
        }
    }
}

/// Maximum bytes of a padded text, as in ClickHouse.
const PADDED_BYTES_MAX: i64 = 1 << 24;

fn pad(given: &[ArrayRef], join: impl Fn(&str, &str) -> String) -> Result<ArrayRef> {
    let (texts, padding) = (Texts::of(&given[0])?, given.get(2).map(Texts::of).transpose()?);
    let lengths = wrapped(&given[1]);
    let mut bytes = 0;
    let padded = |row: usize| {
        let (text, length) = (texts.at(row), lengths.value(row));
        if length < 0 && lengths.is_valid(row) {
            let what = format!("New padded length ({length}) is negative");
            return Err(Error::index_out_of_bound(what).into());
        }
        if length > PADDED_BYTES_MAX {
            let what = format!("A text can be padded to {PADDED_BYTES_MAX} bytes, not to {length}");
            return Err(Error::too_large_string_size(what).into());
        }
        let length = length as usize;
        add_bytes(&mut bytes, length)?;
        let padding = padding.as_ref().map_or(" ", |padding| padding.at(row));
        let padding = if padding.is_empty() { " " } else { padding };
        Ok(match length.checked_sub(text.len()) {
            None => whole_letters(text, length)?.to_owned(),
            Some(missing) => {
                let times = padding.repeat(missing.div_ceil(padding.len()));
                join(text, whole_letters(&times, missing)?)
            }
        })
    };
    let padded = (0..given[0].len()).map(padded).collect::<Result<Vec<String>>>()?;
    Ok(Arc::new(StringArray::from(padded)))
}
