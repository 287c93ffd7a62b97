//! Converts a query's keys to the dictionary's key columns.

use std::net::Ipv4Addr;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryArray, new_null_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, UInt32Type};
use datafusion::logical_expr::ColumnarValue;
use granary_dialect::types::{is_wide, plain_field_name, plain_name};
use granary_dialect::{Error, Result};
use granary_dict::LookupKey;

use super::call::Call;
use super::converted::{check_truth, converted};

/// The key columns of a batch.
pub struct Keys {
    pub columns: Vec<ArrayRef>,
    /// Rows with a NULL key where the dictionary's cannot be NULL, or a NULL value in a range: their answer is NULL.
    pub nulls: Option<NullBuffer>,
}

/// Splits the arguments that are looked up into parts and casts these. Columns of the right type are passed on as they
/// are.
pub fn keys(call: &Call, fields: &[FieldRef], arguments: &[ColumnarValue], rows: usize) -> Result<Keys> {
    let definition = call.dictionary.definition();
    let wanted: Vec<Field> =
        definition.lookup_columns().iter().map(|column| column.data_type.to_field(&column.name)).collect();
    let key = arguments[0].to_array(rows)?;
    let (key_fields, parts): (Vec<FieldRef>, Vec<ArrayRef>) = match key.data_type() {
        DataType::Struct(fields) => (fields.to_vec(), key.as_struct().columns().to_vec()),
        // NULL is no tuple, and a key of no dictionary.
        DataType::Null => {
            let parts = wanted.len() + 1 - arguments.len();
            (vec![Arc::clone(&fields[0]); parts], vec![Arc::clone(&key); parts])
        }
        _ => (vec![Arc::clone(&fields[0])], vec![Arc::clone(&key)]),
    };
    let tuple = matches!(key.data_type(), DataType::Struct(_));
    let is_list = |data_type: &DataType| matches!(data_type, DataType::List(_) | DataType::LargeList(_));
    let unwanted =
        |(part, wanted): (&ArrayRef, &Field)| is_list(part.data_type()) && !is_list(wanted.data_type());
    if parts.len() + arguments.len() - 1 != wanted.len()
        || (tuple && call.has_simple_key())
        || parts.iter().zip(&wanted).any(unwanted)
    {
        return Err(wrong_key(call, key.data_type()));
    }
    let mut nulls = None;
    let mut columns = Vec::with_capacity(wanted.len());
    for ((wanted, field), part) in wanted.iter().zip(&key_fields).zip(&parts) {
        if tuple && !wanted.is_nullable() && part.logical_null_count() > 0 {
            return Err(null_part(part, &arguments[0], wanted));
        }
        // A NULL alone names no row; within a tuple it is a value.
        if !tuple || !wanted.is_nullable() {
            nulls = NullBuffer::union(nulls.as_ref(), part.logical_nulls().as_ref());
        }
        check_truth(field, part, wanted)?;
        columns.push(match definition.layout.lookup_key() {
            LookupKey::Address => addresses(part)?,
            LookupKey::Point => coordinates(converted(field, part, wanted)?)?,
            LookupKey::Key | LookupKey::KeyInRange | LookupKey::Text => converted(field, part, wanted)?,
        });
    }
    if let ([_, field], [_, argument]) = (fields, arguments) {
        let in_range = argument.to_array(rows)?;
        if in_range.data_type().is_string() || is_wide(field) {
            let given = plain_field_name(field);
            return Err(Error::illegal_column(format!(
                "Illegal type {given} of the argument behind the key: it must be convertible to Int64"
            )));
        }
        nulls = NullBuffer::union(nulls.as_ref(), in_range.logical_nulls().as_ref());
        columns.push(converted(field, &in_range, &wanted[parts.len()])?);
    }
    Ok(Keys { columns, nulls: nulls.filter(|nulls| nulls.null_count() > 0) })
}

/// Addresses of either family as IPv6. Nothing else is converted, as in ClickHouse.
fn addresses(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::FixedSizeBinary(16) => Ok(Arc::clone(array)),
        DataType::Null => Ok(new_null_array(&DataType::FixedSizeBinary(16), array.len())),
        DataType::UInt32 => {
            let mapped = |address: u32| Ipv4Addr::from_bits(address).to_ipv6_mapped().octets();
            let addresses = array.as_primitive::<UInt32Type>().iter().map(|address| address.map(mapped));
            Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(addresses, 16)?))
        }
        other => Err(Error::type_mismatch(format!(
            "Key does not match, expected either `IPv4` (`UInt32`) or `IPv6` (`FixedString(16)`), not {}",
            plain_name(other)
        ))),
    }
}

/// Refuses coordinates that are not finite.
fn coordinates(array: ArrayRef) -> Result<ArrayRef> {
    let points = array.as_primitive::<Float64Type>();
    let is_wrong = |coordinate: &f64| !coordinate.is_finite();
    match points.iter().flatten().find(is_wrong) {
        None => Ok(array),
        Some(wrong) => {
            let what = if wrong.is_nan() { "NaN" } else { "infinite" };
            Err(Error::bad_arguments(format!("PolygonDictionary input point component must not be {what}")))
        }
    }
}

/// The error for NULL within a tuple, where the dictionary's key has none.
fn null_part(part: &ArrayRef, argument: &ColumnarValue, wanted: &Field) -> Error {
    let message =
        format!("Cannot convert NULL to a non-nullable type: {} of the key has none", wanted.name());
    match argument {
        ColumnarValue::Array(_) if !part.data_type().is_null() => Error::cannot_insert_null(message),
        _ => Error::cannot_convert_type(message),
    }
}

fn wrong_key(call: &Call, given: &DataType) -> Error {
    let definition = call.dictionary.definition();
    let (name, mut key) = (definition.full_name(), definition.lookup_columns());
    key.truncate(key.len() + 1 - call.key_argument_count());
    let wanted: Vec<String> =
        key.iter().map(|column| format!("{} {}", column.name, column.data_type)).collect();
    let (wanted_count, wanted) = (wanted.len(), wanted.join(", "));
    let message = format!("The key of dictionary {name} is ({wanted}), not {}", plain_name(given));
    // A tuple of another length is ClickHouse's TYPE_MISMATCH, a wrong type within one is not.
    match given {
        DataType::Struct(items) if !call.has_simple_key() && items.len() != wanted_count => {
            Error::type_mismatch(message)
        }
        _ => Error::illegal_type(message),
    }
}
