//! `rand()` and `rand64()`: a random number for each row. Arguments only tell two calls apart.

use std::sync::Arc;

use datafusion::arrow::array::{UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::{self, check_count};

/// Width of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RandWidth {
    Bits32,
    Bits64,
}

/// `rand` or `rand64`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Rand {
    width: RandWidth,
    signature: Signature,
}

impl Rand {
    pub fn new(width: RandWidth) -> Self {
        Self { width, signature: arguments::any(Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for Rand {
    fn name(&self) -> &str {
        match self.width {
            RandWidth::Bits32 => "rand",
            RandWidth::Bits64 => "rand64",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.width {
            RandWidth::Bits32 => DataType::UInt32,
            RandWidth::Bits64 => DataType::UInt64,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 0..=1)?;
        Ok(Arc::new(Field::new(self.name(), self.return_type(&[])?, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = 0..args.number_rows;
        Ok(ColumnarValue::Array(match self.width {
            RandWidth::Bits32 => Arc::new(UInt32Array::from_iter_values(rows.map(|_| fastrand::u32(..)))),
            RandWidth::Bits64 => Arc::new(UInt64Array::from_iter_values(rows.map(|_| fastrand::u64(..)))),
        }))
    }
}
