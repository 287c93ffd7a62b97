//! What Granary's servers share below their protocols: sockets in the file system, the bytes of a connection with or
//! without TLS, certificates from PEM files, and log lines that strangers cannot bring about as often as they like.
//! Nothing here blocks, except on the file system.

#![forbid(unsafe_code)]

mod log_throttle;
mod maybe_tls_stream;
mod tls;
mod unix;

pub use log_throttle::LogThrottle;
pub use maybe_tls_stream::MaybeTlsStream;
pub use tls::{TlsError, tls_configuration};
pub use unix::{SocketFile, UnixSocket};
