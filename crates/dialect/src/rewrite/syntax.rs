//! Small helpers to take syntax trees apart and to build them.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FormatClause, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Value,
};

/// Marks a dictionary function with only constant arguments: it must run when the query runs, not when it is planned.
pub const CONSTANT_SUFFIX: &str = "/constant";

/// A call of a function by its exact name.
pub fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Function(function(name, arguments))
}

/// A call of a function by its exact name, as a `Function`.
pub fn function(name: &str, arguments: Vec<Expr>) -> Function {
    Function {
        name: ObjectName::from(vec![Ident::with_quote('"', name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e))).collect(),
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    }
}

/// A function's name, if it is a single word.
pub fn name_of(function: &Function) -> Option<&str> {
    match function.name.0.as_slice() {
        [part] => part.as_ident().map(|ident| ident.value.as_str()),
        _ => None,
    }
}

/// Changes the function that is called.
pub fn rename(function: &mut Function, name: &str) {
    if let Expr::Function(named) = call(name, vec![]) {
        function.name = named.name;
    }
}

/// The arguments between a function's parentheses.
pub fn arguments(function: &Function) -> &[FunctionArg] {
    match &function.args {
        FunctionArguments::List(list) => &list.args,
        _ => &[],
    }
}

/// The arguments between a function's parentheses, mutable.
pub fn arguments_mut(function: &mut Function) -> Option<&mut Vec<FunctionArg>> {
    match &mut function.args {
        FunctionArguments::List(list) => Some(&mut list.args),
        _ => None,
    }
}

/// The expression of a plain argument.
pub fn argument(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// The expression of a plain argument, mutable.
pub fn argument_mut(argument: &mut FunctionArg) -> Option<&mut Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// All arguments, when all are plain.
pub fn plain_arguments(function: &Function) -> Option<Vec<Expr>> {
    arguments(function).iter().map(|a| argument(a).cloned()).collect()
}

/// The text of a string literal.
pub fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::Nested(inner) => text(inner),
        _ => None,
    }
}

/// A string literal.
pub fn string(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_owned()).with_empty_span())
}

/// `a AND b`.
pub fn both(left: Expr, right: Option<Expr>) -> Expr {
    match right {
        None => left,
        Some(right) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(left))),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(right))),
        },
    }
}

/// The name after FORMAT.
pub fn format_name(clause: &FormatClause) -> String {
    match clause {
        FormatClause::Identifier(name) => name.value.clone(),
        FormatClause::Null => "Null".to_owned(),
    }
}

/// A setting's value as text.
pub fn setting_value(value: &Expr) -> String {
    text(value).map_or_else(|| value.to_string(), str::to_owned)
}

/// Takes an expression out of its place; the placeholder left there must be overwritten.
pub fn taken(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.with_empty_span()))
}
