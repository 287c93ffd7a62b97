//! Settings of REGEXP_TREE, and the rows of its source.

use crate::definition::{Attribute, Definition, Key, KeyColumn, Structure};
use crate::error::DictError;
use crate::types::DataType;

/// How regular expressions are read, according to the dictionary's SETTINGS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Case is ignored.
    pub ignores_case: bool,
    /// A dot matches a line break, too.
    pub dot_is_any: bool,
}

/// The columns of a source, in ClickHouse's order.
pub(super) fn rows() -> Structure {
    let texts = || DataType::Array(Box::new(DataType::String));
    let attributes = [
        ("parent_id", DataType::UInt64),
        ("regexp", DataType::String),
        ("keys", texts()),
        ("values", texts()),
    ];
    Structure {
        key: Key::Simple { name: "id".into() },
        attributes: attributes.into_iter().map(|(name, data_type)| Attribute::new(name, data_type)).collect(),
    }
}

impl Definition {
    /// How its regular expressions are read.
    ///
    /// # Errors
    /// `BAD_ARGUMENTS` if a setting is neither true nor false.
    pub(crate) fn regexp_flags(&self) -> Result<Flags, DictError> {
        let flag = |name: &str| match self.settings.iter().rfind(|(known, _)| known == name) {
            None => Ok(false),
            Some((_, value)) => match value.as_str() {
                "1" | "true" => Ok(true),
                "0" | "false" => Ok(false),
                other => {
                    Err(DictError::bad_arguments(format!("SETTINGS: {name} must be 0 or 1, not '{other}'")))
                }
            },
        };
        Ok(Flags {
            ignores_case: flag("regexp_dict_flag_case_insensitive")?,
            dot_is_any: flag("regexp_dict_flag_dotall")?,
        })
    }

    /// Checks that the key is a regular expression.
    pub(super) fn validate_regexps(&self) -> Result<(), DictError> {
        self.regexp_flags()?;
        match self.structure.key_columns().as_slice() {
            [KeyColumn { data_type: DataType::String, .. }] => self.source.validate(&self.asked_structure()),
            _ => Err(DictError::definition(
                "dictionary regexp_tree should have one primary key with string value to represent regular expressions",
            )),
        }
    }
}
