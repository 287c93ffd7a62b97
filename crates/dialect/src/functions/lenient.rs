//! `toUInt64OrNull`, `toUInt64OrZero` and the like: texts that cannot be parsed become NULL or 0. Also `toNullable`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Scalar};
use datafusion::arrow::compute::{is_not_null, kernels::zip::zip};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::{self, check_count};
use super::convert;
use super::fixed_string::trimmed;
use super::numbers::{rows, shaped};
use super::parse::parse_or_null;
use crate::error::Error;
use crate::types::{fixed_bytes, plain_name, type_name};

/// The result for an invalid text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NumberFallback {
    Null,
    Zero,
}

/// One conversion.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct OrNullConversion {
    name: String,
    target: DataType,
    otherwise: NumberFallback,
    signature: Signature,
}

/// All conversions.
pub fn all() -> impl Iterator<Item = OrNullConversion> {
    let numbers = convert::TARGETS.iter().filter(|(_, target)| target.is_numeric());
    numbers.flat_map(|(name, target)| {
        [("OrNull", NumberFallback::Null), ("OrZero", NumberFallback::Zero)].map(|(suffix, otherwise)| {
            OrNullConversion {
                name: format!("{name}{suffix}"),
                target: target.clone(),
                otherwise,
                signature: arguments::any(Volatility::Immutable),
            }
        })
    })
}

impl ScalarUDFImpl for OrNullConversion {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match &arguments[0] {
            text if text.is_string() || text.is_null() => Ok(self.target.clone()),
            other => {
                let (given, name) = (plain_name(other), &self.name);
                let message =
                    format!("Illegal type {given} of argument of function {name}: it must be String");
                Err(Error::illegal_type(message).into())
            }
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 1..=1)?;
        let argument = &args.arg_fields[0];
        let nullable = self.otherwise == NumberFallback::Null || argument.is_nullable();
        let data_type = self.return_type(&[argument.data_type().clone()])?;
        Ok(Arc::new(Field::new(self.name(), data_type, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        let texts = match fixed_bytes(&args.arg_fields[0]) {
            Some(_) => trimmed(&given),
            None => given,
        };
        let parsed = parse_or_null(&texts, &self.target)?;
        let array: ArrayRef = match self.otherwise {
            NumberFallback::Null => parsed,
            NumberFallback::Zero => {
                let zero = Scalar::new(ScalarValue::new_zero(&self.target)?.to_array()?);
                let filled = zip(&is_not_null(&parsed)?, &parsed, &zero)?;
                match texts.logical_nulls() {
                    None => filled,
                    Some(nulls) => datafusion::arrow::compute::nullif(&filled, &(!nulls.inner()).into())?,
                }
            }
        };
        shaped(array, &args.args)
    }
}

/// `toNullable(x)`: the same value, in the Nullable type. It is volatile: an optimiser would make a constant of it,
/// which is not Nullable.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ToNullable {
    /// Whether it was made because another argument of an aggregate is Nullable.
    by_other: bool,
    signature: Signature,
}

impl Default for ToNullable {
    fn default() -> Self {
        Self { by_other: false, signature: arguments::any(Volatility::Volatile) }
    }
}

impl ToNullable {
    /// For the value of argMin and argMax, if their other argument is Nullable.
    pub fn by_other() -> Self {
        Self { by_other: true, ..Self::default() }
    }

    /// Returns the argument of a call that [`by_other`](Self::by_other) made.
    pub fn without_other(expr: &Expr) -> Option<&Expr> {
        let Expr::ScalarFunction(call) = expr else { return None };
        let function = call.func.inner().downcast_ref::<ToNullable>()?;
        call.args.first().filter(|_| function.by_other)
    }

    /// For a subquery, which no optimiser makes a constant.
    pub fn of_subquery() -> Self {
        Self { by_other: false, signature: arguments::any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ToNullable {
    fn name(&self) -> &str {
        "toNullable"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 1..=1)?;
        let field = &args.arg_fields[0];
        if field.data_type().is_nested() {
            let what = format!("Nested type {} cannot be inside Nullable type", type_name(field));
            return Err(Error::illegal_type(what).into());
        }
        Ok(Arc::new(field.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
