//! `system.columns`: those of tables in RAM, of views and of dictionaries.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::common::Result;
use granary_dialect::types::type_name;
use granary_dict::Times;

use super::dictionary_table::columns_of;
use super::system::{batch, texts};
use super::{Catalogue, Entry};
use crate::tables::provider::Table;

struct Column {
    database: String,
    table: String,
    name: String,
    data_type: String,
    position: u64,
    /// The expression behind DEFAULT.
    default: Option<String>,
}

/// ClickHouse's first columns of this table, as far as they apply here, and the comment, which is always empty.
pub fn columns(catalogue: &Catalogue) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for database in catalogue.databases() {
        for (table, entry) in catalogue.entries(&database) {
            rows.extend(columns_of_entry(&database, &table, &entry));
        }
    }
    let text = |f: &dyn Fn(&Column) -> String| texts(rows.iter().map(f));
    let kind = |row: &Column| row.default.as_ref().map(|_| "DEFAULT".to_owned()).unwrap_or_default();
    batch(vec![
        ("database", text(&|row| row.database.clone())),
        ("table", text(&|row| row.table.clone())),
        ("name", text(&|row| row.name.clone())),
        ("type", text(&|row| row.data_type.clone())),
        ("position", Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.position)))),
        ("default_kind", text(&kind)),
        ("default_expression", text(&|row| row.default.clone().unwrap_or_default())),
        ("comment", text(&|_| String::new())),
    ])
}

fn columns_of_entry(database: &str, table: &str, entry: &Entry) -> Vec<Column> {
    let schema: SchemaRef = match entry {
        Entry::Table(local) => local.schema(),
        other => match other.definition() {
            Some(definition) => columns_of(definition, Times::Hidden).0,
            None => return Vec::new(),
        },
    };
    let default = |name: &str| match entry {
        Entry::Table(local) => local.defaults.iter().find(|(column, _)| column == name),
        _ => None,
    };
    let column = |(place, field): (usize, &FieldRef)| Column {
        database: database.to_owned(),
        table: table.to_owned(),
        name: field.name().clone(),
        data_type: type_name(field),
        position: place as u64 + 1,
        default: default(field.name()).map(|(_, expression)| expression.clone()),
    };
    schema.fields().iter().enumerate().map(column).collect()
}
