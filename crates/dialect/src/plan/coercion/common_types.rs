//! Columns that combine those of several queries or tables (of UNION, INTERSECT, EXCEPT, and USING) get the one type
//! that holds all values, by ClickHouse's rules. DataFusion has other rules, and nodes above know the first type only.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, ExprSchema, JoinConstraint, JoinType, NullEquality, Result};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Projection, ScalarUDF, Union};
use granary_dict::DataType as ClickHouseType;

use super::choices::{differ_within, null_of_type, of_type};
use crate::error::Error;
use crate::functions::{DeclaredAs, ToNullable, common_type};
use crate::plan::has_node;
use crate::plan::outer_join::{Unmatched, with_defaults};
use crate::types::{is_time, plain_field_name};

/// Whether a node has such columns.
pub fn has_common(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Union(_) => true,
        LogicalPlan::Join(join) => compares_rows(join) || is_using(join),
        _ => false,
    }
}

/// Gives such columns of all inputs one type.
///
/// # Errors
/// NO_COMMON_TYPE.
pub fn with_common(node: LogicalPlan, missing: Unmatched) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Union(union) => united(union),
        LogicalPlan::Join(join) if compares_rows(&join) => compared(join, missing),
        LogicalPlan::Join(join) if is_using(&join) => joined(join),
        node => Ok(node),
    }
}

/// Whether a join is an INTERSECT or an EXCEPT.
fn compares_rows(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull
        && matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
}

fn is_using(join: &Join) -> bool {
    join.join_constraint == JoinConstraint::Using
}

/// Merges nested UNION ALLs: a column's type is the common one of all queries at once.
pub fn flattened(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_union = |input: &Arc<LogicalPlan>| matches!(input.as_ref(), LogicalPlan::Union(_));
    let is_nested =
        |node: &LogicalPlan| matches!(node, LogicalPlan::Union(union) if union.inputs.iter().any(is_union));
    if !has_node(&plan, |node| Ok(is_nested(node)))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Union(union) if union.inputs.iter().any(is_union) => {
            let inputs = union.inputs.into_iter().flat_map(|input| match input.as_ref() {
                LogicalPlan::Union(within) => within.inputs.clone(),
                _ => vec![input],
            });
            let union = Union::try_new_with_loose_types(inputs.collect())?;
            Ok(Transformed::yes(LogicalPlan::Union(union)))
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}

fn united(union: Union) -> Result<LogicalPlan> {
    let first = union.inputs[0].schema().fields().len();
    if union.inputs.iter().any(|input| input.schema().fields().len() != first) {
        return Ok(LogicalPlan::Union(union));
    }
    let mut wanted = Vec::with_capacity(first);
    for at in 0..first {
        let fields: Vec<&Field> =
            union.inputs.iter().map(|input| input.schema().field(at).as_ref()).collect();
        wanted.push(common(&fields).map_err(|types| {
            Error::no_common_type(format!(
                "There is no supertype for types {types} of column {} of a UNION, and there are no Variants here: cast \
                 one to another's type",
                at + 1
            ))
        })?);
    }
    let inputs = union.inputs.into_iter().map(|input| aligned(input, &wanted)).collect::<Result<Vec<_>>>()?;
    let said: Vec<Option<String>> =
        (0..first).map(|at| said_by_all(&inputs, at, wanted[at].as_ref())).collect();
    let inputs = inputs.into_iter().map(|input| saying(input, &said)).collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// The type that a column of all inputs is to be declared as, if they declare several: DataFusion mixes these up.
fn said_by_all(inputs: &[Arc<LogicalPlan>], at: usize, wanted: Option<&ClickHouseType>) -> Option<String> {
    let fields: Vec<&Field> = inputs.iter().map(|input| input.schema().field(at).as_ref()).collect();
    let are_one = fields.windows(2).all(|pair| pair[0].metadata() == pair[1].metadata());
    if are_one || fields.windows(2).any(|pair| pair[0].data_type() != pair[1].data_type()) {
        return None;
    }
    let plain = wanted.map_or_else(|| plain_field_name(fields[0]), ToString::to_string);
    let is_nullable = fields.iter().any(|field| field.is_nullable()) && !fields[0].data_type().is_nested();
    Some(if is_nullable { format!("Nullable({plain})") } else { plain })
}

/// The input with columns declared as these types.
fn saying(input: Arc<LogicalPlan>, said: &[Option<String>]) -> Result<Arc<LogicalPlan>> {
    if said.iter().all(Option::is_none) {
        return Ok(input);
    }
    let columns = input.schema().iter().zip(said).map(|((relation, field), said)| {
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        let Some(said) = said else { return column };
        DeclaredAs::call(column, said).alias_qualified(relation.cloned(), field.name())
    });
    let columns = columns.collect();
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?)))
}

fn compared(mut join: Join, missing: Unmatched) -> Result<LogicalPlan> {
    let (left, right) = (join.left.schema().fields(), join.right.schema().fields());
    if left.len() != right.len() {
        return Ok(LogicalPlan::Join(join));
    }
    // Missing values of an outer join are filled in later.
    let filled = with_defaults(join.right.as_ref().clone(), missing)?;
    let may_be_null: Vec<bool> = filled.schema().fields().iter().map(|field| field.is_nullable()).collect();
    let mut wanted = Vec::with_capacity(left.len());
    for (at, (left, right)) in left.iter().zip(right).enumerate() {
        wanted.push(common(&[left.as_ref(), right.as_ref()]).map_err(|types| {
            Error::no_common_type(format!(
                "There is no supertype for types {types} of column {}, and there are no Variants here: cast one to \
                 another's type",
                at + 1
            ))
        })?);
    }
    join.left = nullable(aligned(join.left, &wanted)?, &may_be_null)?;
    join.right = aligned(join.right, &wanted)?;
    LogicalPlan::Join(join).recompute_schema()
}

