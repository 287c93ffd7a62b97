//! Formats one value, in each family of formats.

use std::fmt::Display;
use std::io::Write as _;
use std::net::Ipv4Addr;

use chrono::{DateTime, Datelike, Timelike};
use datafusion::arrow::array::timezone::Tz;
use granary_dict::{ipv6_text, offset_at};

use super::column::{Cells, Column};
use super::{composite, escape};

/// How strings are quoted and NULL is spelled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// TabSeparated: backslash escapes, `\N`.
    Tab,
    /// TabSeparatedRaw: strings as they are, `\N`.
    Raw,
    /// CSV: strings and dates in double quotes, `\N`.
    Csv,
    /// Inside a tuple or an array in a text format: single quotes, NULL.
    Nested,
    /// JSON on one line.
    Json,
    /// JSON over several lines, this many tabs deep.
    JsonIndented(usize),
    /// For people: nothing quoted, `ᴺᵁᴸᴸ`.
    Pretty,
}

impl Style {
    fn null(self) -> &'static str {
        match self {
            Style::Tab | Style::Raw | Style::Csv => "\\N",
            Style::Nested => "NULL",
            Style::Json | Style::JsonIndented(_) => "null",
            Style::Pretty => "ᴺᵁᴸᴸ",
        }
    }

    /// Whether it is a JSON style.
    pub fn is_json(self) -> bool {
        matches!(self, Style::Json | Style::JsonIndented(_))
    }
}

/// Writes one cell.
pub fn write_cell(column: &Column, row: usize, style: Style, out: &mut Vec<u8>) {
    if column.is_null(row) {
        out.extend_from_slice(style.null().as_bytes());
        return;
    }
    match &column.cells {
        Cells::Null => out.extend_from_slice(style.null().as_bytes()),
        Cells::UInt8(a) => integer(a.value(row), out),
        Cells::UInt16(a) => integer(a.value(row), out),
        Cells::UInt32(a) => integer(a.value(row), out),
        Cells::UInt64(a) => integer(a.value(row), out),
        Cells::Int8(a) => integer(a.value(row), out),
        Cells::Int16(a) => integer(a.value(row), out),
        Cells::Int32(a) => integer(a.value(row), out),
        Cells::Int64(a) => integer(a.value(row), out),
        Cells::Float32(a) => float(a.value(row), style, out),
        Cells::Float64(a) => float(a.value(row), style, out),
        Cells::Decimal(a) => decimal(a.value(row), a.scale(), out),
        Cells::Wide { values, .. } => decimal(values.value(row), values.scale(), out),
        Cells::Truth(a) => out.push(if a.value(row) { b'1' } else { b'0' }),
        Cells::Bool(a) => out.extend_from_slice(if a.value(row) { b"true" } else { b"false" }),
        Cells::Text(a) | Cells::Fixed { texts: a, .. } => string(a.value(row).as_bytes(), style, out),
        Cells::Bytes(a) => string(a.value(row), style, out),
        Cells::Uuid(a) => quoted(style, out, |out| uuid(a.value(row), out)),
        Cells::Ipv4(a) => quoted(style, out, |out| ip(Ipv4Addr::from_bits(a.value(row)), out)),
        Cells::Ipv6(a) => quoted(style, out, |out| ip(ipv6_text(a.value(row)), out)),
        Cells::Date(a) | Cells::Date32(a) => quoted(style, out, |out| date(a.value(row), out)),
        Cells::DateTime { seconds, zone } => {
            quoted(style, out, |out| date_time(seconds.value(row), zone.as_ref(), out))
        }
        Cells::DateTime64 { ticks, places, digits, zone } => {
            quoted(style, out, |out| date_time_64(ticks.value(row), (*places, *digits), zone.as_ref(), out));
        }
        Cells::Array { offsets, items } => {
            composite::array(items, offsets[row]..offsets[row + 1], style, out)
        }
        Cells::Map { offsets, keys, values } => {
            composite::map(keys, values, offsets[row]..offsets[row + 1], style, out);
        }
        Cells::Tuple { names, items } => composite::tuple(names.as_deref(), items, row, style, out),
    }
}

