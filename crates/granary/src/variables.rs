//! Environment variables: many flags have one, and all of these begin with `GRANARY_`.

use crate::Arguments;
use clap::{Command, CommandFactory};
use std::collections::BTreeSet;
use std::env;
use strsim::levenshtein as distance;

const PREFIX: &str = "GRANARY_";

/// Variables that only tests read.
const OF_TESTS: [&str; 14] = [
    "GRANARY_CUTS",
    "GRANARY_GOLDEN",
    "GRANARY_KILLS",
    "GRANARY_LOGGED_ROUNDS",
    "GRANARY_LOG_SEEDS",
    "GRANARY_MEMCACHED_OPERATIONS",
    "GRANARY_MODEL_OPERATIONS",
    "GRANARY_MODEL_SEED",
    "GRANARY_MODEL_SEEDS",
    "GRANARY_ORACLE_OPERATIONS",
    "GRANARY_SEED",
    "GRANARY_SKIPPED_TESTS",
    "GRANARY_SQLITE_KILLS",
    "GRANARY_VOLUME_SEQUENCES",
];

/// Prefixes of such variables.
const OF_TESTS_BEGIN: [&str; 2] = ["GRANARY_TEST_", "GRANARY_MEMCACHED_CHILD"];

/// A command whose variables count as not set when they are empty.
pub fn without_empty(command: Command) -> Command {
    command
        .mut_args(|argument| {
            let is_empty = |name| env::var_os(name).is_some_and(|value| value.is_empty());
            if argument.get_env().is_some_and(is_empty) {
                argument.env(None::<&'static str>)
            } else {
                argument
            }
        })
        .mut_subcommands(without_empty)
}

/// Logs a warning for each variable that begins like ours and is none.
pub fn warn_of_unknown() {
    let mut known = BTreeSet::new();
    collect(&Arguments::command(), &mut known);
    let set: Vec<String> = env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    for text in unknown(&known, &set) {
        tracing::warn!("{text}");
    }
}

/// Adds the variables of a command and of those below it.
fn collect(command: &Command, names: &mut BTreeSet<String>) {
    let own = command.get_arguments().filter_map(|argument| argument.get_env());
    names.extend(own.map(|name| name.to_string_lossy().into_owned()));
    for below in command.get_subcommands() {
        collect(below, names);
    }
}

/// A text for each variable of `set` that begins like ours and is none of `known`.
fn unknown(known: &BTreeSet<String>, set: &[String]) -> Vec<String> {
    let is_of_tests =
        |name: &str| OF_TESTS.contains(&name) || OF_TESTS_BEGIN.iter().any(|begin| name.starts_with(begin));
    let is_unknown =
        |name: &&String| !known.contains(*name) && !is_of_tests(name) && !is_of_kubernetes(name, set);
    let ours = set.iter().filter(|name| name.starts_with(PREFIX));
    let told = ours.filter(is_unknown).map(|name| {
        let hint = match nearest(known, name) {
            Some(near) => format!("{near} is one"),
            None => "`granary server --help` has those that there are".to_owned(),
        };
        format!("{name} is no variable of Granary's, and has no effect: {hint}")
    });
    told.collect()
}

/// Whether Kubernetes sets a variable for a service that is called granary, or granary and something.
fn is_of_kubernetes(name: &str, set: &[String]) -> bool {
    let services = set.iter().filter_map(|name| name.strip_suffix("_SERVICE_HOST"));
    services
        .filter_map(|service| name.strip_prefix(service))
        .any(|rest| rest == "_PORT" || rest.starts_with("_PORT_") || rest.starts_with("_SERVICE_"))
}

/// The name that was probably meant.
fn nearest<'a>(known: &'a BTreeSet<String>, name: &str) -> Option<&'a String> {
    let most = 1 + (name.len() - PREFIX.len()) / 3;
    let near =
        known.iter().map(|other| (distance(other, name), other)).filter(|(changes, _)| *changes <= most);
    near.min().map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(set: &[&str]) -> Vec<String> {
        let mut known = BTreeSet::new();
        collect(&Arguments::command(), &mut known);
        unknown(&known, &set.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_are_as_far_apart_as_they_have_changes() {
        for (one, other, changes) in
            [("", "", 0), ("a", "", 1), ("NBD", "NDB", 2), ("PATH", "PTH", 1), ("PATH", "BATHS", 2)]
        {
            assert_eq!((distance(one, other), distance(other, one)), (changes, changes), "{one} {other}");
        }
    }

    #[test]
    fn a_mistyped_name_is_told_with_the_one_that_is_meant() {
        for (name, meant) in [
            ("GRANARY_NDB", "GRANARY_NBD is one"),
            ("GRANARY_PAHT", "GRANARY_PATH is one"),
            ("GRANARY_MEMCACHED_MEMROY", "GRANARY_MEMCACHED_MEMORY is one"),
            ("GRANARY_WHATEVER_THIS_IS", "`granary server --help` has those that there are"),
        ] {
            let told = told(&[name]);
            assert!(told.len() == 1 && told[0].starts_with(name) && told[0].ends_with(meant), "{told:?}");
        }
        assert_eq!(told(&["GRANARY", "PATH", "GRANARY_PATH", "GRANARY_NBD"]), [""; 0]);
    }

    #[test]
    fn variables_of_kubernetes_are_not_told() {
        let set = [
            "GRANARY_SERVICE_HOST",
            "GRANARY_PORT",
            "GRANARY_PORT_8123_TCP_ADDR",
            "GRANARY_ITEMS_SERVICE_HOST",
            "GRANARY_ITEMS_SERVICE_PORT_MEMCACHED",
        ];
        assert_eq!(told(&set), [""; 0]);
        assert_eq!(told(&set[1..3]).len(), 2, "there is no such service");
    }

    /// The pages name variables of tests: those that tests read.
    #[test]
    fn variables_of_tests_are_not_told() {
        let pages = [include_str!("../../../ARCHITECTURE.md"), include_str!("../../../docs/memcached.md")];
        let is_between = |c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let words = pages.iter().flat_map(|page| page.split(is_between));
        let set: Vec<&str> = words.filter(|word| word.starts_with(PREFIX) && *word != PREFIX).collect();
        assert!(set.contains(&"GRANARY_MODEL_SEED"), "{set:?}");
        assert_eq!(told(&set), [""; 0]);
    }
}
