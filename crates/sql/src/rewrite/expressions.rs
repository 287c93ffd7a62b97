//! Expressions: function names, dictionary calls, literals, casts, conditions.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CaseWhen, CastKind, DataType, DuplicateTreatment, Expr, Function, FunctionArguments, Ident,
    UnaryOperator, Visit, Visitor,
};

use super::syntax::{
    CONSTANT_SUFFIX, argument, argument_mut, arguments, arguments_mut, call, name_of, plain_arguments,
    string, taken, text,
};
use super::{conditions, literals};
use crate::error::{Error, Result};
use crate::functions;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;

/// Functions that DataFusion has under another name.
const RENAMED: &[(&str, &str)] = &[
    ("length", "octet_length"),
    ("lengthUTF8", "character_length"),
    ("lowerUTF8", "lower"),
    ("upperUTF8", "upper"),
    ("startsWith", "starts_with"),
    ("endsWith", "ends_with"),
    ("replaceAll", "replace"),
    ("substringUTF8", "substr"),
    ("any", "first_value"),
    ("anyLast", "last_value"),
    ("groupArray", "array_agg"),
    ("stddevPop", "stddev_pop"),
    ("stddevSamp", "stddev_samp"),
    ("varPop", "var_pop"),
    ("varSamp", "var_samp"),
    ("median", "median"),
];

/// ClickHouse's name of a function of DataFusion's.
pub fn clickhouse_name(name: &str) -> &str {
    let ours = RENAMED.iter().find(|(_, theirs)| *theirs == name).map(|(ours, _)| *ours);
    ours.filter(|_| !ANY_CASE.contains(&name)).unwrap_or(name)
}

/// SQL's own functions, which ClickHouse takes in any case.
const ANY_CASE: &[&str] = &[
    "count", "sum", "min", "max", "avg", "if", "coalesce", "round", "floor", "ceil", "abs", "lower", "upper",
];

/// Aggregates that take numbers, and so conditions too.
const OF_NUMBERS: &[&str] = &["sum", "avg", "min", "max", "any", "median"];

/// A function's name as ClickHouse shows it.
pub fn canonical_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if ANY_CASE.contains(&lower.as_str()) { lower } else { name.to_owned() }
}

/// Before the parts of an expression are rewritten: what must be seen as it was written.
pub fn before(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Function(function) if name_of(function).is_some_and(functions::is_dictionary_function) => {
            dictionary_call(function)
        }
        // `key.names` of system.dictionaries is one name.
        Expr::CompoundIdentifier(parts) => {
            if let [owner, part] = parts.as_slice()
                && matches!(
                    (owner.value.as_str(), part.value.as_str()),
                    ("key" | "attribute", "names" | "types")
                )
            {
                *expr = Expr::Identifier(Ident::with_quote('"', format!("{}.{}", owner.value, part.value)));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// After its parts were rewritten.
pub fn after(expr: &mut Expr) -> Result<()> {
    literals::make(expr);
    match expr {
        Expr::Tuple(items) => *expr = call("tuple", std::mem::take(items)),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => conditions::make(expr),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } if literals::made(inner).is_none() => {
            *expr = call("negate", vec![inner.as_ref().clone()]);
        }
        Expr::BinaryOp { left, op, right } => {
            use datafusion::sql::sqlparser::ast::BinaryOperator::{And, Or};
            if matches!(op, And | Or) {
                conditions::make(left);
                conditions::make(right);
            }
        }
        Expr::Case { operand: None, conditions, .. } => {
            conditions.iter_mut().for_each(|when| conditions::make(&mut when.condition));
        }
        Expr::Cast { expr: inner, data_type, kind: CastKind::Cast | CastKind::DoubleColon, .. } => {
            if let Some(name) = conversion(data_type) {
                *expr = call(name, vec![inner.as_ref().clone()]);
            }
        }
        // DataFusion's places in a string are Int64 and nothing else.
        Expr::Substring { substring_from, substring_for, .. } => {
            for place in [substring_from, substring_for].into_iter().flatten() {
                **place = call("toInt64", vec![taken(place)]);
            }
        }
        Expr::Function(_) => return after_function(expr),
        _ => {}
    }
    Ok(())
}

/// ClickHouse's casts wrap and spell values as its `toX` functions do.
fn conversion(data_type: &DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::UInt8 => "toUInt8",
        DataType::UInt16 => "toUInt16",
        DataType::UInt32 => "toUInt32",
        DataType::UInt64 => "toUInt64",
        DataType::Int8(None) => "toInt8",
        DataType::Int16 => "toInt16",
        DataType::Int32 => "toInt32",
        DataType::Int64 => "toInt64",
        DataType::Float32 => "toFloat32",
        DataType::Float64 => "toFloat64",
        DataType::String(None) => "toString",
        _ => return None,
    })
}

