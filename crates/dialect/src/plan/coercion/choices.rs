//! Choices between values: `CASE`, `if`, `coalesce`. All branches get one type.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, Cast, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF, lit};
use granary_dict::DataType as ClickHouseType;

use super::comparisons;
use super::declared::declare;
use crate::error::Error;
use crate::functions::as_type::AsType;
use crate::functions::{ToNullable, common_type, is_plain, type_of};
use crate::plan::listed_numbers::{ListNumber, float_among_decimals, is_constant};
use crate::types::{fixed_bytes, type_name};

/// `CASE x WHEN 1 ..` compares; all branches get one type, which is Nullable if one of theirs is or there is no ELSE.
pub fn case(case: Case, schema: &DFSchema) -> Result<Expr> {
    let Case { expr, mut when_then_expr, mut else_expr } = case;
    let is_null = |when: &Expr| when.get_type(schema).is_ok_and(|data_type| data_type.is_null());
    let has_null = when_then_expr.iter().any(|(when, _)| is_null(when));
    if let Some(operand) = &expr {
        for (when, _) in &when_then_expr {
            comparisons::check_chosen(operand, when, schema)?;
        }
    }
    let may_be_null = |value: &Expr| value.nullable(schema).unwrap_or(true);
    let is_compared = |operand: &Expr, when: &Expr| {
        comparisons::is_float(operand, schema)
            || comparisons::is_float(when, schema)
            || comparisons::are_apart(operand, when, schema)
            || comparisons::are_read(operand, when, schema)
            || may_be_null(operand) && may_be_null(when)
    };
    let operand = match expr {
        Some(operand) if !has_null && are_floats_among_decimals(&operand, &when_then_expr, schema)? => {
            let (_, field) = operand.to_field(schema)?;
            for (when, _) in &mut when_then_expr {
                let equal = |when: Expr| operand.as_ref().clone().eq(when);
                **when = match float_among_decimals(when, &field)? {
                    Some(ListNumber::As(decimal)) => equal(decimal),
                    Some(ListNumber::Never) => lit(false),
                    _ => equal(std::mem::take(when.as_mut())),
                };
            }
            None
        }
        Some(operand) if has_null || when_then_expr.iter().any(|(when, _)| is_compared(&operand, when)) => {
            for (when, _) in &mut when_then_expr {
                // NULL matches NULL.
                let op = match may_be_null(&operand) && may_be_null(when) {
                    true => Operator::IsNotDistinctFrom,
                    false => Operator::Eq,
                };
                let equal = BinaryExpr::new(operand.clone(), op, when.clone());
                **when = match is_null(when) {
                    true => operand.as_ref().clone().is_null(),
                    false => comparisons::compared(equal, schema)?.data,
                };
            }
            None
        }
        operand => operand,
    };
    let branches: Vec<&Expr> =
        when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(else_expr.as_deref()).collect();
    let fields = branches.iter().map(|branch| Ok(branch.to_field(schema)?.1)).collect::<Result<Vec<_>>>()?;
    let nullable = else_expr.is_none() || fields.iter().any(|field| is_nullable(field));
    let fields: Vec<&Field> = fields.iter().map(AsRef::as_ref).collect();
    if let Some(nested) = fields.iter().find(|field| nullable && field.data_type().is_nested()) {
        let what = format!("A value of {} cannot be NULL: say another one in its place", type_name(nested));
        return Err(Error::no_common_type(what).into());
    }
    if let Some(common) = common(&fields)? {
        for (_, then) in &mut when_then_expr {
            **then = of_type(std::mem::take(then.as_mut()), &common, schema)?;
        }
        if let Some(otherwise) = &mut else_expr {
            **otherwise = of_type(std::mem::take(otherwise.as_mut()), &common, schema)?;
        }
    }
    let branches: Vec<Expr> = when_then_expr
        .iter()
        .map(|(_, then)| then.as_ref().clone())
        .chain(else_expr.as_deref().cloned())
        .collect();
    let case = Expr::Case(Case { expr: operand, when_then_expr, else_expr });
    let case = declare(case, &branches, schema)?;
    let is_known = nullable && !case.nullable(schema)?;
    Ok(if is_known { ScalarUDF::from(ToNullable::default()).call(vec![case]) } else { case })
}

