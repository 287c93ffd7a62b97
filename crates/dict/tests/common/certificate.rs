//! A certificate for localhost that vouches for itself, and its key, as PEM files.
#![allow(dead_code, reason = "not every test that may have one makes one")]

use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Certificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    /// The certificate and the key that were made in the folder.
    pub fn of(folder: &Path, name: &str) -> Certificate {
        let file = |kind: &str| folder.join(format!("{name}-{kind}.pem"));
        Certificate { certificate: file("certificate"), key: file("key") }
    }

    /// Makes both in the folder.
    pub fn new(folder: &Path, name: &str) -> Certificate {
        let made = Certificate::of(folder, name);
        let output = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-out"])
            .arg(&made.certificate)
            .arg("-keyout")
            .arg(&made.key)
            .output()
            .unwrap();
        assert!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
        made
    }
}
