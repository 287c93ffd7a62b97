//! A value declared as a type that Arrow does not tell from its own: a column of a UNION has one declared type,
//! whichever query a row is of.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments;
use crate::types::CLICKHOUSE_TYPE;

/// The function around the value.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct DeclaredAs {
    name: String,
    signature: Signature,
}

impl DeclaredAs {
    /// The value, declared as the type of this name.
    pub fn call(value: Expr, name: &str) -> Expr {
        let signature = arguments::any(Volatility::Immutable);
        ScalarUDF::from(Self { name: name.to_owned(), signature }).call(vec![value])
    }
}

impl ScalarUDFImpl for DeclaredAs {
    fn name(&self) -> &'static str {
        "declaredAs"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the value's type is that of its column".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let metadata = [(CLICKHOUSE_TYPE.to_owned(), self.name.clone())];
        Ok(Arc::new(args.arg_fields[0].as_ref().clone().with_metadata(metadata.into())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
