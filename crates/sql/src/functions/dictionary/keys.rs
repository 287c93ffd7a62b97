//! Keys as a query has them, made into keys as the dictionary wants them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field};

use super::call::Call;
use crate::error::{Error, Result};
use crate::functions::exact::exact;
use crate::types::plain_name;

/// The key columns of a batch.
pub struct Keys {
    pub columns: Vec<ArrayRef>,
    /// Rows whose key is NULL where the dictionary's cannot be: their answer is NULL.
    pub nulls: Option<NullBuffer>,
}

/// Takes the key argument apart and casts its parts. Columns that have the right type are passed on as they are.
pub fn keys(call: &Call, field: &Field, argument: &ArrayRef) -> Result<Keys> {
    let wanted = call.dictionary.definition().structure.key_fields();
    let (fields, parts): (Vec<Field>, Vec<ArrayRef>) = match argument.data_type() {
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| field.as_ref().clone()).collect();
            (fields, argument.as_struct().columns().to_vec())
        }
        _ => (vec![field.clone()], vec![Arc::clone(argument)]),
    };
    let tuple = matches!(argument.data_type(), DataType::Struct(_));
    let is_list = |data_type: &DataType| matches!(data_type, DataType::List(_) | DataType::LargeList(_));
    let unwanted =
        |(part, wanted): (&ArrayRef, &Field)| is_list(part.data_type()) && !is_list(wanted.data_type());
    if parts.len() != wanted.len()
        || (tuple && call.has_simple_key())
        || parts.iter().zip(&wanted).any(unwanted)
    {
        return Err(wrong_key(call, argument.data_type()));
    }
    let mut nulls = None;
    let mut columns = Vec::with_capacity(parts.len());
    for ((wanted, field), part) in wanted.iter().zip(&fields).zip(&parts) {
        if !wanted.is_nullable() {
            nulls = NullBuffer::union(nulls.as_ref(), part.logical_nulls().as_ref());
        }
        columns.push(exact(field, part, wanted)?);
    }
    Ok(Keys { columns, nulls: nulls.filter(|nulls| nulls.null_count() > 0) })
}

fn wrong_key(call: &Call, given: &DataType) -> Error {
    let definition = call.dictionary.definition();
    let (name, key) = (definition.full_name(), definition.structure.key_columns());
    let wanted: Vec<String> =
        key.iter().map(|column| format!("{} {}", column.name, column.data_type)).collect();
    let (wanted_count, wanted) = (wanted.len(), wanted.join(", "));
    let message = format!("The key of dictionary {name} is ({wanted}), not {}", plain_name(given));
    // A tuple of another length is ClickHouse's TYPE_MISMATCH, one with another type in it is not.
    match given {
        DataType::Struct(items) if !call.has_simple_key() && items.len() != wanted_count => {
            Error::type_mismatch(message)
        }
        _ => Error::illegal_type(message),
    }
}
