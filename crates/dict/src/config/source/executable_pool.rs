//! EXECUTABLE_POOL(..).

use super::executable::ExecutableConfig;
use super::format::{Format, KeyEcho};
use super::{Kind, no_expressions};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::Structure;
use crate::error::DictError;
use crate::limits;

/// EXECUTABLE_POOL(COMMAND '..' FORMAT f [POOL_SIZE n] ..): programs that stay, and answer as many rows as they
/// read keys.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutablePoolConfig {
    /// What is run, and how it is spoken to.
    pub program: ExecutableConfig,
    /// POOL_SIZE, processes at a time; 0: no limit.
    pub pool_size: u64,
    /// COMMAND_TERMINATION_TIMEOUT: how long a process has to end, once its input has.
    pub termination_timeout_s: u64,
    /// COMMAND_READ_TIMEOUT: how long a process may say nothing.
    pub read_timeout_ms: u64,
    /// COMMAND_WRITE_TIMEOUT: how long it may read nothing.
    pub write_timeout_ms: u64,
    /// MAX_COMMAND_EXECUTION_TIME: how long a request waits for a process.
    pub execution_time_s: u64,
}

const PARAMETERS: Parameters = Parameters {
    allowed: &[
        "COMMAND",
        "FORMAT",
        "POOL_SIZE",
        SIZE,
        "IMPLICIT_KEY",
        "SEND_CHUNK_HEADER",
        "EXECUTE_DIRECT",
        "COMMAND_TERMINATION_TIMEOUT",
        "COMMAND_READ_TIMEOUT",
        "COMMAND_WRITE_TIMEOUT",
        "MAX_COMMAND_EXECUTION_TIME",
    ],
    idle: &[],
    refused: &[],
};
/// What ClickHouse calls POOL_SIZE, too.
const SIZE: &str = "SIZE";
/// ClickHouse's names and what they are where nothing is said.
const POOL_SIZE: (&str, u64) = ("POOL_SIZE", 16);
const TERMINATION: (&str, u64) = ("COMMAND_TERMINATION_TIMEOUT", 10);
const READ: (&str, u64) = ("COMMAND_READ_TIMEOUT", 10_000);
const WRITE: (&str, u64) = ("COMMAND_WRITE_TIMEOUT", 10_000);
const EXECUTION: (&str, u64) = ("MAX_COMMAND_EXECUTION_TIME", 10);

impl ExecutablePoolConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<ExecutablePoolConfig, DictError> {
        let settings = Settings::of("SOURCE", "EXECUTABLE_POOL", nodes, &PARAMETERS)?;
        let number = |(name, default): (&str, u64), low, high| -> Result<u64, DictError> {
            Ok(settings.number(name, low, high)?.unwrap_or(default))
        };
        if settings.text(SIZE)?.is_some() && settings.text(POOL_SIZE.0)?.is_some() {
            return Err(settings.error(SIZE, "is POOL_SIZE, which is given, too"));
        }
        let size = settings.number(SIZE, 0, limits::PROCESSES_MAX)?;
        let format = Format::parse_headless("EXECUTABLE_POOL", settings.required("FORMAT")?)?;
        let seconds_max = limits::TIMEOUT_MS_MAX / 1000;
        Ok(ExecutablePoolConfig {
            program: ExecutableConfig::of_settings(&settings, format)?,
            pool_size: size.map_or_else(|| number(POOL_SIZE, 0, limits::PROCESSES_MAX), Ok)?,
            termination_timeout_s: number(TERMINATION, 0, seconds_max)?,
            read_timeout_ms: number(READ, 1, limits::TIMEOUT_MS_MAX)?,
            write_timeout_ms: number(WRITE, 1, limits::TIMEOUT_MS_MAX)?,
            execution_time_s: number(EXECUTION, 1, seconds_max)?,
        })
    }
}

impl Kind for ExecutablePoolConfig {
    fn name(&self) -> &'static str {
        "EXECUTABLE_POOL"
    }

    fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        let mut nodes = self.program.nodes(hidden);
        for ((name, default), value) in [
            (POOL_SIZE, self.pool_size),
            (TERMINATION, self.termination_timeout_s),
            (READ, self.read_timeout_ms),
            (WRITE, self.write_timeout_ms),
            (EXECUTION, self.execution_time_s),
        ] {
            if value != default {
                nodes.push(Node::text(name, value.to_string()));
            }
        }
        nodes
    }

    fn describe(&self) -> String {
        format!("ExecutablePool size: {} command: {}", self.pool_size, self.program.command)
    }

    fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        if self.program.key_echo == KeyEcho::Implicit && structure.attributes.is_empty() {
            let text = "SOURCE(EXECUTABLE_POOL): with IMPLICIT_KEY and no attributes a row would be empty";
            return Err(DictError::bad_arguments(text));
        }
        no_expressions("executable_pool", structure)
    }
}
