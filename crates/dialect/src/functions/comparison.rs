//! Comparisons in which ClickHouse differs from Arrow's kernels, as functions with names that no query can write.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::numbers::{rows, shaped, union};
use super::{array_order, ieee};
use crate::plan::function_of;

/// The types of columns that a [`Comparison`] compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operands {
    Floats,
    Arrays,
}

/// A comparison of the values of two columns, row by row.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Comparison {
    operator: Operator,
    of: Operands,
    name: String,
    signature: Signature,
}

impl Comparison {
    /// Compares numbers, some of them floats, as in IEEE 754.
    pub fn of_floats(operator: Operator) -> Self {
        Self::new(operator, Operands::Floats, "float")
    }

    /// Compares arrays or maps with NULL or floats among their items.
    pub fn of_arrays(operator: Operator) -> Self {
        Self::new(operator, Operands::Arrays, "array")
    }

    fn new(operator: Operator, of: Operands, suffix: &str) -> Self {
        let name = format!("{}/{suffix}", function_of(operator).unwrap_or_default());
        Self { operator, of, name, signature: Signature::any(2, Volatility::Immutable) }
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

impl ScalarUDFImpl for Comparison {
    fn name(&self) -> &str {
        &self.name
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
        let holds = |order| self.holds(order);
        let answers = match self.of {
            Operands::Floats => ieee::compared(&left, &right, holds)?,
            Operands::Arrays => array_order::compared(&left, &right, self.operator, holds)?,
        };
        shaped(Arc::new(BooleanArray::new(answers, nulls)) as ArrayRef, &args.args)
    }
}
