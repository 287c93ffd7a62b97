//! Meta's key-value traces: CSV whose heading names the columns, in any order.
//!
//! A line stands for `op_count` requests within a second. A read that missed when it was recorded has size 0.

use crate::trace::lines::{Line, field, key, number, seconds};
use crate::trace::{Operation, Request};

/// Maximum number of requests that a line may stand for.
const COUNT_MAX: u32 = 1 << 20;

/// Columns that are used; the last may be missing.
const COLUMNS: [&str; 7] = ["op_time", "key", "key_size", "op", "op_count", "size", "ttl"];

/// Whether a line is a heading of this format.
pub(in crate::trace) fn is_heading(line: &str) -> bool {
    let names: Vec<&str> = line.split(',').map(str::trim).collect();
    COLUMNS[..COLUMNS.len() - 1].iter().all(|column| names.contains(column))
}

/// Turns lines into requests; the first one is the heading.
pub(in crate::trace) fn parser() -> impl FnMut(&str) -> Result<Line, String> + Send {
    let mut places: Option<[Option<usize>; COLUMNS.len()]> = None;
    move |line| match &places {
        None if !is_heading(line) => Err(format!("the heading lacks one of {}", COLUMNS[..6].join(", "))),
        None => {
            let names: Vec<&str> = line.split(',').map(str::trim).collect();
            places = Some(COLUMNS.map(|column| names.iter().position(|name| *name == column)));
            Ok(Line::Nothing)
        }
        Some(places) => parse(line, places),
    }
}

fn parse(line: &str, places: &[Option<usize>; COLUMNS.len()]) -> Result<Line, String> {
    let fields: Vec<&str> = line.split(',').collect();
    let column = |at: usize| places[at].and_then(|place| fields.get(place).copied());
    let operation = match field(column(3), "op")? {
        "GET" | "GET_LEASE" => Operation::Get,
        "SET" | "SET_LEASE" => Operation::Set,
        "DELETE" => Operation::Delete,
        other => return Err(format!("op is {other:?}, which is not known")),
    };
    let count: u32 = number(column(4), "op_count")?;
    if count > COUNT_MAX {
        return Err(format!("op_count is {count}; {COUNT_MAX} is the most"));
    }
    let request = Request {
        time: seconds(column(0), "op_time")?,
        key: key(field(column(1), "key")?),
        key_bytes: number(column(2), "key_size")?,
        value_bytes: number(column(5), "size")?,
        operation,
        ttl: if places[6].is_some() { number(column(6), "ttl")? } else { 0 },
    };
    Ok(if count == 0 { Line::Nothing } else { Line::Requests(request, count) })
}
