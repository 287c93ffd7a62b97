//! TLS: a certificate and its key, from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate, then those that vouch for it.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
}

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("{0}: no PEM certificate or key can be read: {1}")]
    File(PathBuf, tokio_rustls::rustls::pki_types::pem::Error),
    /// One is not of the other.
    #[error("the certificate and its key cannot be used: {0}")]
    Pair(#[from] tokio_rustls::rustls::Error),
}

/// Reads the files, for connections that somebody else serves.
///
/// # Errors
/// A file that cannot be read, or a key that is not the certificate's.
pub fn tls_configuration(tls: &Tls) -> Result<Arc<ServerConfig>, TlsError> {
    let of = |path: &Path| {
        let path = path.to_owned();
        move |error| TlsError::File(path, error)
    };
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(of(&tls.certificate))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(of(&tls.key))?;
    Ok(Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?))
}

/// Reads the files.
pub fn acceptor(tls: &Tls) -> Result<TlsAcceptor, TlsError> {
    Ok(TlsAcceptor::from(tls_configuration(tls)?))
}
