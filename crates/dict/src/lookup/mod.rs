//! From missing keys to rows: one request for each missing key, shared by all lookups that miss it.

mod backoff;
mod batch;
mod connections;
mod counters;
mod flight;
mod found;
mod load;
mod pace;
mod panics;
mod parts;
mod pool;
mod refused;
mod source_call;
mod totals;

pub(crate) use backoff::Backoff;
pub(crate) use batch::{Batch, Freshness};
pub(crate) use connections::{Connections, Remake};
pub(crate) use flight::{Claim, Flight, FlightTable, Loaded, lock, unique};
pub(crate) use load::{SourceAccess, ends_after};
pub(crate) use pace::Pace;
pub(crate) use panics::caught;
pub(crate) use pool::{JobInput, Pool, PoolFigures, Refused};
pub(crate) use refused::RefusedKeys;
pub(crate) use source_call::{begin, call_source, receive};
pub use totals::{Sums, Totals};
