//! ClickHouse's name for an expression's column: operators are spelled as functions.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CaseWhen, CastKind, DuplicateTreatment, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, OrderByExpr, Subscript, TrimWhereField, UnaryOperator, Value,
    WindowFrameBound, WindowSpec, WindowType,
};
use granary_dict::float_literal;

use super::literals::named_float;
use super::operators::unit;
use super::syntax::{arguments, name_of, plain_arguments};
use super::syntax_calls::{part, typed};
use crate::functions;
use crate::text::escape::single_quoted;

/// Returns ClickHouse's name for an expression's column.
pub fn column_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => named_float(ident).unwrap_or(&ident.value).to_owned(),
        Expr::CompoundIdentifier(parts) => parts.last().map(|part| part.value.clone()).unwrap_or_default(),
        Expr::Value(value) => literal(&value.value),
        Expr::Nested(inner) => column_name(inner),
        Expr::BinaryOp { left, op, right } => binary(left, op, right),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => negated(expr),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => format!("not({})", column_name(expr)),
        Expr::Tuple(items) => format!("({})", items_of(items)),
        Expr::Array(Array { elem, .. }) => format!("[{}]", items_of(elem)),
        Expr::Function(function) => call(function),
        Expr::Cast { kind, expr, data_type, .. } => {
            let value = match kind {
                CastKind::DoubleColon if is_read_as_written(expr) => quoted(&expr.to_string()),
                _ => column_name(expr),
            };
            format!("CAST({value}, {})", quoted(&functions::type_spelling(data_type)))
        }
        Expr::InList { expr, list, negated } => in_list(expr, list, *negated),
        Expr::Between { expr, negated, low, high } => between(expr, low, high, *negated),
        Expr::Case { operand, conditions, else_result, .. } => {
            case(operand.as_deref(), conditions, else_result.as_deref())
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            access_chain.iter().fold(column_name(root), |value, access| match access {
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    format!("arrayElement({value}, {})", column_name(index))
                }
                other => format!("{value}{other}"),
            })
        }
        Expr::IsNull(expr) => format!("isNull({})", column_name(expr)),
        Expr::IsNotNull(expr) => format!("isNotNull({})", column_name(expr)),
        Expr::Like { negated, expr, pattern, .. } => {
            binary_call(if *negated { "notLike" } else { "like" }, expr, pattern)
        }
        Expr::ILike { negated, expr, pattern, .. } => {
            binary_call(if *negated { "notILike" } else { "ilike" }, expr, pattern)
        }
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            let parts = [Some(expr), substring_from.as_ref(), substring_for.as_ref()];
            let parts: Vec<String> = parts.into_iter().flatten().map(|part| column_name(part)).collect();
            format!("substring({})", parts.join(", "))
        }
        Expr::Position { expr, r#in } => binary_call("position", r#in, expr),
        Expr::Trim { expr, trim_where: Some(side), trim_what: Some(what), .. } => {
            let name = match side {
                TrimWhereField::Both => "trimBoth",
                TrimWhereField::Leading => "trimLeft",
                TrimWhereField::Trailing => "trimRight",
            };
            binary_call(name, expr, what)
        }
        Expr::Trim { expr, trim_where: None, trim_what: None, .. } => {
            format!("trimBoth({})", column_name(expr))
        }
        Expr::Extract { field, expr, .. } if let Ok(function) = part(field) => {
            format!("{function}({})", column_name(expr))
        }
        Expr::TypedString(text) if let Some(function) = typed(&text.data_type) => {
            format!("{function}({})", literal(&text.value.value))
        }
        Expr::IsDistinctFrom(one, other) => binary_call("isDistinctFrom", one, other),
        Expr::IsNotDistinctFrom(one, other) => binary_call("isNotDistinctFrom", one, other),
        Expr::Interval(interval) if let Some(unit) = unit(interval) => {
            format!("toInterval{unit}({})", column_name(&interval.value))
        }
        Expr::Lambda(lambda) => {
            let parameters: Vec<&str> = lambda.params.iter().map(|p| p.name.value.as_str()).collect();
            format!("lambda(tuple({}), {})", parameters.join(", "), column_name(&lambda.body))
        }
        other => other.to_string(),
    }
}

