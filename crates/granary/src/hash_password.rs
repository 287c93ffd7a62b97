//! `granary hash-password`.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Reads a password from standard input and prints its hash, for `password_hash` in the configuration.
pub fn run() -> ExitCode {
    if io::stdin().is_terminal() {
        complain!("Password (it is shown while you type):");
    }
    let mut line = String::new();
    if let Err(error) = io::stdin().read_line(&mut line) {
        complain!("cannot read the password: {error}");
        return ExitCode::FAILURE;
    }
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        complain!("no password was given; a user without one has password = \"\" in the configuration");
        return ExitCode::FAILURE;
    }
    match granary_server::hash_password(password) {
        Ok(hash) => {
            say!("{hash}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain!("cannot hash the password: {error}");
            ExitCode::FAILURE
        }
    }
}
