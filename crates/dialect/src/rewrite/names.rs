//! ClickHouse's name for the column of an expression: operators are spelled as functions.

use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, UnaryOperator, Value,
};

use super::literals::named_float;
use super::operators::unit;
use super::syntax::{arguments, name_of};

/// The name.
pub fn column_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => named_float(ident).unwrap_or(&ident.value).to_owned(),
        Expr::CompoundIdentifier(parts) => parts.last().map(|part| part.value.clone()).unwrap_or_default(),
        Expr::Value(value) => literal(&value.value),
        Expr::Nested(inner) => column_name(inner),
        Expr::BinaryOp { left, op, right } => binary(left, op, right),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(_) => format!("-{}", column_name(expr)),
            _ => format!("negate({})", column_name(expr)),
        },
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => format!("not({})", column_name(expr)),
        Expr::Tuple(items) if items.iter().all(is_literal) => format!("({})", list(items)),
        Expr::Tuple(items) => format!("tuple({})", list(items)),
        Expr::Array(Array { elem, .. }) if elem.iter().all(is_literal) => format!("[{}]", list(elem)),
        Expr::Array(Array { elem, .. }) => format!("array({})", list(elem)),
        Expr::Function(function) => call(function),
        Expr::Cast { expr, data_type, .. } => format!("CAST({}, '{data_type}')", column_name(expr)),
        Expr::InList { expr, list: items, negated } => {
            let name = if *negated { "notIn" } else { "in" };
            format!("{name}({}, ({}))", column_name(expr), list(items))
        }
        Expr::Between { expr, negated: false, low, high } => {
            let value = column_name(expr);
            let (low, high) = (column_name(low), column_name(high));
            format!("and(greaterOrEquals({value}, {low}), lessOrEquals({value}, {high}))")
        }
        Expr::IsNull(expr) => format!("isNull({})", column_name(expr)),
        Expr::IsNotNull(expr) => format!("isNotNull({})", column_name(expr)),
        Expr::Like { negated, expr, pattern, .. } => {
            let name = if *negated { "notLike" } else { "like" };
            format!("{name}({}, {})", column_name(expr), column_name(pattern))
        }
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

fn list(items: &[Expr]) -> String {
    items.iter().map(column_name).collect::<Vec<_>>().join(", ")
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::Tuple(items) => items.iter().all(is_literal),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_literal(expr),
        _ => false,
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Number(digits, _) if digits.contains('.') && !digits.contains(['e', 'E']) => {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Value::SingleQuotedString(text) => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        Value::Boolean(truth) => truth.to_string(),
        Value::Null => "NULL".to_owned(),
        other => other.to_string(),
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
    if function.over.is_some() || function.filter.is_some() {
        return function.to_string();
    }
    let distinct = match &function.args {
        FunctionArguments::List(list) => list.duplicate_treatment == Some(DuplicateTreatment::Distinct),
        _ => false,
    };
    let name = match (name.as_str(), distinct) {
        ("count", true) => "uniqExact".to_owned(),
        (_, true) => format!("{name}Distinct"),
        (_, false) => name,
    };
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
    if name == "tuple"
        && crate::rewrite::syntax::plain_arguments(function).is_some_and(|a| a.iter().all(is_literal))
    {
        return format!("({})", arguments.join(", "));
    }
    format!("{name}({})", arguments.join(", "))
}