/// `name(one, other)`.
fn binary_call(name: &str, one: &Expr, other: &Expr) -> String {
    format!("{name}({}, {})", column_name(one), column_name(other))
}

/// `-x`: of a constant, the number.
fn negated(expr: &Expr) -> String {
    let name = column_name(expr);
    match (expr, name.as_str()) {
        (Expr::Value(_), "0") => name,
        (Expr::Value(_), _) => format!("-{name}"),
        (Expr::Identifier(ident), "nan") if named_float(ident).is_some() => name,
        (Expr::Identifier(ident), _) if named_float(ident).is_some() => format!("-{name}"),
        _ => format!("negate({name})"),
    }
}

/// `x IN (..)`.
fn in_list(expr: &Expr, items: &[Expr], negated: bool) -> String {
    let name = if negated { "notIn" } else { "in" };
    match items {
        [item] => binary_call(name, expr, item),
        items => format!("{name}({}, ({}))", column_name(expr), items_of(items)),
    }
}

/// `x BETWEEN low AND high`.
fn between(expr: &Expr, low: &Expr, high: &Expr, negated: bool) -> String {
    let (value, low, high) = (column_name(expr), column_name(low), column_name(high));
    match negated {
        false => format!("and(greaterOrEquals({value}, {low}), lessOrEquals({value}, {high}))"),
        true => format!("or(less({value}, {low}), greater({value}, {high}))"),
    }
}

/// `CASE [operand] WHEN .. THEN .. [ELSE ..] END`.
fn case(operand: Option<&Expr>, branches: &[CaseWhen], otherwise: Option<&Expr>) -> String {
    let name = if operand.is_some() { "caseWithExpression" } else { "multiIf" };
    let branches = branches.iter().flat_map(|CaseWhen { condition, result }| [condition, result]);
    let parts = operand.into_iter().chain(branches).map(column_name);
    let otherwise = otherwise.map_or_else(|| "NULL".to_owned(), column_name);
    format!("{name}({})", parts.chain([otherwise]).collect::<Vec<_>>().join(", "))
}

/// The items of an array or a tuple; if all are constants, truth values are numbers.
fn items_of(items: &[Expr]) -> String {
    let is_constant = items.iter().all(is_literal);
    let item = |item: &Expr| match item {
        Expr::Value(value) if is_constant && let Value::Boolean(truth) = value.value => {
            u8::from(truth).to_string()
        }
        item => column_name(item),
    };
    items.iter().map(item).collect::<Vec<_>>().join(", ")
}

/// Whether `::` reads an expression by its text as written.
fn is_read_as_written(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        Expr::Tuple(items) | Expr::Array(Array { elem: items, .. }) => items.iter().all(is_literal),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_read_as_written(expr),
        _ => false,
    }
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::Tuple(items) | Expr::Array(Array { elem: items, .. }) => items.iter().all(is_literal),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_literal(expr),
        _ => false,
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = Vec::new();
    single_quoted(text.as_bytes(), &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}

fn literal(value: &Value) -> String {
    match value {
        Value::Number(digits, _) => number(digits),
        Value::SingleQuotedString(text) => quoted(text),
        Value::Boolean(truth) => truth.to_string(),
        Value::Null => "NULL".to_owned(),
        other => other.to_string(),
    }
}

/// A number as ClickHouse writes its value: `1e3` is `1000.`.
fn number(digits: &str) -> String {
    let digits = digits.replace('_', "");
    match (digits.parse::<u64>(), digits.parse()) {
        (Ok(whole), _) => whole.to_string(),
        (_, Ok(float)) => float_literal(float),
        _ => digits,
    }
}

