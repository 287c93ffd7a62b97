//! Comparisons of arrays that have NULL or floats among their items: NULL and NaN are equal to themselves and greater than
//! everything else, and -0 is 0. Arrow takes NULL for the least, -0 for less than 0, and NaN by its sign.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StructArray, make_comparator,
};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::numbers::{rows, shaped, union};

/// One comparison as a function, whose name nobody can write.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ArrayOrder {
    operator: Operator,
    signature: Signature,
}

impl ArrayOrder {
    /// Of an operator that compares.
    pub fn new(operator: Operator) -> Self {
        Self { operator, signature: Signature::any(2, Volatility::Immutable) }
    }
}

/// Whether arrays of a type are compared otherwise than Arrow does it: they may have NULL or floats within.
pub fn has_own_order(data_type: &DataType) -> bool {
    let within = |field: &FieldRef| {
        field.is_nullable() || field.data_type().is_floating() || has_own_order(field.data_type())
    };
    match data_type {
        DataType::List(item) | DataType::Map(item, _) => within(item),
        DataType::Struct(fields) => fields.iter().any(within),
        _ => false,
    }
}

impl ScalarUDFImpl for ArrayOrder {
    fn name(&self) -> &str {
        match self.operator {
            Operator::Eq => "equals/array",
            Operator::NotEq => "notEquals/array",
            Operator::Lt => "less/array",
            Operator::LtEq => "lessOrEquals/array",
            Operator::Gt => "greater/array",
            _ => "greaterOrEquals/array",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::Boolean, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = rows(&args.args, args.number_rows);
        let [left, right] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("two arrays are compared".into()));
        };
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let (one, other) =
            BinaryTypeCoercer::new(left.data_type(), &self.operator, right.data_type()).get_input_types()?;
        let (left, right) = (ordered(&cast(&left, &one)?)?, ordered(&cast(&right, &other)?)?);
        let order = make_comparator(&left, &right, SortOptions { descending: false, nulls_first: false })?;
        let holds = |row: usize| {
            let order = order(row, row);
            match self.operator {
                Operator::Eq => order.is_eq(),
                Operator::NotEq => order.is_ne(),
                Operator::Lt => order.is_lt(),
                Operator::LtEq => order.is_le(),
                Operator::Gt => order.is_gt(),
                _ => order.is_ge(),
            }
        };
        let nulls = union(left.logical_nulls(), right.logical_nulls(), rows);
        let answers = BooleanArray::new(BooleanBuffer::collect_bool(rows, holds), nulls);
        shaped(Arc::new(answers), &args.args)
    }
}

/// The same values, of which -0 is 0, and every NaN the greatest.
fn ordered(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float32 => {
            let plain = |float: f32| if float.is_nan() { f32::NAN } else { float + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(plain))
        }
        DataType::Float64 => {
            let plain = |float: f64| if float.is_nan() { f64::NAN } else { float + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(plain))
        }
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, ordered(list.values())?, nulls)?)
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().map(ordered).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, array.nulls().cloned())?)
        }
        DataType::Map(entry, sorted) => {
            let map = array.as_map();
            let entries = ordered(&(Arc::new(map.entries().clone()) as ArrayRef))?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            let entries = entries.as_struct().clone();
            Arc::new(MapArray::try_new(Arc::clone(entry), offsets, entries, nulls, *sorted)?)
        }
        _ => Arc::clone(array),
    })
}
