//! `x IN (1, 'a')`: what is listed is what `x` is, as in ClickHouse, also within tuples. DataFusion brings both to one
//! type, and there is none for a time and a number.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF, lit};

use crate::functions::as_type::AsType;
use crate::types::type_name;

/// Gives what is listed its type, before DataFusion looks for one.
pub fn of_one_type(list: InList, schema: &DFSchema) -> Result<InList> {
    let InList { expr, list, negated } = list;
    let (_, field) = expr.to_field(schema)?;
    if !is_strict(field.data_type()) {
        return Ok(InList { expr, list, negated });
    }
    let list = list.into_iter().map(|item| of_type(item, &field, schema)).collect::<Result<_>>()?;
    Ok(InList { expr, list, negated })
}

/// Whether DataFusion would not find a number or a text in a column of the type.
fn is_strict(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(..) | DataType::Date32 | DataType::Boolean | DataType::FixedSizeBinary(16) => {
            true
        }
        DataType::Struct(fields) => fields.iter().any(|field| is_strict(field.data_type())),
        _ => false,
    }
}

fn of_type(item: Expr, field: &Field, schema: &DFSchema) -> Result<Expr> {
    let given = item.get_type(schema)?;
    if given == *field.data_type() || given.is_null() || !is_strict(field.data_type()) {
        return Ok(item);
    }
    match (item, field.data_type()) {
        (Expr::ScalarFunction(ScalarFunction { func, args }), DataType::Struct(fields))
            if func.name() == "tuple" && args.len() == fields.len() =>
        {
            let args = args.into_iter().zip(fields).map(|(item, field)| of_type(item, field, schema));
            Ok(Expr::ScalarFunction(ScalarFunction { func, args: args.collect::<Result<_>>()? }))
        }
        (item, DataType::Struct(_)) => Ok(item),
        (item, _) => {
            let function = ScalarUDF::from(AsType::default());
            Ok(function.call(vec![item, lit(type_name(field))]))
        }
    }
}