fn binary(left: &Expr, op: &BinaryOperator, right: &Expr) -> String {
    let name = match op {
        BinaryOperator::Plus => "plus",
        BinaryOperator::Minus => "minus",
        BinaryOperator::Multiply => "multiply",
        BinaryOperator::Divide => "divide",
        BinaryOperator::Modulo => "modulo",
        BinaryOperator::Eq => "equals",
        BinaryOperator::NotEq => "notEquals",
        BinaryOperator::Lt => "less",
        BinaryOperator::LtEq => "lessOrEquals",
        BinaryOperator::Gt => "greater",
        BinaryOperator::GtEq => "greaterOrEquals",
        BinaryOperator::Spaceship => "isNotDistinctFrom",
        BinaryOperator::And => "and",
        BinaryOperator::Or => "or",
        BinaryOperator::StringConcat => "concat",
        _ => return format!("{} {op} {}", column_name(left), column_name(right)),
    };
    // `a AND b AND c` is one function of three arguments.
    let mut operands = Vec::new();
    if matches!(op, BinaryOperator::And | BinaryOperator::Or | BinaryOperator::StringConcat) {
        flatten(left, op, &mut operands);
        flatten(right, op, &mut operands);
    } else {
        operands.extend([column_name(left), column_name(right)]);
    }
    format!("{name}({})", operands.join(", "))
}

fn flatten(expr: &Expr, op: &BinaryOperator, operands: &mut Vec<String>) {
    match expr {
        Expr::BinaryOp { left, op: inner, right } if inner == op => {
            flatten(left, op, operands);
            flatten(right, op, operands);
        }
        other => operands.push(column_name(other)),
    }
}

fn call(function: &Function) -> String {
    let Some(name) = name_of(function).map(str::to_owned) else { return function.to_string() };
    match (name.as_str(), plain_arguments(function)) {
        ("array", Some(items)) => return format!("[{}]", items_of(&items)),
        ("tuple", Some(items)) => return format!("({})", items_of(&items)),
        _ => {}
    }
    if function.filter.is_some() {
        return function.to_string();
    }
    match &function.over {
        Some(WindowType::WindowSpec(window)) => {
            let called = call(&Function { over: None, ..function.clone() });
            return format!("{called} OVER ({})", window_name(window));
        }
        Some(WindowType::NamedWindow(_)) => return function.to_string(),
        None => {}
    }
    let distinct = match &function.args {
        FunctionArguments::List(list) => list.duplicate_treatment == Some(DuplicateTreatment::Distinct),
        _ => false,
    };
    let name = if distinct { format!("{name}Distinct") } else { name };
    let name = match &function.parameters {
        FunctionArguments::List(list) => {
            let parameters: Vec<String> = list.args.iter().map(ToString::to_string).collect();
            format!("{name}({})", parameters.join(", "))
        }
        _ => name,
    };
    let arguments: Vec<String> = arguments(function)
        .iter()
        .filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(column_name(expr)),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => None,
            other => Some(other.to_string()),
        })
        .collect();
    format!("{name}({})", arguments.join(", "))
}

fn window_name(window: &WindowSpec) -> String {
    let mut parts = Vec::from_iter(window.window_name.as_ref().map(|name| name.value.clone()));
    let list = |items: Vec<String>| items.join(", ");
    if !window.partition_by.is_empty() {
        parts.push(format!("PARTITION BY {}", list(window.partition_by.iter().map(column_name).collect())));
    }
    if !window.order_by.is_empty() {
        let order = |by: &OrderByExpr| {
            let order = if by.options.asc == Some(false) { "DESC" } else { "ASC" };
            let nulls = match by.options.nulls_first {
                Some(true) => " NULLS FIRST",
                Some(false) => " NULLS LAST",
                None => "",
            };
            format!("{} {order}{nulls}", column_name(&by.expr))
        };
        parts.push(format!("ORDER BY {}", list(window.order_by.iter().map(order).collect())));
    }
    if let Some(frame) = &window.window_frame {
        let end = frame.end_bound.as_ref().unwrap_or(&WindowFrameBound::CurrentRow);
        parts.push(format!("{} BETWEEN {} AND {end}", frame.units, frame.start_bound));
    }
    parts.join(" ")
}
