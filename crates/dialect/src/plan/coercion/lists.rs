//! `x IN (a, b)`: NULL matches nothing (`transform_null_in = 0`), nor do values that `x` cannot have.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF, lit, when};

use super::comparisons;
use crate::functions::{ToNullable, assume_not_null};
use crate::plan::in_lists::of_one_type;

/// A list by ClickHouse's rules.
pub fn listed(list: InList, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut list = of_one_type(list, schema)?;
    let mut of_columns = Vec::new();
    for item in &list.list {
        if item.nullable(schema)? {
            of_columns.push(item.any_column_refs());
        }
    }
    let is_empty = list.list.is_empty();
    if of_columns.is_empty() && !is_empty {
        return comparisons::listed(list, schema);
    }
    let (value, negated) = (list.expr.clone(), std::mem::take(&mut list.negated));
    let found = match is_empty {
        true => lit(false),
        false => comparisons::listed(list, schema)?.data,
    };
    let found = assume_not_null().call(vec![found]);
    let found = if negated { Expr::Not(Box::new(found)) } else { found };
    // For a NULL `x` the result is unknown. If a Nullable column is listed, the type is Nullable.
    Ok(Transformed::yes(if value.nullable(schema)? {
        when(value.is_null(), lit(ScalarValue::Boolean(None))).otherwise(found)?
    } else if of_columns.contains(&true) {
        ScalarUDF::from(ToNullable::of_subquery()).call(vec![found])
    } else {
        found
    }))
}
