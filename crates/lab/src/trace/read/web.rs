//! Requests for web objects: `time id size`, separated by spaces.

use crate::trace::lines::{Line, field, key, number, seconds};
use crate::trace::{Operation, Request};

/// Turns a line into a request.
pub(in crate::trace) fn parse(line: &str) -> Result<Line, String> {
    let mut fields = line.split_ascii_whitespace();
    let time = seconds(fields.next(), "time")?;
    let key = key(field(fields.next(), "id")?);
    let value_bytes = number(fields.next(), "size")?;
    if let Some(more) = fields.next() {
        return Err(format!("{more:?} after time, id and size"));
    }
    Ok(Line::Requests(Request { time, key, key_bytes: 0, value_bytes, operation: Operation::Get, ttl: 0 }, 1))
}
