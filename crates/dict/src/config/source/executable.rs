//! EXECUTABLE(..).

use super::format::{ChunkHeader, Format, KeyEcho};
use super::{Kind, no_expressions};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::Structure;
use crate::error::DictError;

/// EXECUTABLE(COMMAND '..' FORMAT f ..): a program that reads keys and writes rows.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutableConfig {
    /// COMMAND.
    pub command: String,
    /// FORMAT of keys and rows.
    pub format: Format,
    /// IMPLICIT_KEY.
    pub key_echo: KeyEcho,
    /// SEND_CHUNK_HEADER.
    pub chunk_header: ChunkHeader,
    /// EXECUTE_DIRECT.
    pub execution: Execution,
}

/// How a program is started (EXECUTE_DIRECT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// `sh -c command`.
    Shell,
    /// A file below `<data_dir>/user_scripts`, its arguments cut at blanks.
    Direct,
}

const PARAMETERS: Parameters = Parameters {
    allowed: &["COMMAND", "FORMAT", "IMPLICIT_KEY", "SEND_CHUNK_HEADER", "EXECUTE_DIRECT"],
    idle: &[
        "UPDATE_FIELD",
        "UPDATE_LAG",
        "COMMAND_TERMINATION_TIMEOUT",
        "COMMAND_READ_TIMEOUT",
        "COMMAND_WRITE_TIMEOUT",
    ],
    refused: &[],
};

impl ExecutableConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<ExecutableConfig, DictError> {
        let settings = Settings::of("SOURCE", "EXECUTABLE", nodes, &PARAMETERS)?;
        let format = Format::parse("EXECUTABLE", settings.required("FORMAT")?)?;
        ExecutableConfig::of_settings(&settings, format)
    }

    /// What EXECUTABLE and EXECUTABLE_POOL share.
    pub(super) fn of_settings(
        settings: &Settings<'_>,
        format: Format,
    ) -> Result<ExecutableConfig, DictError> {
        Ok(ExecutableConfig {
            command: settings.required("COMMAND")?.to_string(),
            format,
            key_echo: if settings.flag("IMPLICIT_KEY")? { KeyEcho::Implicit } else { KeyEcho::Repeated },
            chunk_header: match settings.flag("SEND_CHUNK_HEADER")? {
                true => ChunkHeader::RowCount,
                false => ChunkHeader::None,
            },
            execution: match settings.flag("EXECUTE_DIRECT")? {
                true => Execution::Direct,
                false => Execution::Shell,
            },
        })
    }
}

impl Kind for ExecutableConfig {
    fn name(&self) -> &'static str {
        "EXECUTABLE"
    }

    fn nodes(&self, _hidden: Option<&str>) -> Vec<Node> {
        let mut nodes = vec![Node::text("COMMAND", &self.command), Node::text("FORMAT", self.format.name())];
        let flags = [
            ("IMPLICIT_KEY", self.key_echo == KeyEcho::Implicit),
            ("SEND_CHUNK_HEADER", self.chunk_header == ChunkHeader::RowCount),
            ("EXECUTE_DIRECT", self.execution == Execution::Direct),
        ];
        nodes.extend(flags.iter().filter(|(_, set)| *set).map(|(name, _)| Node::text(name, "1")));
        nodes
    }

    fn describe(&self) -> String {
        format!("Executable: {}", self.command)
    }

    fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        no_expressions("executable", structure)
    }
}
