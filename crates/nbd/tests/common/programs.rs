//! Programs that tests run to their end.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program in the folder and returns its output.
#[track_caller]
pub fn run(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let (is_fine, output, errors) = attempt(folder, program, arguments);
    assert!(is_fine, "{program} {arguments:?}: {errors}{output}");
    output
}

/// Runs a program in the folder; returns whether it succeeded, its output, and its errors.
#[track_caller]
pub fn attempt(folder: &Path, program: &str, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", program]).args(arguments).current_dir(folder).stdin(Stdio::null());
    let output = command.output().expect("coreutils are installed");
    let code = output.status.code();
    assert_ne!(code, Some(127), "{program} is not installed: scripts/install-test-servers.sh");
    assert_ne!(code, Some(124), "{program} {arguments:?} hangs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}
