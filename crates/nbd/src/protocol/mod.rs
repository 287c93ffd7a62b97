//! The NBD protocol without I/O: bytes in, commands to a session, bytes out.
//!
//! [`Conversation`] is one connection. Inside, `handshake` negotiates (with `options` as the decoder), and
//! `transmission` begins commands (with `request` as the decoder, and `divided` for WRITEs in parts) whose replies
//! `completions` gathers.

mod budget;
mod buffers;
mod completions;
mod conversation;
mod divided;
mod errno;
pub(crate) mod fuzzing;
mod handshake;
mod options;
mod replies;
mod request;
mod target;
mod transmission;
mod wire;

pub use budget::Budget;
pub use completions::Completions;
pub use conversation::{Conversation, Need};
pub use errno::Errno;
pub use replies::{ExtentsReply, ReadReply};

/// Whether a connection may, or must, be encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPolicy {
    /// STARTTLS is refused.
    Off,
    /// The client chooses.
    Optional,
    /// Nothing is answered before STARTTLS.
    Required,
}

/// The reason why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client said goodbye.
    Goodbye,
    /// The client asked by EXPORT_NAME for an export that it cannot have; the protocol has no other answer to that.
    Refused,
    /// The client does not speak the protocol.
    Violation(&'static str),
}
