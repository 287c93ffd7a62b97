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
mod variables;
mod volume;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

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
    Local(local::LocalArguments),
    /// Serve dictionaries and SQL over HTTP, also to a ClickHouse as its source; memcached; volumes over NBD
    #[command(after_long_help = server::EXAMPLES)]
    Server(Box<server::ServerArguments>),
    /// Read a password and print its hash, for the configuration of the server
    HashPassword,
    /// See a dictionary of a million users at work: cold, warm, and opened again
    Demo(demo::DemoArguments),
    /// Replay a trace through cache policies: hits, and writes to flash
    #[command(after_long_help = replay::help())]
    Replay(replay::ReplayArguments),
    /// Make, list and check log-structured disks, which `granary server --nbd` serves
    #[command(after_long_help = volume::EXAMPLES)]
    Volume(volume::VolumeArguments),
    /// Measure Granary beside its peers on this machine, and write a page about it
    Study(study::StudyArguments),
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
    let given = variables::without_empty(Arguments::command()).get_matches();
    let command = Arguments::from_arg_matches(&given).unwrap_or_else(|error| error.exit()).command;
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
    use std::collections::{BTreeMap, BTreeSet};

    /// Whether there is such a command with such arguments.
    pub fn is_understood(command: &str) -> bool {
        Arguments::try_parse_from(command.split(' ')).is_ok()
    }

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

    /// The page has each argument of memcached with its variable and its default, and no other.
    #[test]
    fn the_arguments_of_memcached_are_those_of_its_page() {
        let page = include_str!("../../../docs/memcached.md");
        let mut rows = BTreeMap::new();
        for row in page.lines().filter_map(|line| line.strip_prefix("| `--")) {
            let (name, rest) = row.split_once([' ', '`']).expect("a name ends");
            rows.insert(name, rest.replace(' ', ""));
        }
        let command = Arguments::command();
        let server = command.find_subcommand("server").expect("there is a server");
        let named = server.get_arguments().filter_map(|argument| Some((argument.get_long()?, argument)));
        for (name, argument) in named.filter(|(name, _)| name.starts_with("memcached")) {
            let row = rows.remove(name).unwrap_or_else(|| panic!("--{name} is not on the page"));
            let variable = argument.get_env().and_then(|name| name.to_str()).expect("it has a variable");
            assert!(row.contains(&format!("|`{variable}`|")), "--{name}: {variable}");
            let help = argument.get_help().expect("it has a help").to_string();
            if let Some((_, default)) = help.split_once("[default: ") {
                let default = default.trim_end_matches(']').replace(' ', "");
                assert!(row.contains(&default), "--{name}: {default}");
            }
        }
        assert!(rows.is_empty(), "there are no such arguments: {rows:?}");
    }
}
