//! The command line: `granary local`, `granary server`, `granary hash-password`, `granary demo`, `granary replay`,
//! `granary volume`, `granary study`.

#[macro_use]
mod say;

mod allocator;
mod client;
mod demo;
mod failure;
mod hash_password;
mod local;
mod memory;
mod progress;
mod replay;
mod scratch;
mod server;
mod study;
mod volume;

use std::process::ExitCode;
use std::sync::Arc;

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
    /// Serve dictionaries and SQL over HTTP, also to a ClickHouse as its source; memcached; volumes over NBD
    #[command(after_long_help = server::EXAMPLES)]
    Server(Box<server::Arguments>),
    /// Read a password and print its hash, for the configuration of the server
    HashPassword,
    /// See a dictionary of a million users at work: cold, warm, and opened again
    Demo(demo::Arguments),
    /// Replay a trace through cache policies: hits, and writes to flash
    #[command(after_long_help = replay::help())]
    Replay(replay::Arguments),
    /// Make, list and check log-structured disks, which `granary server --nbd` serves
    #[command(after_long_help = volume::EXAMPLES)]
    Volume(volume::Arguments),
    /// Measure Granary beside its peers on this machine, and write a page about it
    Study(study::Arguments),
}

/// Makes a write beyond the longest file that the process may have (`ulimit -f`, `LimitFSIZE=`) fail with EFBIG, as one
/// on a full file system fails: the signal that comes with it would end the process. A handler, for programs that are
/// started would inherit that it is ignored.
fn survive_file_size_limits() {
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()) {
        complain!("a file that is too long for the process's limit will end it: {error}");
    }
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    survive_file_size_limits();
    say::status(match command {
        Command::Local(arguments) => local::run(arguments),
        Command::Server(arguments) => server::run(*arguments),
        Command::HashPassword => hash_password::run(),
        Command::Demo(arguments) => failure::exit(demo::run(&arguments)),
        Command::Replay(arguments) => failure::exit(replay::run(&arguments)),
        Command::Volume(arguments) => failure::exit(volume::run(arguments)),
        Command::Study(arguments) => failure::exit(study::run(&arguments)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    /// Two arguments with the same id would be one: clap's release build does not report that.
    #[test]
    fn each_argument_has_a_name_of_its_own() {
        fn check(command: &clap::Command) {
            let mut seen = BTreeSet::new();
            for argument in command.get_arguments() {
                assert!(seen.insert(argument.get_id()), "{}: {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Arguments::command());
    }
}
