//! FILE(..).

use super::format::Format;
use super::{Kind, no_expressions};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::Structure;
use crate::error::{Code, DictError};

/// FILE(PATH '..' FORMAT f): a file of rows. Parquet says where its keys are; others are small enough to be read for
/// each request.
#[derive(Clone, Debug, PartialEq)]
pub struct FileConfig {
    /// PATH, as written; `Environment::resolve` says where it leads.
    pub path: String,
    /// FORMAT.
    pub format: FileFormat,
}

/// How the rows lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// As on a pipe.
    Rows(Format),
    /// `Parquet`.
    Parquet,
}

const PARQUET: &str = "Parquet";

impl FileFormat {
    fn parse(text: &str) -> Result<FileFormat, DictError> {
        if text.eq_ignore_ascii_case(PARQUET) {
            return Ok(FileFormat::Parquet);
        }
        Format::parse("FILE", text)
            .map(FileFormat::Rows)
            .map_err(|e| DictError::new(Code::UnknownFormat, format!("{}, {PARQUET}", e.message())))
    }

    fn name(self) -> &'static str {
        match self {
            FileFormat::Rows(format) => format.name(),
            FileFormat::Parquet => PARQUET,
        }
    }
}

const PARAMETERS: Parameters = Parameters { allowed: &["PATH", "FORMAT"], idle: &[], refused: &[] };

impl FileConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<FileConfig, DictError> {
        let settings = Settings::of("SOURCE", "FILE", nodes, &PARAMETERS)?;
        Ok(FileConfig {
            path: settings.required("PATH")?.to_string(),
            format: FileFormat::parse(settings.required("FORMAT")?)?,
        })
    }
}

impl Kind for FileConfig {
    fn name(&self) -> &'static str {
        "FILE"
    }

    fn nodes(&self, _hidden: Option<&str>) -> Vec<Node> {
        vec![Node::text("PATH", &self.path), Node::text("FORMAT", self.format.name())]
    }

    fn describe(&self) -> String {
        format!("File: {}, {}", self.path, self.format.name())
    }

    fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        no_expressions("file", structure)
    }
}
