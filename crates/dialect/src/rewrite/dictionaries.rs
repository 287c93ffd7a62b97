//! Calls of `dictGet` and its family.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Function, Visit, Visitor};

use super::syntax::{
    CONSTANT_SUFFIX, argument, argument_mut, arguments_mut, name_of, plain_arguments, rename, string, text,
};
use super::{Named, Scope};
use crate::error::{Error, Result};
use crate::full_name::FullName;
use crate::functions::names::{self, Implementation};

/// Separates the names of several attributes in one literal.
pub const ATTRIBUTE_SEPARATOR: &str = "\u{1f}";

/// The functions without an attribute argument.
const WITHOUT_ATTRIBUTE: [&str; 6] =
    ["dictGetChildren", "dictGetDescendants", "dictGetHierarchy", "dictGetRoot", "dictHas", "dictIsIn"];

/// Whether a name is one of these functions.
pub fn is_called(name: &str) -> bool {
    names::find(name).is_some_and(|known| known.by == Implementation::Dictionary)
}

/// Brings a dictionary call into the form that the functions take: the dictionary's full name and the attributes as
/// string literals (several in one, separated by [`ATTRIBUTE_SEPARATOR`]), and another function name for a call with
/// constant arguments. Returns the dictionary that is called.
pub fn rewrite(function: &mut Function, scope: &dyn Scope) -> Result<Named> {
    let name = name_of(function).unwrap_or_default().to_owned();
    let called = full_name(function, scope)?.map_or(Named::AnyDictionary, Named::Object);
    let Some(arguments) = arguments_mut(function) else { return Ok(called) };
    let has_attribute = !WITHOUT_ATTRIBUTE.contains(&name.as_str());
    let key = if has_attribute { 2 } else { 1 };
    for (at, given) in arguments.iter().filter_map(argument).take(key).enumerate() {
        if matches!(given, Expr::Function(function) if name_of(function) == Some("materialize")) {
            let what = format!("Argument {} of function {name} must be a constant string", at + 1);
            return Err(Error::illegal_type(what));
        }
    }
    if has_attribute && let Some(attributes) = arguments.get_mut(1).and_then(argument_mut) {
        if let Some(names) = tuple_of_names(attributes, scope.database()) {
            *attributes = string(&names.join(ATTRIBUTE_SEPARATOR));
        } else if let Some(name) = constant_name(attributes, scope.database()) {
            *attributes = string(&name);
        }
    }
    let constant = arguments.iter().skip(key).filter_map(argument).all(is_constant);
    rename(function, &if constant { format!("{name}{CONSTANT_SUFFIX}") } else { name });
    Ok(called)
}

/// Replaces the first argument of a call by the full name of the dictionary, and returns it.
fn full_name(function: &mut Function, scope: &dyn Scope) -> Result<Option<FullName>> {
    let first = arguments_mut(function).and_then(|arguments| arguments.first_mut().and_then(argument_mut));
    let Some(named) = first else { return Ok(None) };
    let full = match &*named {
        Expr::Identifier(ident) => scope.dictionary(&ident.value)?,
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [database, name] => FullName::new(&database.value, &name.value),
            parts => {
                let parts: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                scope.dictionary(&parts.join("."))?
            }
        },
        expr => match constant_name(expr, scope.database()) {
            Some(text) => scope.dictionary(&text)?,
            None => return Ok(None),
        },
    };
    *named = string(&full.to_string());
    Ok(Some(full))
}

/// The value of a text, or of texts and the current database concatenated.
fn constant_name(expr: &Expr, database: &str) -> Option<String> {
    match expr {
        Expr::Nested(inner) => constant_name(inner, database),
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
            Some(constant_name(left, database)? + &constant_name(right, database)?)
        }
        Expr::Function(function) => match name_of(function)? {
            "concat" => plain_arguments(function)?.iter().map(|part| constant_name(part, database)).collect(),
            "currentDatabase" | "current_database" => Some(database.to_owned()),
            _ => None,
        },
        expr => text(expr).map(str::to_owned),
    }
}

/// Attributes given as `('a', 'b')` or `tuple('a', 'b')`, each prefixed by the separator.
fn tuple_of_names(expr: &Expr, database: &str) -> Option<Vec<String>> {
    let items = match expr {
        Expr::Tuple(items) => items.clone(),
        Expr::Function(function) if name_of(function) == Some("tuple") => plain_arguments(function)?,
        _ => return None,
    };
    let names: Option<Vec<String>> = items.iter().map(|item| constant_name(item, database)).collect();
    names.filter(|names| !names.is_empty()).map(|names| std::iter::once(String::new()).chain(names).collect())
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
