//! Block I/O of virtual machines as CSV: `version,time,op,size,lbn`, op 28 (read) or 2a (write) as in SCSI.
//!
//! An object is what one request transfers: the blocks from its first on, `size` bytes.

use crate::trace::lines::{Line, field, number, seconds};
use crate::trace::{Operation, Request};

/// The first line.
pub(in crate::trace) const HEADING: &str = "version,time,op,size,lbn";

/// Turns a line into a request.
pub(in crate::trace) fn parse(line: &str) -> Result<Line, String> {
    if line == HEADING {
        return Ok(Line::Nothing);
    }
    let mut fields = line.split(',');
    field(fields.next(), "version")?;
    let time = seconds(fields.next(), "time")?;
    let operation = match field(fields.next(), "op")? {
        "28" | "88" => Operation::Get,
        "2a" | "2A" | "8a" | "8A" => Operation::Set,
        other => return Err(format!("op is {other:?}, neither 28 (read) nor 2a (write)")),
    };
    let value_bytes = number(fields.next(), "size")?;
    let key = number(fields.next(), "lbn")?;
    Ok(Line::Requests(Request { time, key, key_bytes: 0, value_bytes, operation, ttl: 0 }, 1))
}
