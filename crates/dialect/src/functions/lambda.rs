//! `arrayMap(x -> x + 1, array)`, which all functions with a lambda are rewritten to (see `rewrite/lambdas.rs`): the
//! lambda is evaluated once, over the items of all rows of a batch.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{take, take_arrays};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature,
    HigherOrderUDFImpl, LambdaParametersProgress, ValueOrLambda, Volatility,
};

use super::numbers::expanded;
use crate::error::Error;
use crate::types::type_name;

/// Its name.
pub const ARRAY_MAP: &str = "arrayMap";

/// The function: a lambda, and an array for each of its parameters.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ArrayMap {
    signature: HigherOrderSignature,
}

impl Default for ArrayMap {
    fn default() -> Self {
        Self { signature: HigherOrderSignature::variadic_any(Volatility::Immutable) }
    }
}

impl HigherOrderUDFImpl for ArrayMap {
    fn name(&self) -> &str {
        ARRAY_MAP
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn lambda_parameters(
        &self,
        _step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let items = values(fields).map(|field| item(field).map(Arc::clone)).collect::<Result<_>>()?;
        Ok(LambdaParametersProgress::Complete(vec![items]))
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let Some(ValueOrLambda::Lambda(result)) = args.arg_fields.first() else { return Err(no_lambda()) };
        let data_type = DataType::List(Arc::new(result.as_ref().clone().with_name("item")));
        let nullable = values(args.arg_fields).any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(ARRAY_MAP, data_type, nullable)))
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let Some(ValueOrLambda::Lambda(lambda)) = args.args.first() else { return Err(no_lambda()) };
        let DataType::List(item) = args.return_field.data_type() else { return Err(no_lambda()) };
        let arrays = values(&args.args)
            .map(|value| expanded(value, args.number_rows))
            .collect::<Result<Vec<ArrayRef>>>()?;
        let rows = RowLengths::of(&arrays)?;
        let items = arrays.iter().map(|array| rows.items(array.as_list())).collect::<Result<Vec<_>>>()?;
        let given: Vec<Box<dyn Fn() -> Result<ArrayRef>>> =
            items.into_iter().map(|items| Box::new(move || Ok(Arc::clone(&items))) as _).collect();
        let given: Vec<&dyn Fn() -> Result<ArrayRef>> = given.iter().map(AsRef::as_ref).collect();
        let row_of_item = rows.row_of_item();
        let results = lambda.evaluate(&given, |captured| Ok(take_arrays(captured, &row_of_item, None)?))?;
        let results = expanded(&results, row_of_item.len())?;
        let offsets = OffsetBuffer::from_lengths(rows.lengths);
        Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(
            Arc::clone(item),
            offsets,
            results,
            rows.nulls,
        )?)))
    }
}

fn values<V, L>(arguments: &[ValueOrLambda<V, L>]) -> impl Iterator<Item = &V> {
    arguments.iter().filter_map(|argument| match argument {
        ValueOrLambda::Value(value) => Some(value),
        ValueOrLambda::Lambda(_) => None,
    })
}

fn item(field: &FieldRef) -> Result<&FieldRef> {
    match field.data_type() {
        DataType::List(item) => Ok(item),
        _ => {
            let given = type_name(field);
            Err(Error::illegal_type(format!("A lambda takes the items of arrays, and {given} is none"))
                .into())
        }
    }
}

fn no_lambda() -> DataFusionError {
    Error::illegal_type("The first argument of function arrayMap must be a lambda").into()
}

/// Number of items of each row's arrays.
struct RowLengths {
    lengths: Vec<usize>,
    nulls: Option<NullBuffer>,
}

impl RowLengths {
    /// # Errors
    /// SIZES_OF_ARRAYS_DONT_MATCH if a row's arrays differ in length.
    fn of(arrays: &[ArrayRef]) -> Result<RowLengths> {
        let lists: Vec<&ListArray> = arrays.iter().map(|array| array.as_list()).collect();
        let Some((first, others)) = lists.split_first() else { return Err(no_lambda()) };
        let nulls = lists.iter().fold(None, |nulls, list| NullBuffer::union(nulls.as_ref(), list.nulls()));
        let mut lengths = Vec::with_capacity(first.len());
        for row in 0..first.len() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                lengths.push(0);
                continue;
            }
            let length = first.value_length(row);
            if others.iter().any(|other| other.value_length(row) != length) {
                let message = "Arrays passed to a function with a lambda must have equal sizes";
                return Err(Error::sizes_dont_match(message).into());
            }
            lengths.push(length as usize);
        }
        Ok(RowLengths { lengths, nulls })
    }

    /// The items of all rows, without others that may lie between them.
    fn items(&self, list: &ListArray) -> Result<ArrayRef> {
        let starts = list.value_offsets();
        let is_whole =
            self.nulls.is_none() && starts[0] == 0 && starts[list.len()] as usize == list.values().len();
        if is_whole {
            return Ok(Arc::clone(list.values()));
        }
        let of_row = |(row, length): (usize, &usize)| (starts[row] as u32..).take(*length);
        let places: UInt32Array = self.lengths.iter().enumerate().flat_map(of_row).map(Some).collect();
        Ok(take(list.values(), &places, None)?)
    }

    fn row_of_item(&self) -> UInt32Array {
        let of_row = |(row, length): (usize, &usize)| std::iter::repeat_n(row as u32, *length);
        UInt32Array::from_iter_values(self.lengths.iter().enumerate().flat_map(of_row))
    }
}
