//! A cache bigger than RAM: key -> value on flash, 4 to 5 bytes of RAM an entry once it is full (docs/index.md).
//!
//! [`Cache`] is shared by threads; each reading thread has an [`Io`] of its own. A lookup is a batch
//! in three passes: plan (probe RAM tier and index), fetch (read what is on flash, each block once,
//! many at a time), deliver (check, find by full key, hand to the sink). It knows no protocol, no
//! SQL and no async runtime.
//!
//! | to have | use |
//! |---|---|
//! | one key at a time, as in a map | [`Cache::get`], [`insert`](Cache::insert), [`remove`](Cache::remove), [`get_or_insert_with`](Cache::get_or_insert_with) |
//! | many keys at once, the fast way | [`Cache::get_many`], [`put_many`](Cache::put_many), [`delete_many`](Cache::delete_many) |
//! | keys and values of one's own types | [`TypedCache`]; with the feature `serde` by [`Postcard`](https://docs.rs/postcard) |
//! | lookups by asynchronous tasks | `AsyncCache`, with the feature `async`; of any runtime |
//!
//! Fallible calls return [`Error`], or one of its parts: [`OpenError`], [`Refusal`], [`CodecError`]. Lookups do not
//! fail: what cannot be read is a miss.
//!
//! Public items that this documentation hides are for Granary's own crates and tests. They are no part of the API and
//! may change in any version.
//!
//! Where the process has a limit of the length of files (`RLIMIT_FSIZE`), a write beyond it comes with SIGXFSZ, which
//! ends the process unless the program ignores or handles it: then the write fails, as on a full disk.
//!
//! ```
//! use granary_cache::Cache;
//! use std::time::Duration;
//!
//! let folder = std::env::temp_dir().join("granary-first-steps");
//! std::fs::create_dir_all(&folder)?;
//! let cache = Cache::builder().memory(16 << 20).flash(folder.join("cache"), 64 << 20).open()?;
//! cache.insert_with_ttl(b"session", b"42", Duration::from_secs(60))?;
//! assert_eq!(cache.get(b"session").as_deref(), Some(&b"42"[..]));
//! cache.close()?;
//! std::fs::remove_dir_all(folder)?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub mod admission;
mod applications;
#[cfg(feature = "async")]
mod asynchronous;
mod batch;
mod blocks;
mod by_partition;
mod cache;
mod codec;
mod dram_first;
mod drive;
mod entry;
mod error;
mod flash;
#[doc(hidden)]
pub mod framing;
#[doc(hidden)]
pub mod fuzzing;
mod ghosts;
mod headroom;
mod index;
mod key;
pub mod limits;
mod lookup;
mod memory;
mod opening;
mod options;
mod partition;
mod partition_state;
mod policy;
mod reclaim;
mod record;
mod recover;
mod scan;
mod shard;
mod shard_index;
mod single;
mod single_flight;
#[cfg(all(test, not(any(feature = "shuttle", miri))))]
#[path = "../../log/tests/common/skip.rs"]
mod skip;
mod stats;
#[doc(hidden)]
pub mod testing;
mod tombstones;
mod typed;
mod write;

pub use applications::Applications;
#[cfg(feature = "async")]
pub use asynchronous::AsyncCache;
pub use cache::Cache;
pub use codec::Compression;
#[doc(hidden)]
pub use codec::{OwnedValue, ValueCodec};
#[doc(hidden)]
pub use drive::MemoryLookups;
pub use drive::{Helpers, Io, Pending, Team};
pub use entry::{Entry, Refusal};
pub use error::{CodecError, Error};
pub use granary_log::device::{Device, MemoryDevice, OpenDeviceError};
pub use granary_log::{Engine, GeometryError, Occupant, OpenError};
#[doc(hidden)]
pub use granary_log::{UnpublishedFile, create_folders, open_or_create, read_buffer_bytes, sync_folder};
pub use key::{Key, KeyHash, KeyHasher};
pub use lookup::Outcome;
pub use options::{Builder, FlashOptions, MemoryDivision, Options, PowerLoss};
#[doc(hidden)]
pub use policy::found_marks_cleared;
pub use policy::{Reinsertion, division};
pub use scan::Scan;
pub use single::now;
pub use stats::Stats;
#[cfg(feature = "serde")]
pub use typed::Postcard;
pub use typed::{Decode, Encode, Plain, TypedCache};

/// The README's example runs as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
