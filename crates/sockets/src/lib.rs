//! What Granary's servers share below their protocols: sockets in the file system, the bytes of a connection with or
//! without TLS, and certificates from PEM files. Nothing here blocks, except on the file system.

#![forbid(unsafe_code)]

mod channel;
mod tls;
mod unix;

pub use channel::Channel;
pub use tls::{TlsError, tls_configuration};
pub use unix::{SocketFile, UnixSocket};
