//! The lines before the rows of a text or of JSON arrays: names of columns, and their types.

use super::{ColumnOrder, Rows};
use crate::error::DictError;

/// What the next line is.
pub(super) enum HeaderLine {
    /// Names, if they are our columns' or all of these are among them; else a row.
    NamesGuessed,
    Names,
    /// Names, and then types.
    NamesAndTypes,
    /// Types, if all its fields are; else a row. The names were read.
    TypesGuessed(Vec<String>),
    Types(Vec<String>),
    /// A row.
    Read,
}

impl HeaderLine {
    /// The first line, where the format says how many lines of a header there are: of names, and of types.
    pub fn given(lines: u8) -> Self {
        match lines {
            0 => Self::Read,
            1 => Self::Names,
            _ => Self::NamesAndTypes,
        }
    }

    /// Whether rows follow.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Read)
    }

    /// Takes the fields of the next line; `false`: it is a row.
    pub fn read(
        &mut self,
        fields: Vec<String>,
        order: &mut Option<ColumnOrder>,
        rows: &Rows,
    ) -> Result<bool, DictError> {
        let (next, is_header) = match (std::mem::replace(self, Self::Read), order.as_mut()) {
            (Self::NamesGuessed, _) if !ColumnOrder::are_names(&fields, rows) => (Self::Read, false),
            (Self::TypesGuessed(_), _) if !ColumnOrder::are_types(&fields) => (Self::Read, false),
            (Self::Types(names) | Self::TypesGuessed(names), Some(order)) => {
                order.check_types(&names, &fields, rows)?;
                (Self::Read, true)
            }
            (names, _) => {
                *order = Some(ColumnOrder::of_names(&fields, rows)?);
                let next = match names {
                    Self::NamesGuessed => Self::TypesGuessed(fields),
                    Self::NamesAndTypes => Self::Types(fields),
                    _ => Self::Read,
                };
                (next, true)
            }
        };
        *self = next;
        Ok(is_header)
    }
}
