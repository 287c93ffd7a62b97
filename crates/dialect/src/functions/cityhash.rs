//! `cityHash64(a, b, ..)`, bit for bit ClickHouse's: CityHash 1.0.2 for texts, MurmurHash3's finalizer for numbers, and
//! CityHash's mixture for the hashes of several arguments.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};

use super::arguments;
use super::hash::int_hash_64;
use super::numbers::{array_bits, rows, shaped};
use super::scalar::Scalar;
use crate::error::Error;
use crate::types::{declared, fixed_bytes, is_bounded, type_name};

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;
const K3: u64 = 0xc949_d7c7_509e_6557;
const MUL: u64 = 0x9ddf_ea08_eb38_2d69;

/// The hash of no arguments.
const NOTHING: u64 = 16_324_913_028_386_710_556;

/// CityHash64, version 1.0.2.
pub fn city_hash_64(text: &[u8]) -> u64 {
    let length = text.len();
    match length {
        0..=16 => short(text),
        17..=32 => {
            let a = word(text, 0).wrapping_mul(K1);
            let b = word(text, 8);
            let c = word(text, length - 8).wrapping_mul(K2);
            let d = word(text, length - 16).wrapping_mul(K0);
            mixed(
                a.wrapping_sub(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d),
                a.wrapping_add((b ^ K3).rotate_right(20)).wrapping_sub(c).wrapping_add(length as u64),
            )
        }
        33..=64 => middle(text),
        _ => long(text),
    }
}

