//! The traits of served disks.

use crate::protocol::{Completions, Errno};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// The exports of a server.
pub trait Exports: Send + Sync {
    /// Returns the export of this name, or `None` if there is none. The empty name is that of the default export.
    fn open(&self, name: &str) -> Option<Arc<dyn Export>>;

    /// Returns the names and descriptions for the answer to LIST.
    fn names(&self) -> Vec<(String, String)>;
}

/// One export: a disk that clients see.
///
/// A completed flush covers all writes completed before it, on all connections: the server advertises
/// `NBD_FLAG_CAN_MULTI_CONN`.
pub trait Export: Send + Sync {
    /// The export's name, by which [`Exports::open`] finds it.
    fn name(&self) -> String;

    /// The disk's size in bytes. A connection reads it once, when it begins.
    fn size(&self) -> u64;

    /// Whether WRITE, TRIM and WRITE_ZEROES are refused.
    fn read_only(&self) -> bool {
        false
    }

    /// Offsets and lengths must be multiples of this, a power of two up to 65 536. Others are refused.
    fn minimum_block(&self) -> u32 {
        1
    }

    /// The block size from which on requests are efficient: a power of two of at least 512.
    fn preferred_block(&self) -> u32 {
        4096
    }

    /// A description for people.
    fn description(&self) -> Option<String> {
        None
    }

    /// Makes a connection's session. It is called on the connection's own thread.
    ///
    /// # Errors
    /// The client is refused with the error's text.
    fn session(self: Arc<Self>) -> io::Result<Box<dyn Session>>;
}

/// A connection's access to an export, made, used and dropped on the connection's own thread.
///
/// It may be dropped with commands in flight, when the client has gone. Their writes may then be made or not, but not
/// after the drop, when the client may have written something else on another connection.
pub trait Session {
    /// Begins a command. It is completed in `completions`, by this call or by a later [`poll`](Self::poll), in any
    /// order and once. The data of a write is borrowed for the call only. The connection reads nothing until this
    /// returns.
    ///
    /// The command lies within the export, is aligned to its minimum block, is not empty (except a flush) and does not
    /// change a read-only export: the protocol has checked that.
    fn begin(&mut self, tag: Tag, command: Command<'_>, completions: &mut Completions);

    /// Completes finished commands and submits begun ones. It is called after all commands that had arrived were begun,
    /// and when [`event`](Self::event) is readable. It must not wait long.
    fn poll(&mut self, completions: &mut Completions);

    /// Called when the client's side has ended without a goodbye: it may come back on another connection. Commands that
    /// would still have to wait are given up ([`Errno::Shutdown`]), so that they are not carried out after its new
    /// commands.
    fn client_has_gone(&mut self) {}

    /// Returns a descriptor that is readable when `poll` has something to do; `poll` makes it unreadable. With `None`,
    /// `poll` is called every few milliseconds while commands are in flight.
    fn event(&self) -> Option<BorrowedFd<'_>>;
}

/// The number of a command in flight: below [`COMMANDS_IN_FLIGHT_MAX`](crate::limits::COMMANDS_IN_FLIGHT_MAX), and
/// reused once the command is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u32);

/// A client's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Reads; completed by [`Completions::read`].
    Read {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        len: u32,
    },
    /// Writes. A long WRITE of a client may come as several, which end at multiples of
    /// [`WRITE_PART_BYTES`](crate::limits::WRITE_PART_BYTES).
    Write {
        /// The first byte.
        offset: u64,
        /// The bytes to write.
        data: &'a [u8],
        /// Whether it must be durable before it is completed.
        fua: bool,
    },
    /// Makes all changes durable that were completed before, on any connection.
    Flush,
    /// Says that the contents are no longer needed.
    Trim {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        len: u32,
        /// Whether the effect, if there is one, must be durable before it is completed.
        fua: bool,
    },
    /// Writes zeroes.
    WriteZeroes {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        len: u32,
        /// Whether the space may be given back; otherwise later writes there must find it.
        may_trim: bool,
        /// Whether to refuse with [`Errno::NotSupported`] and change nothing if a write of `len` zeroes would be no
        /// slower.
        fast: bool,
        /// Whether it must be durable before it is completed.
        fua: bool,
    },
    /// Says that a range will be read soon.
    Cache {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        len: u32,
    },
    /// Asks what is allocated; completed by [`Completions::extents`].
    BlockStatus {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        len: u32,
        /// Whether only the first extent is wanted.
        one: bool,
    },
}

/// The allocation state of a run of bytes, as the metadata context `base:allocation` defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentState {
    /// Data that has its space.
    Data,
    /// Zeroes that have their space.
    Zero,
    /// Zeroes that take no space: a later write there may find no space.
    Hole,
}

/// A server of one export, under its own name and as the default one.
pub struct SingleExport(pub Arc<dyn Export>);

impl Exports for SingleExport {
    fn open(&self, name: &str) -> Option<Arc<dyn Export>> {
        (name.is_empty() || name == self.0.name()).then(|| Arc::clone(&self.0))
    }

    fn names(&self) -> Vec<(String, String)> {
        vec![(self.0.name(), self.0.description().unwrap_or_default())]
    }
}

/// The result of a command without data.
pub type Outcome = Result<(), Errno>;
