//! `tupleElement(t, 1)`, `tupleElement(t, 'name')`, also written `t.1` and `t.name`; for an array of tuples, an array
//! of elements.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray};
use datafusion::arrow::compute::nullif;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::{self, check_count};
use super::numbers::{rows, shaped};
use super::planner::constant_text;
use crate::error::Error;
use crate::types::plain_name;

/// The function. The rewriting turns the element's place into a string literal, known during planning.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TupleElement {
    signature: Signature,
}

impl Default for TupleElement {
    fn default() -> Self {
        Self { signature: arguments::any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TupleElement {
    fn name(&self) -> &str {
        "tupleElement"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type of an element needs its name".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 2..=2)?;
        let tuple = &args.arg_fields[0];
        let Some(element) = constant_text(args.scalar_arguments[1]) else {
            let message = "The second argument of function tupleElement must be a constant name or place";
            return Err(Error::illegal_type(message).into());
        };
        if let DataType::List(item) = tuple.data_type() {
            let item = element_of(item, element)?.with_name("item");
            return Ok(Arc::new(Field::new(
                self.name(),
                DataType::List(Arc::new(item)),
                tuple.is_nullable(),
            )));
        }
        Ok(Arc::new(element_of(tuple, element)?))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ColumnarValue::Scalar(element) = &args.args[1] else {
            return Err(DataFusionError::Internal("the element's name is a constant".into()));
        };
        let tuple = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        let element = constant_text(Some(element)).unwrap_or_default();
        let column: ArrayRef = match (tuple.as_list_opt::<i32>(), args.return_type()) {
            (Some(list), DataType::List(item)) => {
                let (ends, nulls) = (list.offsets().clone(), list.nulls().cloned());
                let items = column_of(list.values(), element)?;
                Arc::new(ListArray::try_new(Arc::clone(item), ends, items, nulls)?)
            }
            _ => column_of(&tuple, element)?,
        };
        shaped(column, &args.args)
    }
}

/// The field of an element.
fn element_of(tuple: &FieldRef, element: &str) -> Result<Field> {
    let (_, field) = find(tuple.data_type(), element)?;
    let nullable = field.is_nullable() || tuple.is_nullable();
    Ok(field.as_ref().clone().with_nullable(nullable))
}

fn column_of(tuple: &ArrayRef, element: &str) -> Result<ArrayRef> {
    let (place, _) = find(tuple.data_type(), element)?;
    let column = tuple.as_struct().column(place);
    Ok(match tuple.logical_nulls() {
        None => Arc::clone(column),
        Some(nulls) => nullif(column, &(!nulls.inner()).into())?,
    })
}

/// An element by its name, or by its place counted from 1.
fn find<'a>(tuple: &'a DataType, element: &str) -> Result<(usize, &'a Arc<Field>), Error> {
    let DataType::Struct(fields) = tuple else {
        let given = plain_name(tuple);
        let hint = if given.starts_with("Map(") { ": the value of a key is map[key]" } else { "" };
        return Err(Error::illegal_type(format!(
            "First argument for function tupleElement must be Tuple. Actual {given}{hint}"
        )));
    };
    if let Some(found) = fields.find(element) {
        return Ok(found);
    }
    let Ok(place) = element.parse::<usize>() else {
        return Err(Error::not_found_column(format!("Tuple doesn't have element with name '{element}'")));
    };
    let index = place.checked_sub(1).filter(|&index| index < fields.len());
    index.map(|index| (index, &fields[index])).ok_or_else(|| {
        Error::argument_out_of_bound(format!("Tuple doesn't have element with index '{place}'"))
    })
}
