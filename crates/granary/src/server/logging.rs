//! Log lines of a server, written to standard error.

use std::io::IsTerminal;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::config::ConfigError;

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

/// Starts to log the lines that `filter` selects, such as `info` or `warn,granary_memcached=info`.
///
/// # Errors
/// A word that is no level, and any other invalid filter.
pub fn start(filter: &str, format: LogFormat) -> Result<(), ConfigError> {
    let filter = parse(filter).ok_or_else(|| ConfigError::Log(filter.to_owned()))?;
    let ansi = std::io::stderr().is_terminal();
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(ansi);
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
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
