//! Keys as a query has them, made into keys as the dictionary wants them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field};

use super::call::Call;
use crate::error::{Error, Result};
use crate::functions::convert::convert;
use crate::functions::numbers::{array_bits, from_bits};
use crate::functions::uuid;
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
    if parts.len() != wanted.len() || (tuple && call.has_simple_key()) {
        return Err(wrong_key(call, argument.data_type()));
    }
    let mut nulls = None;
    let mut columns = Vec::with_capacity(parts.len());
    for ((wanted, field), part) in wanted.iter().zip(&fields).zip(&parts) {
        if !wanted.is_nullable() {
            nulls = NullBuffer::union(nulls.as_ref(), part.logical_nulls().as_ref());
        }
        columns.push(key_column(wanted, field, part)?);
    }
    Ok(Keys { columns, nulls: nulls.filter(|nulls| nulls.null_count() > 0) })
}

fn wrong_key(call: &Call, given: &DataType) -> Error {
    let definition = call.dictionary.definition();
    let (name, key) = (definition.full_name(), definition.structure.key_columns());
    let wanted: Vec<String> =
        key.iter().map(|column| format!("{} {}", column.name, column.data_type)).collect();
    let wanted = wanted.join(", ");
    let message = format!("The key of dictionary {name} is ({wanted}), not {}", plain_name(given));
    // A tuple of another length is ClickHouse's TYPE_MISMATCH.
    match given {
        DataType::Struct(_) if !call.has_simple_key() => Error::type_mismatch(message),
        _ => Error::illegal_type(message),
    }
}

fn key_column(wanted: &Field, field: &Field, part: &ArrayRef) -> Result<ArrayRef> {
    let (from, to) = (part.data_type(), wanted.data_type());
    if from == to {
        return Ok(Arc::clone(part));
    }
    match (from, to) {
        (DataType::Null, _) => Ok(datafusion::arrow::array::new_null_array(to, part.len())),
        (_, DataType::FixedSizeBinary(16)) => Ok(uuid::parse(part)?),
        (from, to) if from.is_integer() && to.is_integer() => integers(wanted, part),
        (DataType::Boolean, to) if to.is_integer() => Ok(convert(field, part, to)?),
        (DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8, _) => Ok(convert(field, part, to)?),
        (from, to) => {
            let options = CastOptions { safe: false, ..Default::default() };
            cast_with_options(part, to, &options).map_err(|_| cannot_convert(from, wanted))
        }
    }
}

/// Integers must keep their value: -1 is not the key 18446744073709551615.
fn integers(wanted: &Field, part: &ArrayRef) -> Result<ArrayRef> {
    let (from, to) = (part.data_type(), wanted.data_type());
    let bits = array_bits(part).unwrap_or_default();
    let nulls = part.logical_nulls();
    let (low, high) = range(to);
    let fits = |value: u64| {
        let wide = if from.is_signed_integer() { i128::from(value as i64) } else { i128::from(value) };
        (low..=high).contains(&wide)
    };
    let always = range(from).0 >= low && range(from).1 <= high;
    let good = always
        || match &nulls {
            None => bits.iter().all(|&value| fits(value)),
            Some(nulls) => bits.iter().zip(nulls).all(|(&value, valid)| !valid || fits(value)),
        };
    match from_bits(bits, nulls, to).filter(|_| good) {
        Some(converted) => Ok(converted),
        None => Err(cannot_convert(from, wanted)),
    }
}

fn range(data_type: &DataType) -> (i128, i128) {
    match data_type {
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}

fn cannot_convert(from: &DataType, wanted: &Field) -> Error {
    let (from, to) = (plain_name(from), plain_name(wanted.data_type()));
    Error::cannot_convert_type(format!(
        "Value in column {from} cannot be safely converted into type {to} of key {}",
        wanted.name()
    ))
}
