//! `length(x)`: bytes of a string, items of an array or a map; `empty(x)` and `notEmpty(x)`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt8Array, UInt64Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::{self, check_count};
use super::numbers::{rows, shaped};
use crate::error::Error;
use crate::types::plain_name;

/// The question about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LengthFunction {
    /// Its length.
    Length,
    /// Whether it is empty.
    Empty,
    /// Whether it is not empty.
    NotEmpty,
}

pub const LENGTH_FUNCTIONS: [LengthFunction; 3] =
    [LengthFunction::Length, LengthFunction::Empty, LengthFunction::NotEmpty];

impl LengthFunction {
    pub fn name(self) -> &'static str {
        match self {
            LengthFunction::Length => "length",
            LengthFunction::Empty => "empty",
            LengthFunction::NotEmpty => "notEmpty",
        }
    }

    fn answer_type(self) -> DataType {
        match self {
            LengthFunction::Length => DataType::UInt64,
            LengthFunction::Empty | LengthFunction::NotEmpty => DataType::UInt8,
        }
    }
}

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Length {
    function: LengthFunction,
    signature: Signature,
}

impl Length {
    pub fn new(function: LengthFunction) -> Self {
        Self { function, signature: arguments::any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Length {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match &arguments[0] {
            DataType::List(_) | DataType::Map(..) | DataType::Null => Ok(self.function.answer_type()),
            text if text.is_string() => Ok(self.function.answer_type()),
            other => {
                let (given, name) = (plain_name(other), self.name());
                Err(Error::illegal_type(format!("Illegal type {given} of argument of function {name}"))
                    .into())
            }
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 1..=1)?;
        let given = &args.arg_fields[0];
        let data_type = self.return_type(&[given.data_type().clone()])?;
        let nullable = given.is_nullable() || given.data_type().is_null();
        Ok(Arc::new(Field::new(self.name(), data_type, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        let lengths = match array.data_type() {
            DataType::List(_) => between(array.as_list::<i32>().offsets()),
            DataType::Map(..) => between(array.as_map().offsets()),
            _ => between(cast(&array, &DataType::Utf8)?.as_string::<i32>().offsets()),
        };
        let nulls = array.logical_nulls();
        let flags = |is: fn(u64) -> bool| {
            UInt8Array::new(lengths.iter().map(|&length| u8::from(is(length))).collect(), nulls.clone())
        };
        let answer: ArrayRef = match self.function {
            LengthFunction::Length => Arc::new(UInt64Array::new(lengths.into(), nulls)),
            LengthFunction::Empty => Arc::new(flags(|length| length == 0)),
            LengthFunction::NotEmpty => Arc::new(flags(|length| length > 0)),
        };
        shaped(answer, &args.args)
    }
}

fn between(offsets: &OffsetBuffer<i32>) -> Vec<u64> {
    offsets.windows(2).map(|ends| (ends[1] - ends[0]) as u64).collect()
}
