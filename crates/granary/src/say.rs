//! Output of commands. A reader that closes early, as `head` does, is no failure: the command does the rest of its
//! work. A full disk is one. Where standard error cannot be written, there is nobody to tell.

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

/// Prints a line on standard error, like `eprintln!`, which would panic where that is closed or full.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// The exit status of a command that ended with `status`, given whether its output was written.
pub fn status(status: ExitCode) -> ExitCode {
    match UNWRITTEN.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            complain!("cannot write to standard output: {error}");
            ExitCode::FAILURE
        }
        _ => status,
    }
}
