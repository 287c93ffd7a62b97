//! Comparisons of floating-point numbers as IEEE 754 has them, which ClickHouse's are: NaN is neither equal to anything
//! nor less or greater, and -0 is 0. Arrow's kernels order all floats in one line. An integer is compared as it is.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::numbers::{array_bits, rows, shaped, union};

/// One comparison as a function, whose name nobody can write.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ieee {
    operator: Operator,
    signature: Signature,
}

impl Ieee {
    /// Of an operator that compares.
    pub fn new(operator: Operator) -> Self {
        Self { operator, signature: Signature::any(2, Volatility::Immutable) }
    }

    fn holds(&self, order: Option<Ordering>) -> bool {
        match (self.operator, order) {
            (Operator::NotEq, None) => true,
            (_, None) => false,
            (Operator::Eq, Some(order)) => order.is_eq(),
            (Operator::NotEq, Some(order)) => order.is_ne(),
            (Operator::Lt, Some(order)) => order.is_lt(),
            (Operator::LtEq, Some(order)) => order.is_le(),
            (Operator::Gt, Some(order)) => order.is_gt(),
            (_, Some(order)) => order.is_ge(),
        }
    }
}

impl ScalarUDFImpl for Ieee {
    fn name(&self) -> &str {
        match self.operator {
            Operator::Eq => "equals/float",
            Operator::NotEq => "notEquals/float",
            Operator::Lt => "less/float",
            Operator::LtEq => "lessOrEquals/float",
            Operator::Gt => "greater/float",
            _ => "greaterOrEquals/float",
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
            return Err(DataFusionError::Internal("two values are compared".into()));
        };
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let nulls = union(left.logical_nulls(), right.logical_nulls(), rows);
        let (left, right) = (Numbers::of(&left)?, Numbers::of(&right)?);
        let answers = match (&left, &right) {
            (Numbers::Floats(left), Numbers::Floats(right)) => {
                let (left, right) = (left.values(), right.values());
                BooleanBuffer::collect_bool(rows, |row| self.holds(left[row].partial_cmp(&right[row])))
            }
            _ => BooleanBuffer::collect_bool(rows, |row| self.holds(left.at(row).order(right.at(row)))),
        };
        shaped(Arc::new(BooleanArray::new(answers, nulls)) as ArrayRef, &args.args)
    }
}

/// A column of numbers.
enum Numbers {
    Floats(Float64Array),
    /// Integers, and whether they have a sign.
    Whole(datafusion::arrow::buffer::ScalarBuffer<u64>, bool),
}

#[derive(Clone, Copy)]
enum Number {
    Float(f64),
    Whole(i128),
}

impl Numbers {
    fn of(array: &ArrayRef) -> Result<Numbers> {
        match array_bits(array) {
            Some(bits) => Ok(Numbers::Whole(bits, array.data_type().is_signed_integer())),
            None => {
                Ok(Numbers::Floats(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone()))
            }
        }
    }

    fn at(&self, row: usize) -> Number {
        match self {
            Numbers::Floats(floats) => Number::Float(floats.value(row)),
            Numbers::Whole(bits, true) => Number::Whole(i128::from(bits[row] as i64)),
            Numbers::Whole(bits, false) => Number::Whole(i128::from(bits[row])),
        }
    }
}

impl Number {
    fn order(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Float(one), Number::Float(other)) => one.partial_cmp(&other),
            (Number::Whole(one), Number::Whole(other)) => Some(one.cmp(&other)),
            (Number::Whole(one), Number::Float(other)) => whole_and_float(one, other),
            (Number::Float(one), Number::Whole(other)) => whole_and_float(other, one).map(Ordering::reverse),
        }
    }
}

/// An integer of 64 bits may have more digits than a float.
fn whole_and_float(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Beyond these a float is out of the integer's reach.
    let trunc = float.trunc().clamp(-1e30, 1e30);
    let fraction = float - trunc;
    // Between equals the fraction decides.
    let by_fraction = 0.0.partial_cmp(&fraction).unwrap_or(Ordering::Equal);
    Some(whole.cmp(&(trunc as i128)).then(by_fraction))
}