/// The input with columns made Nullable where the other query's are.
fn nullable(input: Arc<LogicalPlan>, wanted: &[bool]) -> Result<Arc<LogicalPlan>> {
    let schema = Arc::clone(input.schema());
    let mut changed = false;
    let columns = schema.iter().zip(wanted).map(|((relation, field), wanted)| {
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        if !wanted || field.is_nullable() || field.data_type().is_nested() {
            return column;
        }
        changed = true;
        let nullable = ScalarUDF::from(ToNullable::default()).call(vec![column]);
        nullable.alias_qualified(relation.cloned(), field.name())
    });
    let columns: Vec<Expr> = columns.collect();
    match changed {
        true => Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?))),
        false => Ok(input),
    }
}

/// In a right or a full join, whose column has values of both sides, both sides get the common type. In others the
/// right side is only looked up, and keeps its type: it may be a dictionary.
fn joined(mut join: Join) -> Result<LogicalPlan> {
    let shows_right = matches!(join.join_type, JoinType::Right | JoinType::Full);
    let mut wanted =
        [vec![None; join.left.schema().fields().len()], vec![None; join.right.schema().fields().len()]];
    for (left, right) in &join.on {
        let (Expr::Column(left), Expr::Column(right)) = (left, right) else { continue };
        let places = [join.left.schema().index_of_column(left)?, join.right.schema().index_of_column(right)?];
        let fields =
            [join.left.schema().field(places[0]).as_ref(), join.right.schema().field(places[1]).as_ref()];
        let common = match common(&fields) {
            Ok(common) => common,
            Err(_) if !shows_right => continue,
            Err(types) => {
                return Err(Error::no_common_type(format!(
                    "JOIN cannot infer common type for {types} in USING for column {}: cast one to the other's type",
                    left.name
                ))
                .into());
            }
        };
        if shows_right || fields.iter().any(|field| is_time(field.data_type())) {
            wanted[1][places[1]].clone_from(&common);
        }
        wanted[0][places[0]] = common;
    }
    let [left, right] = wanted;
    join.left = aligned(join.left, &left)?;
    join.right = aligned(join.right, &right)?;
    if shows_right {
        return LogicalPlan::Join(join).recompute_schema();
    }
    let shown = join.on.iter().filter_map(|on| match on {
        (Expr::Column(left), Expr::Column(right)) => Some((right.clone(), left.clone())),
        _ => None,
    });
    with_left_keys(&shown.collect(), LogicalPlan::Join(join).recompute_schema()?)
}

/// Shows the left side's keys in place of the right side's if their types differ: `*` shows the column of the table
/// whose name comes first.
fn with_left_keys(keys: &HashMap<Column, Column>, join: LogicalPlan) -> Result<LogicalPlan> {
    let schema = Arc::clone(join.schema());
    let mut changed = false;
    let columns = schema.iter().map(|(relation, field)| {
        let column = Column::new(relation.cloned(), field.name());
        let Some(left) = keys.get(&column) else { return Ok(Expr::Column(column)) };
        let shown = schema.field_from_column(left)?;
        if shown.data_type() == field.data_type() {
            return Ok(Expr::Column(column));
        }
        changed = true;
        Ok(Expr::Column(left.clone()).alias_qualified(relation.cloned(), field.name()))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    match changed {
        true => Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(join))?)),
        false => Ok(join),
    }
}

/// The common type of fields; `None` if they have the same. The error is the names of their types.
fn common(fields: &[&Field]) -> Result<Option<ClickHouseType>, String> {
    let said = |field: &&Field| !field.data_type().is_null() && !is_empty(field.data_type());
    let known: Vec<&Field> = fields.iter().copied().filter(said).collect();
    let is_one = known.windows(2).all(|pair| {
        plain_field_name(pair[0]) == plain_field_name(pair[1])
            && pair[0].data_type().equals_datatype(pair[1].data_type())
    });
    // Of arrays, the items' declared types count, too.
    let is_same = is_one && known.windows(2).all(|pair| pair[0].data_type() == pair[1].data_type());
    if is_same && known.len() == fields.len() {
        return Ok(None);
    }
    match common_type(fields) {
        Some(common) if !differ_within(&known, &common) => Ok(Some(common)),
        // NULL and a type without a common one are left to DataFusion.
        _ if is_one => Ok(None),
        _ => Err(known.iter().map(|field| plain_field_name(field)).collect::<Vec<_>>().join(", ")),
    }
}

/// Whether a type is that of `[]`, at any depth.
fn is_empty(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) => {
            item.data_type().is_null() && !item.is_nullable() || is_empty(item.data_type())
        }
        _ => false,
    }
}

/// The input with columns converted to these types.
fn aligned(input: Arc<LogicalPlan>, wanted: &[Option<ClickHouseType>]) -> Result<Arc<LogicalPlan>> {
    let schema = Arc::clone(input.schema());
    let mut changed = false;
    let columns = schema.iter().zip(wanted).map(|((relation, field), wanted)| {
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        let Some(wanted) = wanted else { return Ok(column) };
        let made = match field.data_type().is_null() {
            true if wanted.to_arrow().is_nested() => return Ok(column),
            true => null_of_type(column, wanted),
            false => match of_type(column.clone(), wanted, &schema)? {
                made if made == column => return Ok(column),
                made => made,
            },
        };
        changed = true;
        Ok(made.alias_qualified(relation.cloned(), field.name()))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    if !changed {
        return Ok(input);
    }
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?)))
}
