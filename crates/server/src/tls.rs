//! TLS: a certificate and its key, from PEM files.

use std::path::PathBuf;
use std::sync::Arc;

use granary_sockets::{TlsError, tls_configuration};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// Paths of PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate, followed by its chain.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file that cannot be read, or a key that does not belong to the certificate.
    pub fn configuration(&self) -> Result<Arc<ServerConfig>, TlsError> {
        tls_configuration(&self.certificate, &self.key, None)
    }

    /// Reads the files into an acceptor for HTTPS.
    ///
    /// # Errors
    /// See [`Tls::configuration`].
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        self.configuration().map(TlsAcceptor::from)
    }
}
