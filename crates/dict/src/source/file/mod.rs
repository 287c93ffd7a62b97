//! FILE(PATH '..' FORMAT f): a file of rows. Parquet says where its keys are; others are small enough to be read for
//! each request.

mod client;

pub(super) use self::client::{contents, open_regular};

use self::client::{File, FileFormat};
use super::format::names::{Format, read_format};
use super::kind::{Opening, SourceKind};
use super::{PATH, SourceFactory};
use crate::config::{Parameter, Printed, ValueType, Values};
use crate::error::{Code, DictError};
use std::sync::Arc;

const FORMAT: &[Parameter] =
    &[Parameter::new("FORMAT", ValueType::Read(read_file_format)).required().printed(Printed::Always)];
const PARQUET: &str = "Parquet";

pub(super) const KIND: SourceKind = SourceKind::new("FILE", &[PATH, FORMAT], describe, open);

fn read_file_format(source: &str, parameter: &str, text: &str) -> Result<String, DictError> {
    if text.eq_ignore_ascii_case(PARQUET) {
        return Ok(PARQUET.to_string());
    }
    read_format(source, parameter, text)
        .map_err(|e| DictError::new(Code::UnknownFormat, format!("{}, {PARQUET}", e.message())))
}

fn describe(values: &Values) -> String {
    format!("File: {}, {}", values.text("PATH"), values.text("FORMAT"))
}

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let path = opening.environment.resolve(values.text("PATH"))?;
    let format = match values.text("FORMAT") {
        PARQUET => FileFormat::Parquet,
        _ => FileFormat::Rows(Format::of(values)),
    };
    let (parquet, structure) = (opening.environment.parquet.clone(), opening.structure);
    let most = opening.environment.answer_bytes_max;
    Ok(Arc::new(move || Ok(Box::new(File::new(&path, format, parquet.clone(), &structure, most)))))
}
