//! A memcached server over Granary's cache.
//!
//! Bottom up: `protocol` turns bytes into requests and depends on nothing else; `store` keeps items on a
//! [`granary_cache::Cache`]; `commands` are pure functions of a request and of the item that is there; `engine` carries
//! requests out, many clients' in one batch; `server` owns sockets and threads.

#![forbid(unsafe_code)]

mod clock;
mod commands;
mod counters;
mod engine;
#[doc(hidden)]
pub mod fuzzing;
mod item;
pub mod limits;
mod protocol;
mod server;
mod store;
mod users;

pub use engine::{AllocatorSizes, Flush, ProcessMemory};
pub use granary_cache::admission::Admission;
pub use granary_cache::{Applications, Compression};
pub use granary_sockets::UnixSocket;
pub use rustls::ServerConfig;
pub use server::{Options, Server, ServerError, Stats};
pub use store::{OpenError, StoreOptions};
