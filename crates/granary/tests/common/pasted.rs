//! Commands of the README and of the pages, pasted into a shell.

use crate::programs::run;
use std::path::Path;

/// A shell ends the server that it has started, also if a command fails.
const ENDS_SERVER: &str = "trap 'kill $! 2>/dev/null || true' EXIT";

/// The first commands of a page below a heading.
pub fn commands<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, section) = page.split_once(heading).unwrap();
    let (_, commands) = section.split_once("```sh\n").unwrap();
    commands.split_once("```").unwrap().0
}

/// Runs commands in a folder, the last of which ends the server that they have started, and returns what they print.
#[track_caller]
pub fn paste(folder: &Path, commands: &str) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_granary")).parent().unwrap().display();
    let script = format!("PATH={programs}:$PATH\n{ENDS_SERVER}\n{commands}wait $! || [ $? = 143 ]");
    run(folder, "bash", &["-ec", &script])
}
