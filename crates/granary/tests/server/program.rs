//! The program under test.

#![allow(dead_code, reason = "each test uses its part")]

use std::process::Command;

pub const GRANARY: &str = env!("CARGO_BIN_EXE_granary");

/// A server or command of the program, of which the environment of the tests sets nothing.
pub fn granary() -> Command {
    unset(GRANARY)
}

/// A program without Granary's settings, and without proxies, of the environment of the tests.
pub fn unset(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_uppercase();
        if text.starts_with("GRANARY_") || text.ends_with("_PROXY") {
            command.env_remove(name);
        }
    }
    command
}
