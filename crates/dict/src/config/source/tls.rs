//! SSLMODE, SSLROOTCERT, SSL_CA: how a connection is encrypted, and whom it trusts.

use crate::config::node::{Node, Settings};
use crate::environment::Environment;
use crate::error::DictError;
use std::path::PathBuf;

/// TLS by libpq's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostgresTls {
    /// SSLMODE.
    pub mode: SslMode,
    /// SSLROOTCERT.
    pub authorities: Authorities,
}

/// SSLMODE: what a server must show before anything is said to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// Nothing: there is no TLS. (libpq's own default is `prefer`.)
    #[default]
    Disable,
    /// Any certificate, or none.
    Prefer,
    /// Any certificate; one of the authorities' if those are named.
    Require,
    /// A certificate of one of the authorities'.
    VerifyCa,
    /// A certificate of one of the authorities', for the HOST.
    VerifyFull,
}

/// Who vouches for a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authorities {
    /// Those that the system trusts.
    #[default]
    System,
    /// Those in a PEM file, as written; `Environment::resolve` says where it is.
    File(String),
}

/// libpq's name of those that the system trusts.
const SYSTEM: &str = "system";
const MODES: [(&str, SslMode); 5] = [
    ("disable", SslMode::Disable),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];

impl PostgresTls {
    pub(super) fn take(settings: &Settings<'_>) -> Result<PostgresTls, DictError> {
        let mode = match settings.text("SSLMODE")? {
            None | Some("") => SslMode::default(),
            Some(name) => {
                MODES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode).ok_or_else(|| {
                    let known = MODES.map(|(known, _)| known).join(", ");
                    settings.error("SSLMODE", &format!("must be one of {known}, not '{name}'"))
                })?
            }
        };
        Ok(PostgresTls { mode, authorities: Authorities::take(settings, "SSLROOTCERT")? })
    }

    pub(super) fn put(&self, nodes: &mut Vec<Node>) {
        let named = MODES.iter().find(|(_, mode)| *mode == self.mode && self.mode != SslMode::default());
        nodes.extend(named.map(|(name, _)| Node::text("SSLMODE", *name)));
        self.authorities.put(nodes, "SSLROOTCERT");
    }
}

impl Authorities {
    pub(super) fn take(settings: &Settings<'_>, name: &str) -> Result<Authorities, DictError> {
        Ok(match settings.text(name)? {
            None | Some("" | SYSTEM) => Authorities::System,
            Some(path) => Authorities::File(path.to_string()),
        })
    }

    pub(super) fn put(&self, nodes: &mut Vec<Node>, name: &str) {
        if let Authorities::File(path) = self {
            nodes.push(Node::text(name, path));
        }
    }

    /// Where their file is, if one is named.
    ///
    /// # Errors
    /// Those of [`Environment::resolve`].
    pub(crate) fn file(&self, environment: &Environment) -> Result<Option<PathBuf>, DictError> {
        match self {
            Authorities::System => Ok(None),
            Authorities::File(path) => environment.resolve(path).map(Some),
        }
    }
}
