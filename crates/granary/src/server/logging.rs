//! Log lines of a server, written to standard error.

use std::io::IsTerminal;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::config::ConfigError;
use super::log_writer::{self, LogGuard};

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// An object on each line, for programs
    Json,
}

/// Begins to write them: those that `filter` lets through, such as `info` or `warn,granary_memcached=info`. A thread of
/// its own writes them, until the guard is dropped: a reader that stalls, or is gone, holds up nobody.
///
/// # Errors
/// A word that is no level, and what else is no filter.
pub fn start(filter: &str, format: LogFormat) -> Result<LogGuard, ConfigError> {
    let filter = parse(filter).ok_or_else(|| ConfigError::Log(filter.to_owned()))?;
    let (writer, guard) = log_writer::start(format).map_err(ConfigError::NoLog)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(std::io::stderr().is_terminal())
        // The library would say so on standard error, and panic where that cannot be written.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(guard)
}

/// Writes warnings and errors of a command on standard error.
pub fn start_for_command() {
    let lines = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .log_internal_errors(false);
    lines.init();
}

/// A single word must be a level; the library would also accept it as a module's name, and then log nothing else.
fn parse(filter: &str) -> Option<EnvFilter> {
    let parts: Vec<&str> = filter.split(',').map(str::trim).collect();
    let is_level = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let is_known = parts.iter().all(|part| part.contains(['=', '[']) || is_level(part));
    is_known.then(|| EnvFilter::builder().parse(parts.join(",")).ok())?
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn words_are_levels() {
        for filter in ["info", "WARN", "off", "warn,granary_memcached=info", "warn, granary_nbd=debug"] {
            assert!(parse(filter).is_some(), "{filter}");
        }
        for filter in ["verbose", "granary_log", "warn,verbose", "granary_log=loud", ""] {
            assert!(parse(filter).is_none(), "{filter}");
        }
    }
}