fn word(text: &[u8], at: usize) -> u64 {
    text[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn half(text: &[u8], at: usize) -> u64 {
    text[at..at + 4].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn shift_mix(value: u64) -> u64 {
    value ^ value >> 47
}

/// Combines two hashes.
fn mixed(low: u64, high: u64) -> u64 {
    let a = shift_mix((low ^ high).wrapping_mul(MUL));
    shift_mix((high ^ a).wrapping_mul(MUL)).wrapping_mul(MUL)
}

fn short(text: &[u8]) -> u64 {
    let length = text.len();
    match length {
        0 => K2,
        1..=3 => {
            let [a, b, c] = [0, length >> 1, length - 1].map(|at| u64::from(text[at]));
            let (y, z) = (a + (b << 8), length as u64 + (c << 2));
            shift_mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K3)).wrapping_mul(K2)
        }
        4..=8 => mixed((length as u64).wrapping_add(half(text, 0) << 3), half(text, length - 4)),
        _ => {
            let (a, b) = (word(text, 0), word(text, length - 8));
            mixed(a, b.wrapping_add(length as u64).rotate_right(length as u32)) ^ b
        }
    }
}

fn middle(text: &[u8]) -> u64 {
    let length = text.len();
    let sums = |mut a: u64, z: u64, second: usize, third: usize| {
        let mut b = a.wrapping_add(z).rotate_right(52);
        let mut c = a.rotate_right(37);
        a = a.wrapping_add(word(text, second));
        c = c.wrapping_add(a.rotate_right(7));
        a = a.wrapping_add(word(text, third));
        b = b.wrapping_add(a.rotate_right(31)).wrapping_add(c);
        (a.wrapping_add(z), b)
    };
    let first =
        (length as u64).wrapping_add(word(text, length - 16)).wrapping_mul(K0).wrapping_add(word(text, 0));
    let (vf, vs) = sums(first, word(text, 24), 8, 16);
    let first = word(text, 16).wrapping_add(word(text, length - 32));
    let (wf, ws) = sums(first, word(text, length - 8), length - 24, length - 16);
    let r = vf.wrapping_add(ws).wrapping_mul(K2).wrapping_add(wf.wrapping_add(vs).wrapping_mul(K0));
    shift_mix(shift_mix(r).wrapping_mul(K0).wrapping_add(vs)).wrapping_mul(K2)
}

fn weak(text: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let [w, x, y, z] = [0, 8, 16, 24].map(|offset| word(text, at + offset));
    let a = a.wrapping_add(w);
    let b = b.wrapping_add(a).wrapping_add(z).rotate_right(21);
    let sum = a.wrapping_add(x).wrapping_add(y);
    (sum.wrapping_add(z), b.wrapping_add(sum.rotate_right(44)).wrapping_add(a))
}

fn long(text: &[u8]) -> u64 {
    let length = text.len();
    let mut x = word(text, 0);
    let mut y = word(text, length - 16) ^ K1;
    let mut z = word(text, length - 56) ^ K0;
    let mut v = weak(text, length - 64, length as u64, y);
    let mut w = weak(text, length - 32, (length as u64).wrapping_mul(K1), K0);
    z = z.wrapping_add(shift_mix(v.1).wrapping_mul(K1));
    x = z.wrapping_add(x).rotate_right(39).wrapping_mul(K1);
    y = y.rotate_right(33).wrapping_mul(K1);
    for at in (0..(length - 1) & !63).step_by(64) {
        let sum = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(word(text, at + 16));
        x = sum.rotate_right(37).wrapping_mul(K1);
        y = y.wrapping_add(v.1).wrapping_add(word(text, at + 48)).rotate_right(42).wrapping_mul(K1);
        x ^= w.1;
        y ^= v.0;
        z = (z ^ w.0).rotate_right(33);
        v = weak(text, at, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        w = weak(text, at + 32, z.wrapping_add(w.1), y);
        std::mem::swap(&mut z, &mut x);
    }
    let low = mixed(v.0, w.0).wrapping_add(shift_mix(y).wrapping_mul(K1)).wrapping_add(z);
    mixed(low, mixed(v.1, w.1).wrapping_add(x))
}

const NAME: &str = "cityHash64";

/// The function.
pub fn city_hash() -> ScalarUDF {
    Scalar::udf(NAME, arguments::any(Volatility::Immutable), field, invoke)
}
fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    if args.arg_fields.iter().any(|field| field.data_type().is_null()) {
        return Ok(Arc::new(Field::new(NAME, DataType::Null, true)));
    }
    args.arg_fields.iter().try_for_each(check)?;
    let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
    Ok(Arc::new(Field::new(NAME, DataType::UInt64, nullable)))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = rows(&args.args, args.number_rows);
    if args.return_field.data_type().is_null() {
        let nothing = datafusion::arrow::array::new_null_array(&DataType::Null, rows);
        return shaped(nothing, &args.args);
    }
    let mut hashes: Option<Vec<u64>> = None;
    let mut nulls = None;
    for (given, field) in args.args.iter().zip(&args.arg_fields) {
        let values = given.to_array(rows)?;
        nulls = NullBuffer::union(nulls.as_ref(), values.logical_nulls().as_ref());
        add(&mut hashes, field, &values)?;
    }
    let hashes = hashes.unwrap_or_else(|| vec![NOTHING; rows]);
    shaped(Arc::new(UInt64Array::new(hashes.into(), nulls)) as ArrayRef, &args.args)
}

/// Refuses types whose hashes are not implemented.
fn check(field: &FieldRef) -> Result<()> {
    let is_known = match field.data_type() {
        DataType::Struct(fields) => {
            let nullable = fields.iter().any(|field| field.is_nullable());
            return if nullable { Err(illegal(field)) } else { fields.iter().try_for_each(check) };
        }
        DataType::Date32 => is_bounded(field),
        DataType::Timestamp(..) => is_bounded(field),
        data_type if data_type.is_integer() => declared(field).is_none(),
        data_type => data_type.is_string() || data_type.is_floating() || data_type == &DataType::Boolean,
    };
    if is_known { Ok(()) } else { Err(illegal(field)) }
}

fn illegal(field: &Field) -> DataFusionError {
    Error::illegal_type(format!("Illegal type {} of argument of function cityHash64 here", type_name(field)))
        .into()
}

/// Mixes the hashes of a column into those of the columns before it; a tuple is its elements.
fn add(hashes: &mut Option<Vec<u64>>, field: &Field, values: &ArrayRef) -> Result<()> {
    if let (DataType::Struct(fields), Some(tuple)) = (field.data_type(), values.as_struct_opt()) {
        return fields.iter().zip(tuple.columns()).try_for_each(|(field, column)| add(hashes, field, column));
    }
    let next = hashed(field, values)?;
    match hashes {
        None => *hashes = Some(next),
        Some(hashes) => hashes.iter_mut().zip(next).for_each(|(hash, next)| *hash = mixed(*hash, next)),
    }
    Ok(())
}

fn hashed(field: &Field, values: &ArrayRef) -> Result<Vec<u64>> {
    match values.data_type() {
        DataType::Float32 => {
            let floats = values.as_primitive::<Float32Type>().values();
            return Ok(floats.iter().map(|float| int_hash_64(u64::from(float.to_bits()))).collect());
        }
        DataType::Float64 => {
            let floats = values.as_primitive::<Float64Type>().values();
            return Ok(floats.iter().map(|float| int_hash_64(float.to_bits())).collect());
        }
        _ => {}
    }
    if let Some(bits) = array_bits(values) {
        // A number is hashed with as many bytes as ClickHouse's type has.
        let bytes = match values.data_type() {
            DataType::Date32 => 2,
            DataType::Timestamp(..) => 4,
            DataType::Boolean => 1,
            other => other.primitive_width().unwrap_or(8),
        };
        let mask = u64::MAX >> (64 - 8 * bytes);
        return Ok(bits.iter().map(|bits| int_hash_64(bits & mask)).collect());
    }
    let texts = cast(values, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let width = fixed_bytes(field).unwrap_or(0);
    let hash = |text: Option<&str>| {
        let mut bytes = text.unwrap_or_default().as_bytes().to_vec();
        bytes.resize(bytes.len().max(width), 0);
        city_hash_64(&bytes)
    };
    Ok(texts.iter().map(hash).collect())
}