fn integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The shortest digits that read back the same, laid out as in JavaScript, which is ClickHouse's rule too.
fn float<F: ryu_js::Float + Into<f64> + Copy>(value: F, style: Style, out: &mut Vec<u8>) {
    let wide: f64 = value.into();
    if style.is_json() && !wide.is_finite() {
        out.extend_from_slice(b"null");
    } else if wide.is_nan() {
        out.extend_from_slice(b"nan");
    } else if wide.is_infinite() {
        out.extend_from_slice(if wide > 0.0 { b"inf" } else { b"-inf" });
    } else if wide == 0.0 {
        out.extend_from_slice(if wide.is_sign_negative() { b"-0" } else { b"0" });
    } else {
        // ClickHouse writes 1e21 where JavaScript writes 1e+21.
        let mut buffer = ryu_js::Buffer::new();
        out.extend(buffer.format_finite(value).bytes().filter(|&byte| byte != b'+'));
    }
}

/// Trailing zeros of the fraction are omitted, as in ClickHouse. All digits are shown: a sum may have one more than its
/// type, which Arrow would cut off.
fn decimal(number: impl Display, scale: i8, out: &mut Vec<u8>) {
    let text = number.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    out.extend_from_slice(sign.as_bytes());
    let Ok(scale @ 1..) = usize::try_from(scale) else {
        out.extend_from_slice(digits.as_bytes());
        if digits != "0" {
            out.extend(std::iter::repeat_n(b'0', scale.unsigned_abs().into()));
        }
        return;
    };
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    out.extend_from_slice(whole.as_bytes());
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction.as_bytes());
    }
}

fn string(bytes: &[u8], style: Style, out: &mut Vec<u8>) {
    match style {
        Style::Tab => escape::tab(bytes, out),
        Style::Raw | Style::Pretty => out.extend_from_slice(bytes),
        Style::Csv => escape::csv(bytes, out),
        Style::Nested => escape::single_quoted(bytes, out),
        Style::Json | Style::JsonIndented(_) => escape::json(bytes, out),
    }
}

/// Dates, UUIDs and addresses: their text needs no escapes, only the format's quotes.
fn quoted(style: Style, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let quote = match style {
        Style::Tab | Style::Raw | Style::Pretty => None,
        Style::Csv | Style::Json | Style::JsonIndented(_) => Some(b'"'),
        Style::Nested => Some(b'\''),
    };
    out.extend(quote);
    write(out);
    out.extend(quote);
}

fn uuid(bytes: &[u8], out: &mut Vec<u8>) {
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        let _ = write!(out, "{byte:02x}");
    }
}

fn date(days: i32, out: &mut Vec<u8>) {
    if let Some(moment) = DateTime::from_timestamp(i64::from(days) * 86_400, 0) {
        let _ = write!(out, "{:04}-{:02}-{:02}", moment.year(), moment.month(), moment.day());
    }
}

fn date_time(seconds: i64, zone: Option<&Tz>, out: &mut Vec<u8>) {
    let local = seconds + zone.map_or(0, |zone| offset_at(zone, seconds));
    let Some(t) = DateTime::from_timestamp(local, 0) else { return };
    let (year, month, day) = (t.year(), t.month(), t.day());
    let _ = write!(out, "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", t.hour(), t.minute(), t.second());
}

fn date_time_64(ticks: i64, (places, digits): (u32, u32), zone: Option<&Tz>, out: &mut Vec<u8>) {
    let second = 10_i64.pow(places);
    date_time(ticks.div_euclid(second), zone, out);
    if digits > 0 {
        let shown = ticks.rem_euclid(second) / 10_i64.pow(places - digits);
        let _ = write!(out, ".{shown:0width$}", width = digits as usize);
    }
}

fn ip(text: impl std::fmt::Display, out: &mut Vec<u8>) {
    let _ = write!(out, "{text}");
}
