//! Conversions between ClickHouse's numbers and DataFusion's booleans. They vanish when a query is optimised.

use std::sync::Arc;

use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::Error;

/// Any number as a condition: not zero.
pub const AS_CONDITION: &str = "asCondition";
/// Any integer as a condition.
pub const AS_CHOICE: &str = "asChoice";
/// A condition as a number, other values unchanged.
pub const AS_NUMBER: &str = "asNumber";

/// The direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Condition,
    /// A condition of a choice, which cannot be a float.
    Choice,
    Number,
}

/// A conversion between numbers and booleans.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Truth {
    role: Role,
    signature: Signature,
}

impl Truth {
    pub fn new(role: Role) -> Self {
        Self { role, signature: Signature::any(1, Volatility::Immutable) }
    }

    /// The type to cast to, if a cast is needed.
    fn target(&self, from: &DataType) -> Result<Option<DataType>> {
        match (self.role, from) {
            (Role::Number, DataType::Boolean) => Ok(Some(DataType::UInt8)),
            (Role::Number, _) | (Role::Condition | Role::Choice, DataType::Boolean) => Ok(None),
            (Role::Choice, from) if from.is_floating() => {
                let what = format!("Illegal type {from} of a condition: it must be a whole number");
                Err(Error::illegal_type(what).into())
            }
            (Role::Condition | Role::Choice, from) if from.is_numeric() || from.is_null() => {
                Ok(Some(DataType::Boolean))
            }
            (Role::Condition | Role::Choice, from) => {
                Err(Error::illegal_type(format!("A condition must be a number, not {from}")).into())
            }
        }
    }
}

impl ScalarUDFImpl for Truth {
    fn name(&self) -> &str {
        match self.role {
            Role::Condition => AS_CONDITION,
            Role::Choice => AS_CHOICE,
            Role::Number => AS_NUMBER,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(self.target(&arguments[0])?.unwrap_or_else(|| arguments[0].clone()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = &args.arg_fields[0];
        match self.target(field.data_type())? {
            None => Ok(Arc::clone(field)),
            Some(target) => Ok(Arc::new(Field::new(field.name(), target, field.is_nullable()))),
        }
    }

    fn simplify(&self, mut args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Some(argument) = args.pop() else { return Ok(ExprSimplifyResult::Original(args)) };
        Ok(ExprSimplifyResult::Simplified(match self.target(&context.get_data_type(&argument)?)? {
            None => argument,
            Some(target) => Expr::Cast(Cast::new(Box::new(argument), target)),
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let target = args.return_field.data_type();
        match &args.args[0] {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(cast(array, target)?)),
            ColumnarValue::Scalar(scalar) => Ok(ColumnarValue::Scalar(scalar.cast_to(target)?)),
        }
    }
}
