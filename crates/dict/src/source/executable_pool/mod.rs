//! EXECUTABLE_POOL(COMMAND '..' FORMAT f [POOL_SIZE n] ..): programs that stay, and answer as many rows as they read
//! keys.

mod client;
mod exchange;

use self::client::{ExecutablePool, Processes};
use super::SourceFactory;
use super::executable;
use super::executable::command::{CommandLine, KeyEcho, Program};
use super::format::names::{Format, read_some_format};
use super::kind::{Opening, SourceKind};
use crate::config::{Layout, Parameter, Values};
use crate::definition::Structure;
use crate::error::DictError;
use crate::limits;
use std::sync::Arc;

const PROGRAM: &[Parameter] = &executable::parameters(read_headless_format);
/// Processes at a time; 0: no limit.
const POOL_SIZE: &str = "POOL_SIZE";
/// How long a process has to end, once its input has.
const TERMINATION_TIMEOUT_S: &str = "COMMAND_TERMINATION_TIMEOUT";
/// How long a process may say nothing.
const READ_TIMEOUT_MS: &str = "COMMAND_READ_TIMEOUT";
/// How long it may read nothing.
const WRITE_TIMEOUT_MS: &str = "COMMAND_WRITE_TIMEOUT";
/// How long a request waits for a process.
const EXECUTION_TIME_S: &str = "MAX_COMMAND_EXECUTION_TIME";
const SECONDS_MAX: u64 = limits::TIMEOUT_MS_MAX / 1000;

/// ClickHouse's names and defaults.
const POOL: &[Parameter] = &[
    Parameter::number(POOL_SIZE, 0, limits::PROCESSES_MAX).also("SIZE").or("16"),
    Parameter::number(TERMINATION_TIMEOUT_S, 0, SECONDS_MAX).or("10"),
    Parameter::number(READ_TIMEOUT_MS, 1, limits::TIMEOUT_MS_MAX).or("10000"),
    Parameter::number(WRITE_TIMEOUT_MS, 1, limits::TIMEOUT_MS_MAX).or("10000"),
    Parameter::number(EXECUTION_TIME_S, 1, SECONDS_MAX).or("10"),
];

pub(super) const KIND: SourceKind =
    SourceKind { fits, validate, ..SourceKind::new("EXECUTABLE_POOL", &[PROGRAM, POOL], describe, open) };

fn fits(_values: &Values, layout: &Layout) -> Result<(), DictError> {
    executable::needs_keys("EXECUTABLE_POOL", layout)
}

/// Reads the name of a format for programs that stay: one without a head, so that a stream of rows never begins anew.
fn read_headless_format(source: &str, _parameter: &str, name: &str) -> Result<String, DictError> {
    read_some_format(source, name, |format| match format {
        Format::TabSeparated | Format::Csv | Format::RowBinary => true,
        Format::Json(json) => json.head == 0,
        _ => false,
    })
}

fn describe(values: &Values) -> String {
    format!("ExecutablePool size: {} command: {}", values.text(POOL_SIZE), values.text("COMMAND"))
}

fn validate(values: &Values, structure: &Structure) -> Result<(), DictError> {
    match Program::of(values).key_echo == KeyEcho::Implicit && structure.attributes.is_empty() {
        false => Ok(()),
        true => {
            let text = "SOURCE(EXECUTABLE_POOL): with IMPLICIT_KEY and no attributes a row would be empty";
            Err(DictError::bad_arguments(text))
        }
    }
}

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let command = CommandLine::new(values, "executable pool", opening.environment)?;
    let processes = Arc::new(Processes::new(values, command));
    let Opening { structure, timeout, environment, .. } = opening;
    let most = environment.answer_bytes_max;
    let pool = ExecutablePool::new(processes, values, structure, timeout, most);
    Ok(Arc::new(move || Ok(Box::new(pool.clone()))))
}
