//! Choices between values of a type unknown to Arrow keep that type: for `if(c, ip, other_ip)` and `coalesce(ip,
//! other_ip)`, DataFusion knows only that they are numbers.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable};
use granary_dict::DataType as ClickHouseType;

use crate::functions::as_type::AsType;
use crate::functions::supertype;
use crate::types::{CLICKHOUSE_TYPE, plain_name};

/// Declares the type of a choice between `branches`, which have one Arrow type.
pub fn declare(choice: Expr, branches: &[Expr], schema: &DFSchema) -> Result<Expr> {
    let known = branches.iter().filter(|branch| !is_null(branch));
    let types: Option<Vec<ClickHouseType>> = known.map(|branch| declared(branch, schema)).collect();
    let Some(common) = types.and_then(common) else { return Ok(choice) };
    // Arrow's name says as much.
    if plain_name(&common.to_arrow()) == common.to_string() {
        return Ok(choice);
    }
    Ok(AsType::exact(choice, common))
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null(&cast.expr),
        Expr::Alias(alias) => is_null(&alias.expr),
        _ => false,
    }
}

/// The declared type of an expression, if it still holds: a cast keeps its argument's metadata.
fn declared(expr: &Expr, schema: &DFSchema) -> Option<ClickHouseType> {
    let (_, field) = expr.to_field(schema).ok()?;
    let found = ClickHouseType::parse(field.metadata().get(CLICKHOUSE_TYPE)?).ok()?.inner().clone();
    is_of(&field, &found).then_some(found)
}

fn is_of(field: &Arc<Field>, found: &ClickHouseType) -> bool {
    match (field.data_type(), found) {
        (DataType::Timestamp(..), ClickHouseType::DateTime64 { .. }) => true,
        (data_type, found) => *data_type == found.to_arrow(),
    }
}

/// The type that all are of; times get the most digits among them.
fn common(types: Vec<ClickHouseType>) -> Option<ClickHouseType> {
    let is_time = |data_type: &ClickHouseType| matches!(data_type, ClickHouseType::DateTime64 { .. });
    let (first, others) = types.split_first()?;
    match others.iter().all(|other| other == first) || types.iter().all(is_time) {
        true => supertype(&types),
        false => None,
    }
}
