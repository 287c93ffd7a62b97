//! `arrayJoin(array)`: its items have the type that they have in the array.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, ScalarUDF, Unnest};

use crate::error::Error;
use crate::functions::AssumeNotNull;

/// The items of arrays that hold no NULL are not Nullable; DataFusion's plan says they are.
pub fn known(unnest: Unnest) -> Result<LogicalPlan> {
    if !unnest.struct_type_columns.is_empty() {
        return Err(
            Error::illegal_type("Argument of function arrayJoin must be an array, not a tuple").into()
        );
    }
    let input = Arc::clone(unnest.input.schema());
    let items: Vec<Option<FieldRef>> = unnest
        .dependency_indices
        .iter()
        .map(|at| match input.field(*at).data_type() {
            DataType::List(item) if unnest.list_type_columns.iter().any(|(list, _)| list == at) => {
                Some(Arc::clone(item))
            }
            _ => None,
        })
        .collect();
    if items.iter().flatten().any(|item| item.data_type().is_null()) {
        return Err(
            Error::illegal_type("Argument of function arrayJoin must not be an array of nothing").into()
        );
    }
    let plan = LogicalPlan::Unnest(unnest);
    if !items.iter().any(Option::is_some) {
        return Ok(plan);
    }
    let columns = plan.schema().iter().zip(&items).map(|((relation, field), item)| {
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        let Some(item) = item else { return column };
        let value = match item.is_nullable() {
            true => column,
            false => ScalarUDF::from(AssumeNotNull::unchecked()).call(vec![column]),
        };
        let metadata = FieldMetadata::new_from_field(item);
        value.alias_qualified_with_metadata(relation.cloned(), field.name(), Some(metadata))
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}
