//! Which fields of a document are a dictionary's columns.

use super::filter;
use super::value::{cell, push, unreadable};
use crate::definition::{KeyColumn, ObjectId, Structure};
use crate::error::DictError;
use crate::row::{Cell, Raw};
use crate::source::rows::Rows;
use crate::types::{DataType, Shape};
use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument};

/// MongoDB's own key, which comes with every document unless it is excluded.
const OWN_KEY: &str = "_id";

/// The columns, each with its way through a document.
pub(super) struct DocumentFields {
    keys: Vec<KeyColumn>,
    attributes: Vec<(String, DataType)>,
}

impl DocumentFields {
    pub fn new(structure: &Structure) -> DocumentFields {
        let attributes = structure.attributes.iter().map(|a| (a.name.clone(), a.data_type.clone()));
        DocumentFields { keys: structure.key_columns(), attributes: attributes.collect() }
    }

    /// Returns the fields of the key alone.
    pub fn of_key(structure: &Structure) -> DocumentFields {
        DocumentFields { keys: structure.key_columns(), attributes: Vec::new() }
    }

    /// The projection for MongoDB. A field within another that is sent comes with that one, and MongoDB refuses a
    /// projection of both.
    pub fn projection(&self) -> Document {
        let names = self.keys.iter().map(|key| &key.name).chain(self.attributes.iter().map(|(name, _)| name));
        let names: Vec<&str> = names.map(String::as_str).collect();
        let within =
            |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
        let sent = names.iter().filter(|name| !names.iter().any(|outer| within(name, outer)));
        let mut projection: Document = sent.map(|name| (name.to_string(), Bson::Int32(1))).collect();
        if !projection.keys().any(|name| name == OWN_KEY || within(name, OWN_KEY)) {
            projection.insert(OWN_KEY, 0);
        }
        projection
    }

    /// Adds a document, unless no lookup can find it by its key.
    pub fn push(&self, document: &RawDocument, rows: &mut Rows) -> Result<(), DictError> {
        let mut key = Vec::with_capacity(self.keys.len());
        for (column, wanted) in self.keys.iter().enumerate() {
            let value = find(document, &wanted.name).map_err(|e| rows.within(column, e))?;
            match key_cell(wanted, value) {
                Some(cell) => key.push(cell),
                None => return Ok(()),
            }
        }
        key.iter().enumerate().for_each(|(column, cell)| rows.column(column).push_cell(cell));
        for (place, (name, _)) in self.attributes.iter().enumerate() {
            let column = self.keys.len() + place;
            let data_type = DataType::Nullable(Box::new(rows.data_type(column).inner().clone()));
            find(document, name)
                .and_then(|value| push(rows.column(column), &data_type, value))
                .map_err(|e| rows.within(column, e))?;
        }
        Ok(())
    }
}

/// The value of a field, or of one in nested documents by its path.
pub(super) fn find<'d>(document: &'d RawDocument, name: &str) -> Result<Option<RawBsonRef<'d>>, DictError> {
    let Some((outer, inner)) = name.split_once('.') else {
        return document.get(name).map_err(|e| unreadable(&e));
    };
    match document.get(outer).map_err(|e| unreadable(&e))? {
        Some(RawBsonRef::Document(within)) => find(within, inner),
        _ => Ok(None),
    }
}

/// A key as a lookup has it; `None`: no lookup asks for this value.
fn key_cell(column: &KeyColumn, value: Option<RawBsonRef<'_>>) -> Option<Cell> {
    let data_type = column.data_type.inner();
    match value {
        None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => {
            column.data_type.is_nullable().then_some(Cell::Null)
        }
        // Equal numbers are equal keys, whatever their types.
        Some(
            value @ (RawBsonRef::Int32(_)
            | RawBsonRef::Int64(_)
            | RawBsonRef::Double(_)
            | RawBsonRef::Decimal128(_)),
        ) => (*data_type != DataType::String && *data_type != DataType::Bool)
            .then(|| cell(data_type, value).ok())?,
        Some(RawBsonRef::String(text)) if *data_type == DataType::String => {
            (column.object_id == ObjectId::No).then(|| Cell::Text(text.to_string()))
        }
        Some(RawBsonRef::Document(_) | RawBsonRef::Array(_)) => None,
        Some(value) => {
            let cell = cell(data_type, value).ok()?;
            let raw = match (&cell, data_type.shape()) {
                (Cell::Text(text), _) => Raw::Text(text.as_bytes()),
                (Cell::Fixed(raw), Shape::Bit) => Raw::Bit(raw[0] != 0),
                (Cell::Fixed(raw), Shape::Fixed(width)) => Raw::Fixed(&raw[..width]),
                _ => return None,
            };
            let asked = filter::value(column, raw)?;
            (Some(asked) == Bson::try_from(value).ok()).then_some(cell)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_create;
    use mongodb::bson::doc;

    #[test]
    fn only_columns_are_sent_and_none_of_them_twice() {
        for (columns, key, sent) in [
            ("id UInt64, v String", "id", doc! { "id": 1, "v": 1, "_id": 0 }),
            ("_id UInt64, v String", "_id", doc! { "_id": 1, "v": 1 }),
            ("`_id.a` UInt64, v String", "`_id.a`", doc! { "_id.a": 1, "v": 1 }),
            (
                "`a.b` UInt64, a String, `a.b.c` String, ab String",
                "`a.b`",
                doc! { "a": 1, "ab": 1, "_id": 0 },
            ),
        ] {
            let sql = format!(
                "CREATE DICTIONARY d ({columns}) PRIMARY KEY {key} SOURCE(MONGODB(DB 'd' COLLECTION 'c')) LAYOUT(DIRECT())"
            );
            let structure = parse_create(&sql).unwrap().definition.structure;
            assert_eq!(DocumentFields::new(&structure).projection(), sent);
        }
    }
}
