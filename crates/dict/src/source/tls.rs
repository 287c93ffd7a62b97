//! TLS to a source: which authorities it trusts, and how strictly it checks.

use crate::environment::Environment;
use crate::error::{Code, DictError};
use crate::source::file::open_regular;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of certificates that systems trust, of Debian, Fedora and Alpine.
const TRUSTED: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
/// The variable that names another such file, as OpenSSL has it.
const TRUSTED_VARIABLE: &str = "SSL_CERT_FILE";

/// libpq's name of the authorities that the system trusts.
const SYSTEM: &str = "system";

/// Reads the name of a file of authorities; empty: those that the system trusts.
pub(super) fn read_authorities(_source: &str, _parameter: &str, text: &str) -> Result<String, DictError> {
    Ok(if text == SYSTEM { String::new() } else { text.to_string() })
}

/// The path of that file, if one is named.
///
/// # Errors
/// The errors of [`Environment::resolve`].
pub(super) fn authorities(named: &str, environment: &Environment) -> Result<Option<PathBuf>, DictError> {
    match named {
        "" => Ok(None),
        named => environment.resolve(named).map(Some),
    }
}

/// A PEM file of authorities.
pub(super) struct Trusted {
    pub path: PathBuf,
    pub pem: Vec<u8>,
}

impl Trusted {
    /// Reads the file that is named, or else the system's.
    ///
    /// # Errors
    /// `NETWORK_ERROR` if there is none to read.
    pub fn read(named: Option<&Path>) -> Result<Trusted, DictError> {
        let variable = || std::env::var_os(TRUSTED_VARIABLE).map(PathBuf::from);
        let system = || TRUSTED.iter().map(PathBuf::from).find(|path| path.exists());
        let path = named.map(Path::to_path_buf).or_else(variable).or_else(system).ok_or_else(|| {
            let text =
                format!("TLS: there are no certificates to trust; name a file of them in {TRUSTED_VARIABLE}");
            DictError::new(Code::NetworkError, text)
        })?;
        let mut pem = Vec::new();
        open_regular(&path).and_then(|mut file| file.read_to_end(&mut pem)).map_err(|e| failed(&path, &e))?;
        Ok(Trusted { path, pem })
    }

    pub fn failed(&self, e: &dyn std::fmt::Display) -> DictError {
        failed(&self.path, e)
    }

    /// # Errors
    /// `NETWORK_ERROR` if none of them can be used.
    pub fn roots(&self) -> Result<Arc<RootCertStore>, DictError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.pem) {
            let certificate = certificate.map_err(|e| self.failed(&e))?;
            // Some of a system's certificates may be of a kind that cannot be used.
            let _ = roots.add(certificate);
        }
        if roots.is_empty() {
            return Err(self.failed(&"there is none that can be used"));
        }
        Ok(Arc::new(roots))
    }
}

fn failed(path: &Path, e: &dyn std::fmt::Display) -> DictError {
    DictError::new(Code::NetworkError, format!("TLS: certificates of {}: {e}", path.display()))
}

/// What a server's certificate must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Any: a man in the middle can read and answer.
    Nothing,
    /// One that an authority vouches for.
    Authority,
    /// One that an authority vouches for, and for this server.
    Name,
}

/// How a client speaks TLS; `named` is the file of the authorities, if there is one.
pub(super) fn client(check: Check, named: Option<&Path>) -> Result<ClientConfig, DictError> {
    let provider = Arc::new(ring::default_provider());
    let unusable = |e: &dyn std::fmt::Display| DictError::new(Code::NetworkError, format!("TLS: {e}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| unusable(&e))?;
    let authorities = match check {
        Check::Nothing => None,
        Check::Authority | Check::Name => Some(Trusted::read(named)?.roots()?),
    };
    let builder = match (check, authorities) {
        (Check::Name, Some(roots)) => builder.with_root_certificates(roots),
        (_, roots) => {
            let chain = roots
                .map(|roots| {
                    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()
                })
                .transpose()
                .map_err(|e| unusable(&e))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Lenient { chain, provider }))
        }
    };
    Ok(builder.with_no_client_auth())
}

/// Accepts a certificate for any server.
#[derive(Debug)]
struct Lenient {
    /// `None`: from any issuer, too.
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // The name is checked last.
        match chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
