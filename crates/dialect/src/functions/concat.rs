//! `concat(a, b, ..)` and `concatWithSeparator(separator, a, b, ..)`: join values of any types to a text, or arrays to
//! an array. NULL if an argument is NULL.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder, new_null_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments;
use super::convert::convert;
use super::numbers::{expanded, rows, shaped};
use super::values::{self, ValueFunction};
use crate::error::Error;
use crate::types::{fixed_bytes, type_name};

/// The separator of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Joining {
    Directly,
    /// The first argument.
    BySeparator,
}

/// `concat` or `concatWithSeparator`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Concat {
    joining: Joining,
    signature: Signature,
}

impl Concat {
    pub fn new(joining: Joining) -> Self {
        Self { joining, signature: arguments::any(Volatility::Immutable) }
    }

    /// The function that joins arrays, if all arguments are arrays.
    fn of_arrays(&self, given: &[FieldRef]) -> Option<ValueFunction> {
        let are_arrays = given.iter().all(|field| matches!(field.data_type(), DataType::List(_)));
        let wanted = are_arrays && given.len() > 1 && self.joining == Joining::Directly;
        let function = values::all().find(|function| wanted && function.name() == "arrayConcat");
        function.map(ValueFunction::new)
    }
}

impl ScalarUDFImpl for Concat {
    fn name(&self) -> &str {
        match self.joining {
            Joining::Directly => "concat",
            Joining::BySeparator => "concatWithSeparator",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("the type of {} needs its arguments' fields", self.name())))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let given = args.arg_fields;
        arguments::check_count(self.name(), given.len(), 1..=usize::MAX)?;
        if self.joining == Joining::BySeparator && !given[0].data_type().is_string() {
            let what = "Illegal type of the separator of function concatWithSeparator: it must be String";
            return Err(Error::illegal_type(what).into());
        }
        if let Some(of_arrays) = self.of_arrays(given) {
            return of_arrays.return_field_from_args(args);
        }
        if let Some(fixed) = given.iter().find(|field| fixed_bytes(field).is_some()) {
            let what = format!(
                "Function {} does not take {} here: toString makes a String of it",
                self.name(),
                type_name(fixed)
            );
            return Err(Error::illegal_type(what).into());
        }
        if given.iter().any(|field| field.data_type().is_null()) {
            return Ok(Arc::new(Field::new(self.name(), DataType::Null, true)));
        }
        let nullable = given.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::Utf8, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(of_arrays) = self.of_arrays(&args.arg_fields) {
            return of_arrays.invoke_with_args(args);
        }
        let rows = rows(&args.args, args.number_rows);
        if args.return_field.data_type().is_null() {
            return shaped(new_null_array(&DataType::Null, rows), &args.args);
        }
        let text = |(given, field): (&ColumnarValue, &FieldRef)| {
            Ok(convert(field, &expanded(given, rows)?, &DataType::Utf8)?.as_string().clone())
        };
        let texts = args.args.iter().zip(&args.arg_fields).map(text).collect::<Result<Vec<StringArray>>>()?;
        let nulls = texts.iter().fold(None, |nulls, text| NullBuffer::union(nulls.as_ref(), text.nulls()));
        let (separator, parts) = match self.joining {
            Joining::Directly => (None, texts.as_slice()),
            Joining::BySeparator => (texts.first(), &texts[1..]),
        };
        let mut joined =
            StringBuilder::with_capacity(rows, parts.iter().map(|part| part.value_data().len()).sum());
        let mut whole = String::new();
        for row in 0..rows {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                joined.append_null();
                continue;
            }
            whole.clear();
            for (place, part) in parts.iter().enumerate() {
                if let Some(separator) = separator.filter(|_| place > 0) {
                    whole.push_str(separator.value(row));
                }
                whole.push_str(part.value(row));
            }
            joined.append_value(&whole);
        }
        shaped(Arc::new(joined.finish()) as ArrayRef, &args.args)
    }
}
