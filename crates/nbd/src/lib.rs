//! An NBD server: any block device, served to common clients (the Linux kernel, QEMU, libnbd).
//!
//! Bottom up:
//! - `export` has the traits of served disks: [`Exports`] finds an [`Export`], which makes a [`Session`] for each
//!   connection; the session begins commands and completes them in any order.
//! - [`protocol`] is the protocol without I/O: bytes in, commands to a session, bytes out. It checks every request
//!   (flags, range, alignment, read-only), so a session need not.
//! - `server` owns sockets and threads: one thread a connection, which reads what the socket has, begins all of it,
//!   polls the session once and sends all replies in one write. TLS, Unix sockets, sockets from systemd and a single
//!   connection on standard input are handled here.
//! - [`VolumeExports`] serves log-structured volumes.
//! - [`MemoryExport`] is a disk in memory, for tests and measurements.
//!
//! ```no_run
//! use granary_nbd::{MemoryExport, Options, Server, SingleExport};
//! use std::sync::Arc;
//!
//! let disk = Arc::new(MemoryExport::new("scratch", 1 << 30));
//! let mut options = Options::new(Arc::new(SingleExport(disk)));
//! options.addresses.push("127.0.0.1:10809".parse()?);
//! let server = Server::start(options)?;
//! println!("nbd://{}/scratch", server.addresses()[0]);
//! server.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Choices that the protocol leaves open:
//! - Fixed newstyle only, the specification's baseline and all of its optional parts except extended headers: LIST,
//!   INFO, GO, structured replies, `base:allocation`, TLS (off, optional or required for all exports).
//! - Reads longer than 32 MiB get EOVERFLOW in structured replies, EINVAL in simple ones; longer writes are skipped and
//!   get EINVAL. TRIM, WRITE_ZEROES, CACHE and BLOCK_STATUS have no such bound.
//! - WRITEs longer than 128 KiB are begun in parts while they arrive, and answered once. If the client goes before the
//!   end, a part may be written.
//! - Commands go on while WRITEs before them wait, until 256 commands, or 64 MiB of their data, are in flight.
//! - Requests of no bytes succeed and do nothing, except BLOCK_STATUS, which has no answer to give: EINVAL.
//! - `base:allocation` says of a volume's content that it is allocated (no HOLE), and NO_HOLE of WRITE_ZEROES keeps no
//!   space: both are true of the volume's log, but the file below it takes space as it is written, and where its file
//!   system is full, a write fails with ENOSPC there as well.
//! - BLOCK_STATUS may be answered for less than was asked: extents end after 65536 of them, or of a volume's blocks.
//! - A client has 30 seconds and 4096 options for its handshake. One that takes nothing of its replies for 30 seconds,
//!   or stops for as long within a request, is disconnected; between requests it may stay silent ([`limits`]).
//! - A client that sends EOF without DISC gets the replies to its earlier requests.
//! - A stopping server completes begun commands, and answers ESHUTDOWN to later ones.
#![forbid(unsafe_code)]

mod export;
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
mod memory;
pub mod protocol;
mod server;
mod volume;

pub use export::{Command, Export, Exports, ExtentState, Outcome, Session, SingleExport, Tag};
pub use granary_sockets::{TlsError, UnixSocket, tls_configuration};
pub use memory::MemoryExport;
pub use protocol::{Completions, Errno, ExtentsReply, ReadReply, TlsPolicy};
pub use rustls::ServerConfig;
pub use server::{Figures, Options, Server, ServerError, Stop, is_activated, serve};
pub use volume::{VolumeExports, default_export};
