//! EXECUTABLE(COMMAND '..' FORMAT f ..): a program that reads keys and writes rows.

pub(super) mod client;
pub(super) mod command;

use self::client::Executable;
use self::command::{CommandLine, KeyEcho, Program};
use super::SourceFactory;
use super::format::names::read_format;
use super::kind::{Opening, SourceKind};
use crate::config::{Layout, LayoutKind, Parameter, Printed, ReadText, ValueType, Values};
use crate::error::{Code, DictError};
use std::sync::Arc;

const PARAMETERS: &[Parameter] = &parameters(read_format);

pub(super) const KIND: SourceKind = SourceKind {
    fits,
    ..SourceKind::new("EXECUTABLE", &[PARAMETERS], describe, open).ignoring(&[
        "UPDATE_FIELD",
        "UPDATE_LAG",
        "COMMAND_TERMINATION_TIMEOUT",
        "COMMAND_READ_TIMEOUT",
        "COMMAND_WRITE_TIMEOUT",
    ])
};

/// The parameters of a program, whose FORMAT `read_format` reads.
pub(super) const fn parameters(read_format: ReadText) -> [Parameter; 5] {
    [
        Parameter::text("COMMAND").required(),
        Parameter::new("FORMAT", ValueType::Read(read_format)).required().printed(Printed::Always),
        Parameter::flag("IMPLICIT_KEY"),
        Parameter::flag("SEND_CHUNK_HEADER"),
        Parameter::flag("EXECUTE_DIRECT"),
    ]
}

fn fits(values: &Values, layout: &Layout) -> Result<(), DictError> {
    match Program::of(values).key_echo {
        KeyEcho::Repeated => Ok(()),
        KeyEcho::Implicit => needs_keys("EXECUTABLE with IMPLICIT_KEY", layout),
    }
}

/// Refuses layouts that hold all rows, for a source whose program answers keys only.
pub(super) fn needs_keys(source: &str, layout: &Layout) -> Result<(), DictError> {
    match layout.kind {
        LayoutKind::FullLoad(_) => Err(DictError::new(
            Code::UnsupportedMethod,
            format!(
                "SOURCE: {source} cannot be read whole, as LAYOUT({}) needs it: its program answers keys; use a layout \
                 CACHE, SSD_CACHE or DIRECT",
                layout.name()
            ),
        )),
        _ => Ok(()),
    }
}

fn describe(values: &Values) -> String {
    format!("Executable: {}", values.text("COMMAND"))
}

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let program = Program::of(values);
    let command = CommandLine::new(values, "executable", opening.environment)?;
    let Opening { structure, timeout, .. } = opening;
    Ok(Arc::new(move || Ok(Box::new(Executable::new(&program, &command, &structure, timeout)))))
}
