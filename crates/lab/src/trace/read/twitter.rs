//! Twitter's traces: `time,key,key size,value size,client,operation,TTL`, no heading.
//!
//! Operations that change a value store it whole here; `add` stores it if the key is absent.

use crate::trace::lines::{Line, field, key, number, seconds};
use crate::trace::{Operation, Request};

/// Fields of a line.
const FIELDS: usize = 7;

/// Turns a line into a request.
pub(in crate::trace) fn parse(line: &str) -> Result<Line, String> {
    // Keys are anonymised and may hold commas: the other fields are counted from the end.
    let mut fields = line.rsplitn(FIELDS - 1, ',');
    let ttl = number(fields.next(), "TTL")?;
    let operation = operation(field(fields.next(), "operation")?)?;
    field(fields.next(), "client")?;
    let value_bytes = number(fields.next(), "value size")?;
    let key_bytes = number(fields.next(), "key size")?;
    let (time, name) = fields.next().and_then(|rest| rest.split_once(',')).ok_or("key is missing")?;
    let time = seconds(Some(time), "time")?;
    Ok(Line::Requests(Request { time, key: key(name), key_bytes, value_bytes, operation, ttl }, 1))
}

/// Whether a line looks like one of this format.
pub(in crate::trace) fn fits(line: &str) -> bool {
    matches!(parse(line), Ok(Line::Requests(..)))
}

/// An operation by its name in the traces and in the published statistics.
pub(in crate::trace) fn operation(name: &str) -> Result<Operation, String> {
    Ok(match name {
        "get" | "gets" => Operation::Get,
        "set" | "replace" | "cas" | "append" | "prepend" | "incr" | "decr" => Operation::Set,
        "add" => Operation::Add,
        "delete" => Operation::Delete,
        other => return Err(format!("operation {other:?} is not known")),
    })
}
