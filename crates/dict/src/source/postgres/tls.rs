//! SSLMODE and SSLROOTCERT: how a connection is encrypted, and whom it trusts, by libpq's names.

use crate::config::{Identity, Parameter, ValueType, Values};
use crate::error::DictError;
use crate::source::tls::read_authorities;

/// SSLMODE: what a server must show before anything is said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SslMode {
    /// Nothing: there is no TLS. (libpq's own default is `prefer`.)
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

const MODES: [(&str, SslMode); 5] = [
    (DISABLE, SslMode::Disable),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];
const DISABLE: &str = "disable";
const MODE: &str = "SSLMODE";
pub(super) const AUTHORITIES: &str = "SSLROOTCERT";

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(MODE, ValueType::Read(read_mode)).or(DISABLE).anonymous(Identity::Nothing),
    Parameter::new(AUTHORITIES, ValueType::Read(read_authorities)).or("").anonymous(Identity::Nothing),
];

fn read_mode(source: &str, parameter: &str, text: &str) -> Result<String, DictError> {
    let text = if text.is_empty() { DISABLE } else { text };
    match MODES.iter().any(|(known, _)| *known == text) {
        true => Ok(text.to_string()),
        false => {
            let known = MODES.map(|(known, _)| known).join(", ");
            Err(DictError::bad_arguments(format!(
                "SOURCE({source}): {parameter} must be one of {known}, not '{text}'"
            )))
        }
    }
}

impl SslMode {
    pub fn of(values: &Values) -> SslMode {
        let mode = MODES.iter().find(|(known, _)| *known == values.text(MODE));
        mode.map_or(SslMode::Disable, |(_, mode)| *mode)
    }
}
