//! Statements from standard input, run as they come: typed at a prompt, or piped in.

use std::io::BufRead;

use granary_sql::Error;

use super::statements::Runner;
use crate::say::say;

/// Reads and runs statements until `exit` or the end of input. An error is shown; the prompt goes on.
pub fn run(runner: &Runner) -> Result<(), Error> {
    say!("granary {} - end a statement with ; and leave with exit", env!("CARGO_PKG_VERSION"));
    let mut typed = String::new();
    let mut lines = std::io::stdin().lock().lines();
    loop {
        say(if typed.is_empty() { "granary :) " } else { "        :-] " });
        let Some(line) = lines.next() else { return Ok(()) };
        let line = line?;
        if typed.is_empty() && ["exit", "quit", "exit;", "quit;"].contains(&line.trim()) {
            return Ok(());
        }
        typed.push_str(&line);
        typed.push('\n');
        if !line.trim_end().ends_with(';') {
            continue;
        }
        match granary_sql::split(&typed) {
            // The semicolon was inside a string that is still open.
            Err(error) if error.message.contains("Unterminated") => continue,
            Err(error) => complain!("{error}"),
            Ok(statements) => {
                for statement in statements {
                    if let Err(error) = runner.run(&statement) {
                        complain!("{error}");
                        break;
                    }
                }
            }
        }
        typed.clear();
    }
}

/// Runs piped statements, each when the line that ends it has arrived: a program can wait for an answer before it sends
/// the next. The first error ends it, and so does a reader of the answers that is gone: there may be no end of
/// statements.
pub fn run_piped(runner: &Runner) -> Result<(), Error> {
    let mut text = String::new();
    for line in std::io::stdin().lock().lines() {
        text.push_str(
            &line.map_err(|e| Error::cannot_open_file(format!("Cannot read standard input: {e}")))?,
        );
        text.push('\n');
        // A semicolon within an open string or comment ends nothing: the text does not split then.
        if text.trim_end().ends_with(';')
            && let Ok(statements) = granary_sql::split(&text)
        {
            text.clear();
            statements.iter().try_for_each(|statement| runner.run(statement))?;
        }
        if runner.is_closed.get() {
            return Ok(());
        }
    }
    runner.run_text(&text)
}
