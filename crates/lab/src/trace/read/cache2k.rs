//! cache2k's traces: keys as big-endian u32, nothing else. Times and sizes are assigned.

use crate::trace::sizes::{ASSIGNED_KEY_BYTES, etc_value_bytes};
use crate::trace::{Operation, Request};

/// Requests a second: the trace has no times, and some policies need them.
const RATE: u64 = 1000;

/// Turns records into requests.
pub(in crate::trace) fn parser() -> impl FnMut(&[u8; 4]) -> Result<Request, String> + Send {
    let mut position = 0;
    move |record| {
        let key = u64::from(u32::from_be_bytes(*record));
        let time = position / RATE;
        position += 1;
        Ok(Request {
            time,
            key,
            key_bytes: ASSIGNED_KEY_BYTES,
            value_bytes: etc_value_bytes(key),
            operation: Operation::Get,
            ttl: 0,
        })
    }
}
