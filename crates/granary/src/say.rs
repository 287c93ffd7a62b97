//! Output of commands. A reader that closes early, as `head` does, is no failure: the command does the rest of its
//! work. A full disk is one.

use std::io::{self, ErrorKind, Write, stdout};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Why output could not be written. Nothing is printed after that.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Prints a text on standard output, unchanged.
pub fn say(text: &str) {
    if UNWRITTEN.get().is_some() {
        return;
    }
    let written = stdout().lock().write_all(text.as_bytes()).and_then(|()| stdout().flush());
    if let Err(error) = written {
        // Another thread may have been first.
        let _ = UNWRITTEN.set(error);
    }
}

/// Prints a line on standard output, like `println!`, which would panic on a closed pipe.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::say::say(&format!("{}\n", format_args!($($text)*)))
    };
}

/// The exit status of a command that ended with `status`, given whether its output was written.
pub fn status(status: ExitCode) -> ExitCode {
    match UNWRITTEN.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("cannot write to standard output: {error}");
            ExitCode::FAILURE
        }
        _ => status,
    }
}
