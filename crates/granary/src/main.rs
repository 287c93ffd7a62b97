//! The command line: `granary local` and, later, its siblings.

mod local;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Granary keeps caches bigger than RAM on SSD.
#[derive(Parser)]
#[command(name = "granary", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run SQL over files and cache dictionaries, as `clickhouse local` does
    #[command(after_long_help = local::EXAMPLES)]
    Local(local::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Local(arguments) => local::run(arguments),
    }
}
