//! libCacheSim's `oracleGeneral`: little-endian u32 time, u64 id, u32 size, i64 position of the next access.
//!
//! The last field is not used: the replay may cover a part of the trace.

use crate::trace::{Operation, Request};

/// Bytes of a record.
pub(in crate::trace) const RECORD: usize = 24;

/// Turns a record into a request.
pub(in crate::trace) fn parse(record: &[u8; RECORD]) -> Result<Request, String> {
    let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    let next = u64_at(16).cast_signed();
    if next < -1 {
        return Err(format!("the next access is at {next}: not a record of oracleGeneral"));
    }
    Ok(Request {
        time: u64::from(u32_at(0)),
        key: u64_at(4),
        key_bytes: 0,
        value_bytes: u32_at(12),
        operation: Operation::Get,
        ttl: 0,
    })
}
