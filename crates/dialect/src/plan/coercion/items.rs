//! The items of arrays and maps: arguments of `[a, b]` and `map(a, b)` get one type, and the results of
//! `arrayJoin(array)` have the items' type.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{HigherOrderFunction, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection, Unnest};
use granary_dict::DataType as ClickHouseType;

use super::choices::{common, null_of_type, of_type};
use crate::error::Error;
use crate::functions::as_type::AsType;
use crate::functions::{assume_not_null, type_of};
use crate::types::{CLICKHOUSE_TYPE, fixed_bytes, is_time, is_wide, plain_field_name, plain_name, type_name};

/// Items of an array that cannot hold NULL are not Nullable; DataFusion's plan says they are.
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
            false => assume_not_null().call(vec![column]),
        };
        let metadata = FieldMetadata::new_from_field(item);
        value.alias_qualified_with_metadata(relation.cloned(), field.name(), Some(metadata))
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

/// `arrayMap(x -> .., array)`: an array of the lambda's declared type, of which DataFusion keeps only Arrow's.
pub fn of_lambda(call: HigherOrderFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let body = call.args.iter().find_map(|argument| match argument {
        Expr::Lambda(lambda) => Some(lambda.body.as_ref()),
        _ => None,
    });
    let item = match body {
        Some(Expr::LambdaVariable(variable)) => variable.field.clone(),
        Some(body) => Some(body.to_field(schema)?.1),
        None => None,
    };
    let call = Expr::HigherOrderFunction(call);
    let item = item.filter(|item| item.metadata().contains_key(CLICKHOUSE_TYPE)).map(|item| type_name(&item));
    // Other metadata names no type.
    match item.filter(|item| ClickHouseType::parse(item).is_ok()) {
        None => Ok(Transformed::no(call)),
        Some(item) => Ok(Transformed::yes(AsType::exact(call, format!("Array({item})")))),
    }
}

/// `[a, b, ..]` and, with `apart` of 2, `map(key, value, ..)`: all get the type that holds all of them. For most types
/// DataFusion's rule is ClickHouse's; where it would change values, the call is refused.
///
/// # Errors
/// NO_COMMON_TYPE.
pub fn brought_to_one_type(
    call: ScalarFunction,
    apart: usize,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    let fields = call.args.iter().map(|item| Ok(item.to_field(schema)?.1)).collect::<Result<Vec<_>>>()?;
    let mut wanted = Vec::with_capacity(apart);
    for first in 0..apart {
        let fields: Vec<&Field> = fields.iter().skip(first).step_by(apart).map(AsRef::as_ref).collect();
        let has = |wanted: fn(&DataType) -> bool| fields.iter().any(|field| wanted(field.data_type()));
        let is_signed = DataType::is_signed_integer;
        let is_mixed = has(has_time)
            || are_numbers_mixed(&fields)
            || fields.iter().any(|field| has_within(field.data_type(), DataType::is_decimal))
            || has(|item| item == &DataType::UInt64) && has(is_signed)
            || fields.iter().all(|field| field.data_type().is_list()) && has(has_nothing)
            || fields.iter().any(|field| is_wide(field));
        let mixed = if is_mixed { common(&fields)? } else { None };
        wanted.push(mixed.or(beside_null(&fields)?));
    }
    let changed = wanted.iter().any(Option::is_some);
    let item = |((item, field), wanted): ((Expr, &FieldRef), &Option<ClickHouseType>)| match wanted {
        Some(wanted) if field.data_type().is_null() && !wanted.to_arrow().is_nested() => {
            Ok(null_of_type(item, wanted))
        }
        Some(wanted) => of_type(item, wanted, schema),
        None => Ok(item),
    };
    let args =
        call.args.into_iter().zip(&fields).zip(wanted.iter().cycle()).map(item).collect::<Result<_>>()?;
    Ok(Transformed::new_transformed(Expr::ScalarFunction(ScalarFunction { func: call.func, args }), changed))
}

/// The type of items with NULL among them, if Arrow has no such type: NULL gets it, too.
fn beside_null(fields: &[&Field]) -> Result<Option<ClickHouseType>> {
    let known: Vec<&Field> = fields.iter().copied().filter(|field| !field.data_type().is_null()).collect();
    check_alike(&known)?;
    let Some(first) = known.first().filter(|_| known.len() < fields.len()) else { return Ok(None) };
    if first.data_type().is_list() {
        return Err(no_common_type(fields, ": an array is not NULL").into());
    }
    let name = plain_field_name(first);
    if name == plain_name(first.data_type()) && name != "UUID"
        || known.iter().any(|field| plain_field_name(field) != name)
    {
        return Ok(None);
    }
    match type_of(first) {
        Some(data_type) => Ok(Some(data_type)),
        None => Err(no_common_type(&known, ": toString makes a String of a FixedString").into()),
    }
}

/// Refuses mixtures of types that DataFusion would unite, and that have no common type in ClickHouse.
fn check_alike(known: &[&Field]) -> Result<()> {
    let any = |is_such: fn(&Field) -> bool| known.iter().any(|field| is_such(field));
    let of_floats = any(|field| field.data_type().is_floating());
    let of_texts = any(|field| field.data_type().is_string());
    let is_number = |field: &Field| field.data_type().is_numeric();
    let is_long = |field: &Field| matches!(field.data_type(), DataType::Int64 | DataType::UInt64);
    let is_decimal = |field: &Field| field.data_type().is_decimal() && !is_wide(field);
    let first = known.first().map(|field| plain_field_name(field));
    let differ = |field: &Field| Some(plain_field_name(field)) != first;
    let of_bytes = any(|field| field.data_type() == &DataType::FixedSizeBinary(16));
    let of_fixed = any(|field| fixed_bytes(field).is_some());
    match of_texts && any(is_number)
        || of_floats && (any(is_long) || any(is_decimal))
        || (of_bytes || of_fixed) && known.iter().any(|field| differ(field))
    {
        true => {
            Err(no_common_type(known, ", and there are no Variants here: cast one to another's type").into())
        }
        false => Ok(()),
    }
}

fn no_common_type(known: &[&Field], hint: &str) -> Error {
    let names: Vec<String> = known.iter().map(|field| plain_field_name(field)).collect();
    Error::no_common_type(format!("There is no supertype for types {}{hint}", names.join(", ")))
}

/// Whether integers are mixed with floats or decimals, also within arrays and tuples: DataFusion has other common types
/// for these.
fn are_numbers_mixed(fields: &[&Field]) -> bool {
    let has =
        |wanted: fn(&DataType) -> bool| fields.iter().any(|field| has_within(field.data_type(), wanted));
    has(DataType::is_integer) && has(|number| number.is_floating() || number.is_decimal())
}

/// Whether an array, at any depth, has items without a type.
fn has_nothing(data_type: &DataType) -> bool {
    has_within(data_type, DataType::is_null)
}

fn has_within(data_type: &DataType, wanted: fn(&DataType) -> bool) -> bool {
    match data_type {
        DataType::List(item) | DataType::Map(item, _) => has_within(item.data_type(), wanted),
        DataType::Struct(fields) => fields.iter().any(|field| has_within(field.data_type(), wanted)),
        other => wanted(other),
    }
}

/// Whether a type is a time, or contains one.
fn has_time(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) => has_time(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_time(field.data_type())),
        other => is_time(other),
    }
}