fn after_function(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expr else { return Ok(()) };
    let Some(name) = name_of(function).map(canonical_name) else { return Ok(()) };
    match name.as_str() {
        "if" | "multiIf" => return choice(expr),
        "uniqExact" | "uniq" => {
            rename(function, "count");
            if let FunctionArguments::List(list) = &mut function.args {
                list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
            }
            *expr = unsigned(expr);
        }
        "count" => *expr = unsigned(expr),
        "countIf" | "sumIf" | "avgIf" | "minIf" | "maxIf" | "anyIf" => {
            filtered(function, name.trim_end_matches("If"))?;
            if name == "countIf" {
                *expr = unsigned(expr);
            }
        }
        "tuple" | "negate" => {}
        _ if functions::is_registered(&name) => rename(function, &name),
        _ => {
            if let Some((_, ours)) = RENAMED.iter().find(|(theirs, _)| *theirs == name) {
                rename(function, ours);
            }
            if OF_NUMBERS.contains(&name.as_str()) {
                numbers(function);
            }
        }
    }
    Ok(())
}

fn rename(function: &mut Function, name: &str) {
    if let Expr::Function(named) = call(name, vec![]) {
        function.name = named.name;
    }
}

/// ClickHouse counts in UInt64.
fn unsigned(expr: &mut Expr) -> Expr {
    call("toUInt64", vec![taken(expr)])
}

fn numbers(function: &mut Function) {
    if let Some(first) = arguments_mut(function).and_then(|all| all.first_mut()).and_then(argument_mut) {
        conditions::make_number(first);
    }
}

/// The combinator `-If`: `sumIf(x, c)` is `sum(x) FILTER (WHERE c)`.
fn filtered(function: &mut Function, aggregate: &str) -> Result<()> {
    let Some(condition) = arguments_mut(function).and_then(Vec::pop) else {
        return Err(Error::wrong_argument_count(format!(
            "Aggregate function {aggregate}If requires a condition"
        )));
    };
    let Some(mut condition) = argument(&condition).cloned() else {
        return Err(Error::bad_arguments(format!("The condition of {aggregate}If must be an expression")));
    };
    conditions::make(&mut condition);
    function.filter = Some(Box::new(condition));
    if aggregate == "count" {
        *function = Function {
            filter: function.filter.take(),
            ..super::syntax::function(
                "count",
                vec![Expr::value(datafusion::sql::sqlparser::ast::Value::Boolean(true))],
            )
        };
    } else {
        rename(function, if aggregate == "any" { "first_value" } else { aggregate });
        numbers(function);
    }
    Ok(())
}

/// `if(c, a, b)` and `multiIf(c1, a1, c2, a2, b)` as CASE, which evaluates only what it needs.
fn choice(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = &*expr else { return Ok(()) };
    let count = arguments(function).len();
    let Some(mut all) = plain_arguments(function).filter(|_| count >= 3 && count % 2 == 1) else {
        let name = name_of(function).unwrap_or_default();
        return Err(Error::wrong_argument_count(format!(
            "Function {name} requires an odd number of arguments, at least 3"
        )));
    };
    let otherwise = all.pop().map(Box::new);
    let mut pairs = Vec::with_capacity(all.len() / 2);
    let mut all = all.into_iter();
    while let (Some(mut condition), Some(result)) = (all.next(), all.next()) {
        conditions::make(&mut condition);
        pairs.push(CaseWhen { condition, result });
    }
    *expr = Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: pairs,
        else_result: otherwise,
    };
    Ok(())
}

/// Brings a dictionary call into the one form that the functions know: the dictionary and the attributes as
/// string literals (several attributes in one, apart by [`functions::ATTRIBUTE_SEPARATOR`]), and a name of
/// its own for a call with constant arguments.
fn dictionary_call(function: &mut Function) -> Result<()> {
    let Some(name) = name_of(function).map(str::to_owned) else { return Ok(()) };
    if name.ends_with(CONSTANT_SUFFIX) {
        return Ok(());
    }
    let Some(arguments) = arguments_mut(function) else { return Ok(()) };
    if let Some(dictionary) = arguments.first_mut().and_then(argument_mut) {
        match dictionary {
            Expr::Identifier(ident) => *dictionary = string(&ident.value),
            Expr::CompoundIdentifier(parts) => {
                let full: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                *dictionary = string(&full.join("."));
            }
            _ => {}
        }
    }
    if name != "dictHas"
        && let Some(attributes) = arguments.get_mut(1).and_then(argument_mut)
        && let Some(names) = tuple_of_names(attributes)
    {
        *attributes = string(&names.join(functions::ATTRIBUTE_SEPARATOR));
    }
    let key = if name == "dictHas" { 1 } else { 2 };
    let constant = arguments.iter().skip(key).filter_map(argument).all(is_constant);
    rename(function, &if constant { format!("{name}{CONSTANT_SUFFIX}") } else { name });
    Ok(())
}

/// Attributes given as `('a', 'b')` or `tuple('a', 'b')`, each marked by the separator before it.
fn tuple_of_names(expr: &Expr) -> Option<Vec<String>> {
    let items = match expr {
        Expr::Tuple(items) => items.clone(),
        Expr::Function(function) if name_of(function) == Some("tuple") => plain_arguments(function)?,
        _ => return None,
    };
    let names: Option<Vec<String>> = items.iter().map(|item| text(item).map(str::to_owned)).collect();
    // A tuple of one name still gives a tuple: the leading separator says so.
    names.map(|names| std::iter::once(String::new()).chain(names).collect())
}

/// Whether an expression refers to no column.
fn is_constant(expr: &Expr) -> bool {
    struct Columns;
    impl Visitor for Columns {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::CompoundFieldAccess { .. } => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expr.visit(&mut Columns).is_continue()
}
