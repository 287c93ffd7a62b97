//! The memcached protocol, without I/O: bytes in, [`Request`]s out. Replies are written by `reply`.
//!
//! Quirks of memcached that a client can see are kept: the test of conversations compares replies with those of a real
//! memcached, byte for byte.

pub mod base64;
mod decoder;
mod meta;
mod number;
pub mod reply;
mod request;
mod text;
mod words;

pub use decoder::{Access, Decoder, Ending, Step, Taken};
pub(crate) use meta::{LONG_OPAQUE, opaque_fits};
pub use number::unsigned;
pub use request::{
    Direction, DumpForm, Exptime, Group, KeyForm, Meta, MetaFlags, Mode, OnTooLarge, Put, Reply, Request,
    Texts, WithCas,
};
pub(crate) use text::BAD_EXPTIME;
pub use words::split_from as keys_from;

/// The version of memcached whose replies are given, and Granary's own version.
pub const VERSION: &str = concat!("1.6.18-granary-", env!("CARGO_PKG_VERSION"));
