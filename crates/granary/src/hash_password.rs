//! `granary hash-password`.

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Reads a password from standard input and prints its hash, for `password_hash` in the configuration.
pub fn run() -> ExitCode {
    let mut line = String::new();
    if let Err(error) = read_unseen(&mut line) {
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

/// Reads a line; a terminal does not show it.
fn read_unseen(line: &mut String) -> io::Result<usize> {
    let input = io::stdin();
    if !input.is_terminal() {
        return input.read_line(line);
    }
    let shown = tcgetattr(&input)?;
    let mut unseen = shown.clone();
    unseen.local_modes.remove(LocalModes::ECHO);
    unseen.local_modes.insert(LocalModes::ECHONL);
    complain!("Password:");
    tcsetattr(&input, OptionalActions::Now, &unseen)?;
    let read = input.read_line(line);
    tcsetattr(&input, OptionalActions::Now, &shown)?;
    read
}
