//! TLS from PEM files: a certificate, its key, and the authority of clients' certificates.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why TLS cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("{0}: no PEM certificate or key can be read: {1}")]
    File(PathBuf, pem::Error),
    /// The key does not belong to the certificate.
    #[error("the certificate and its key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
    /// The clients' authority cannot be used.
    #[error("{0}: no client can be checked with these certificates: {1}")]
    Authority(PathBuf, VerifierBuilderError),
}

/// Reads the files: a certificate, followed by its chain; its key; and the certificates of the authority that must have
/// signed clients' certificates, if these are required.
///
/// # Errors
/// A file that cannot be read, or a key that does not belong to the certificate.
pub fn tls_configuration(
    certificate: &Path,
    key: &Path,
    client_authority: Option<&Path>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::File(key.to_owned(), error))?;
    let builder = ServerConfig::builder();
    let builder = match client_authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate)?;
            }
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
            builder.with_client_cert_verifier(
                verifier.map_err(|error| TlsError::Authority(path.to_owned(), error))?,
            )
        }
    };
    Ok(Arc::new(builder.with_single_cert(chain, secret)?))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| TlsError::File(path.to_owned(), error))
}
