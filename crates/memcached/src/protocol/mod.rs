//! The memcached protocol, without I/O: bytes in, [`Request`]s out. Replies are written by `reply`.
//!
//! Where memcached has quirks that a client can see, they are kept: the test of conversations compares
//! replies with those of a real one, byte for byte.

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
    Direction, DumpForm, Exptime, Group, KeyForm, Meta, MetaFlags, Mode, Older, Put, Reply, Request, WithCas,
};
pub use words::split_from as keys_from;

/// The version of memcached whose replies these are, with our own.
pub const VERSION: &str = concat!("1.6.18-granary-", env!("CARGO_PKG_VERSION"));
