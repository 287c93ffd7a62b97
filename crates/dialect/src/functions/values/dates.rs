//! Distances between moments, and moments as text.

use std::fmt::Write;

use chrono::{Datelike, NaiveDateTime, Timelike};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;

use super::local::{DAY, Moments, is_moment, ticks_per_second, zone_of};
use super::{Function, of};
use crate::error::Error;

pub(super) const FUNCTIONS: &[Function] = &[DIFFERENCE, FORMAT];

const DIFFERENCE: Function = Function {
    name: "dateDiff",
    arguments: 3..=3,
    field: |given| {
        let takes = given[0].data_type().is_string() && is_moment(&given[1]) && is_moment(&given[2]);
        // ClickHouse shows both in the zone of the first.
        let one_zone = zone_of(given[1].data_type()) == zone_of(given[2].data_type());
        (takes && one_zone).then(|| of(DataType::Int64))
    },
    answer: |given, _| difference(given),
};

const FORMAT: Function = Function {
    name: "formatDateTime",
    arguments: 2..=2,
    field: |given| (is_moment(&given[0]) && given[1].data_type().is_string()).then(|| of(DataType::Utf8)),
    answer: |given, _| {
        let moments = Moments::of(&given[0])?;
        let forms = cast(&given[1], &DataType::Utf8)?;
        let forms = forms.as_string::<i32>();
        let mut texts = StringBuilder::new();
        for row in 0..moments.len() {
            let form = if forms.is_null(row) { "" } else { forms.value(row) };
            texts.append_value(formatted(
                moments.shown(row),
                form,
                ticks_per_second(given[0].data_type()) == 1,
            )?);
        }
        Ok(std::sync::Arc::new(texts.finish()))
    },
};

/// The number of a unit's boundaries between two moments.
fn difference(given: &[ArrayRef]) -> Result<ArrayRef> {
    let units = cast(&given[0], &DataType::Utf8)?;
    let units = units.as_string::<i32>();
    let (from, to) = (Moments::of(&given[1])?, Moments::of(&given[2])?);
    let apart = |row: usize| {
        if units.is_null(row) {
            return Ok(0);
        }
        let number = |moments: &Moments| boundaries(units.value(row), moments, row);
        Ok(number(&to)? - number(&from)?)
    };
    let numbers = (0..from.len()).map(apart).collect::<Result<Vec<i64>>>()?;
    Ok(std::sync::Arc::new(Int64Array::from(numbers)))
}

/// The number of units begun before a moment, from a fixed origin on.
fn boundaries(unit: &str, moments: &Moments, row: usize) -> Result<i64> {
    let shown = || moments.shown(row);
    let days = || moments.local(row).div_euclid(DAY);
    let months = || i64::from(shown().year()) * 12 + i64::from(shown().month0());
    let unit = unit.to_ascii_lowercase();
    // A Date is converted to DateTime there, which ends in 2106.
    let is_short = ["s", "n", "h"].iter().any(|letter| unit.starts_with(letter)) || unit.starts_with("mi");
    if is_short && moments.is_date && moments.seconds[row] > u32::MAX.into() {
        return Err(
            Error::argument_out_of_bound(format!("A Date after 2106 has no {unit} in dateDiff")).into()
        );
    }
    if unit.starts_with('w') && moments.seconds[row] < 0 {
        return Err(Error::argument_out_of_bound("Weeks before 1970 are not counted in dateDiff").into());
    }
    Ok(match unit.as_str() {
        "second" | "seconds" | "ss" | "s" => moments.seconds[row],
        "minute" | "minutes" | "mi" | "n" => moments.seconds[row].div_euclid(60),
        // A clock change makes no hour; whole hours are counted with the offset of 1970.
        "hour" | "hours" | "hh" | "h" => (moments.seconds[row] + moments.offset(0)).div_euclid(60 * 60),
        "day" | "days" | "dd" | "d" => days(),
        // 1970 began on a Thursday.
        "week" | "weeks" | "wk" | "ww" => (days() + 3).div_euclid(7),
        "month" | "months" | "mm" | "m" => months(),
        "quarter" | "quarters" | "qq" | "q" => months().div_euclid(3),
        "year" | "years" | "yyyy" | "yy" => i64::from(shown().year()),
        other => {
            return Err(Error::bad_arguments(format!(
                "Function dateDiff does not support '{other}' unit: it takes second, minute, hour, day, week, month, quarter and year"
            ))
            .into());
        }
    })
}

/// Formats by MySQL's letters, as ClickHouse does.
fn formatted(shown: NaiveDateTime, form: &str, is_whole: bool) -> Result<String> {
    let mut text = String::new();
    let mut letters = form.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let Some(letter) = letters.next() else {
            return Err(Error::bad_arguments(
                "'%' must not be the last character in the format of formatDateTime, use '%%' instead",
            )
            .into());
        };
        let theirs = match letter {
            'a' => "%a",
            'b' => "%b",
            'c' | 'm' => "%m",
            'C' => "%C",
            'd' => "%d",
            'D' => "%m/%d/%y",
            'e' => "%-d",
            'F' => "%Y-%m-%d",
            'G' => "%G",
            'g' => "%g",
            'h' | 'I' | 'l' => "%I",
            'H' | 'k' => "%H",
            'i' => "%M",
            'j' => "%j",
            'M' => "%B",
            'n' => "\n",
            'p' => "%p",
            'r' => "%I:%M %p",
            'R' => "%H:%M",
            's' | 'S' => "%S",
            't' => "\t",
            'T' => "%H:%M:%S",
            'u' => "%u",
            'V' => "%V",
            'w' => "%w",
            'W' => "%A",
            'y' => "%y",
            'Y' => "%Y",
            '%' => "%%",
            'f' if is_whole => "000000",
            'Q' => {
                let _ = write!(text, "{}", shown.month0() / 3 + 1);
                continue;
            }
            other => {
                let what = format!("Unknown format specifier '%{other}' of formatDateTime");
                return Err(Error::not_implemented(what).into());
            }
        };
        let _ = write!(text, "{}", shown.format(theirs));
    }
    debug_assert!(shown.nanosecond() == 0, "moments are whole seconds");
    Ok(text)
}
