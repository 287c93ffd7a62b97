//! The text form of values and of columns' names.

mod column;
mod composite;
pub mod escape;
mod value;

use datafusion::arrow::array::{Array, ArrayRef, StringArray, StringBuilder};
use datafusion::arrow::datatypes::Field;

use crate::error::Result;
pub use column::{Cells, Column};
pub use value::{Style, write_cell};

/// A column's name as ClickHouse shows it. DataFusion requires distinct names and ClickHouse does not, so a repeated
/// name carries a hidden suffix until here.
pub fn shown_name(name: &str) -> &str {
    name.split('\u{1}').next().unwrap_or(name)
}

/// The text of every value, as by `toString`.
pub(crate) fn texts(field: &Field, array: &ArrayRef) -> Result<StringArray> {
    let column = Column::new(field, array)?;
    let mut builder = StringBuilder::with_capacity(array.len(), array.len() * 8);
    let mut text = Vec::new();
    for row in 0..array.len() {
        if column.is_null(row) {
            builder.append_null();
            continue;
        }
        text.clear();
        write_cell(&column, row, Style::Raw, &mut text);
        builder.append_value(String::from_utf8_lossy(&text));
    }
    Ok(builder.finish())
}
