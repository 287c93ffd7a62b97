//! NULL(): a source without rows, for layouts that hold all of them.

use super::kind::{Opening, SourceKind};
use super::{BatchSink, Source, SourceFactory};
use crate::config::{Layout, LayoutKind, Values};
use crate::error::{Code, DictError};
use arrow::array::{ArrayRef, RecordBatch};
use std::sync::Arc;

pub(super) const KIND: SourceKind = SourceKind { fits, ..SourceKind::new("NULL", &[], describe, open) };

struct Null;

fn fits(_values: &Values, layout: &Layout) -> Result<(), DictError> {
    match layout.kind {
        LayoutKind::FullLoad(_) => Ok(()),
        _ => {
            Err(no_keys(&format!("; it is for layouts that hold all rows, which {} does not", layout.name())))
        }
    }
}

fn describe(_values: &Values) -> String {
    "Null".to_string()
}

fn open(_values: &Values, _opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    Ok(Arc::new(|| Ok(Box::new(Null))))
}

impl Source for Null {
    fn load(&mut self, _keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        Err(no_keys(""))
    }

    fn load_all(&mut self, _sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        Ok(())
    }
}

fn no_keys(instead: &str) -> DictError {
    let text = format!("SOURCE: NULL has no rows to ask for by key{instead}");
    DictError::new(Code::UnsupportedMethod, text)
}
