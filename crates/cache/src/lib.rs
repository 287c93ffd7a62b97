//! A cache bigger than RAM: key -> value on flash, under 5 bytes of RAM an entry.
//!
//! [`Cache`] is shared by threads; each reading thread has an [`Io`] of its own. A lookup is a batch
//! in three passes: plan (probe RAM tier and index), fetch (read what is on flash, each block once,
//! many at a time), deliver (check, find by full key, hand to the sink). It knows no protocol, no
//! SQL and no async runtime.

pub mod admission;
mod batch;
mod cache;
mod codec;
mod drive;
mod entry;
mod flash;
#[doc(hidden)]
pub mod framing;
#[doc(hidden)]
pub mod fuzzing;
mod headroom;
mod hybrid;
mod index;
mod key;
pub mod limits;
mod lookup;
mod making;
mod memory;
mod options;
mod partition;
mod places;
mod policy;
mod prefetch;
mod reclaim;
mod record;
mod recover;
mod scan;
mod shard;
mod shared;
mod single;
#[cfg(all(test, not(any(feature = "shuttle", miri))))]
#[path = "../../log/tests/common/skip.rs"]
mod skip;
mod stats;
mod tombstones;
mod write;

pub use cache::Cache;
pub use codec::Compression;
#[doc(hidden)]
pub use codec::{OwnedValue, ValueCodec};
pub use drive::{Helpers, Io, Pending, Team};
pub use entry::{Entry, Refusal};
pub use granary_log::{Engine, Found, OpenError};
pub use key::{Key, KeyHash, KeyHasher};
pub use lookup::Outcome;
pub use options::{Builder, FlashOptions, Options, PowerLoss};
pub use policy::Reinsertion;
pub use scan::Scan;
pub use single::now;
pub use stats::Stats;

/// The README's example runs as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
