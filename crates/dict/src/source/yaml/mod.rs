//! YAMLREGEXPTREE(PATH '..'): a YAML file of regular expressions, each with what lies within its matches.

mod client;

pub(crate) use self::client::Yaml;

use super::kind::{Opening, SourceKind};
use super::{PATH, SourceFactory};
use crate::config::{FullLoadLayout, Layout, LayoutKind, Values};
use crate::error::DictError;
use std::sync::Arc;

pub(super) const KIND: SourceKind =
    SourceKind { fits, ..SourceKind::new("YAMLREGEXPTREE", &[PATH], describe, open) };

/// Only REGEXP_TREE can hold the rules of a YAML file.
fn fits(_values: &Values, layout: &Layout) -> Result<(), DictError> {
    match layout.kind {
        LayoutKind::FullLoad(FullLoadLayout::RegexpTree) => Ok(()),
        _ => Err(DictError::bad_arguments(format!(
            "SOURCE(YAMLREGEXPTREE): it is for the layout REGEXP_TREE, not {}",
            layout.name()
        ))),
    }
}

fn describe(values: &Values) -> String {
    format!("YAMLRegExpTree: {}", values.text("PATH"))
}

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let path = opening.environment.resolve(values.text("PATH"))?;
    let definition = opening.definition.clone();
    Ok(Arc::new(move || Ok(Box::new(Yaml::new(&path, &definition)))))
}