/// Whether decimals are matched with constants of which one is a float: they are cut like those of IN, unless the
/// chosen value is no constant, or an array.
fn are_floats_among_decimals(
    operand: &Expr,
    branches: &[(Box<Expr>, Box<Expr>)],
    schema: &DFSchema,
) -> Result<bool> {
    let (_, field) = operand.to_field(schema)?;
    let mut are_floats = false;
    let mut are_computed = false;
    for (when, then) in branches {
        if !is_constant(when)? || !is_constant(then)? || then.get_type(schema)?.is_nested() {
            return Ok(false);
        }
        let is_cut = float_among_decimals(when, &field)?.is_some();
        are_floats |= is_cut;
        are_computed |= field.data_type().is_decimal() && comparisons::is_float(when, schema) && !is_cut;
    }
    match are_computed {
        true => {
            let name = type_name(&field);
            let what = format!(
                "CASE does not find {name} by a float that is computed: write the number, or convert it"
            );
            Err(Error::not_implemented(what).into())
        }
        false => Ok(are_floats),
    }
}

fn is_nullable(field: &Field) -> bool {
    field.is_nullable() || field.data_type().is_null()
}

/// `coalesce(a, b, ..)`: arguments after one that is never NULL are dropped.
pub fn first_known(call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut looked_at = Vec::new();
    for value in call.args {
        let (_, field) = value.to_field(schema)?;
        if field.data_type().is_null() {
            continue;
        }
        looked_at.push((value, Arc::clone(&field)));
        if !field.is_nullable() {
            break;
        }
    }
    let fields: Vec<&Field> = looked_at.iter().map(|(_, field)| field.as_ref()).collect();
    let common = common(&fields)?;
    let mut values = looked_at
        .into_iter()
        .map(|(value, _)| match &common {
            Some(common) => of_type(value, common, schema),
            None => Ok(value),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(match values.len() {
        0 => lit(ScalarValue::Null),
        1 => values.remove(0),
        _ => {
            let coalesce = ScalarFunction::new_udf(datafusion::functions::core::coalesce(), values.clone());
            declare(Expr::ScalarFunction(coalesce), &values, schema)?
        }
    }))
}

/// The common type of several fields; `None` if they have the same.
pub fn common(fields: &[&Field]) -> Result<Option<ClickHouseType>> {
    if let Some(fixed) = fields.iter().find(|field| fixed_bytes(field).is_some()) {
        let what = format!("{} is not chosen here: toString makes a String of it", type_name(fixed));
        return Err(Error::illegal_type(what).into());
    }
    let name = |field: &&Field| type_name(&(*field).clone().with_nullable(false));
    let known: Vec<&Field> = fields.iter().copied().filter(|field| !field.data_type().is_null()).collect();
    let names: Vec<String> = known.iter().map(name).collect();
    if names.windows(2).all(|pair| pair[0] == pair[1]) || known.iter().all(|field| is_of_nothing(field)) {
        return Ok(None);
    }
    match common_type(&known) {
        Some(common) if differ_within(fields, &common) => Err(comparisons::zones_within().into()),
        Some(common) => Ok(Some(common)),
        None => {
            let what = format!(
                "There is no supertype for types {}, and there are no Variants here: cast one to another's type",
                names.join(", ")
            );
            Err(Error::no_common_type(what).into())
        }
    }
}

/// Whether the type is an array, at any depth, of items without a type.
fn is_of_nothing(field: &Field) -> bool {
    match field.data_type() {
        DataType::List(item) => item.data_type().is_null() || is_of_nothing(item),
        _ => false,
    }
}

/// Whether times within arrays and the like have other zones than in their common type.
pub fn differ_within(fields: &[&Field], common: &ClickHouseType) -> bool {
    let common = common.to_arrow();
    common.is_nested() && fields.iter().any(|field| comparisons::differ_in_zone(field.data_type(), &common))
}

/// Casts NULL to the Nullable type.
pub fn null_of_type(expr: Expr, data_type: &ClickHouseType) -> Expr {
    ScalarUDF::from(AsType::default()).call(vec![expr, lit(format!("Nullable({data_type})"))])
}

/// An expression converted to a type.
pub fn of_type(expr: Expr, common: &ClickHouseType, schema: &DFSchema) -> Result<Expr> {
    let (_, field) = expr.to_field(schema)?;
    let own = type_of(&field);
    if own.as_ref() == Some(common) && field.data_type() == &common.to_arrow() || field.data_type().is_null()
    {
        return Ok(expr);
    }
    let arrow = common.to_arrow();
    Ok(if is_plain(&arrow) && (is_plain(field.data_type()) || field.data_type() == &DataType::Boolean) {
        Expr::Cast(Cast::new(Box::new(expr), arrow))
    } else {
        AsType::exact(expr, common)
    })
}
