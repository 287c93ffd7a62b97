//! DataFusion's errors in ClickHouse's words.
//!
//! DataFusion tells most of them apart by their texts alone. One that is not known here keeps its own.

use std::str::FromStr;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, SchemaError};

use crate::error::Error;
use crate::format::shown_name;
use crate::functions::names;
use crate::plan::{never_compared, no_common_type};
use crate::rewrite::clickhouse_name;
use crate::types::plain_name;

/// Columns that are named beside one that is unknown.
const KNOWN_MAX: usize = 10;

/// What is said where memory runs out: our own words for it, whatever operator it was that could not do without.
pub fn memory_error(text: &str) -> String {
    match text.find("Memory limit (") {
        Some(at) => text[at..].to_owned(),
        None => format!("Memory limit (total) exceeded: {text}"),
    }
}

/// An error about columns.
pub fn schema_error(error: &SchemaError) -> Option<Error> {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let mut known: Vec<String> = valid_fields.iter().map(column_name).collect();
            known.dedup();
            let more = if known.len() > KNOWN_MAX { ", ..." } else { "" };
            known.truncate(KNOWN_MAX);
            let hint = if known.is_empty() {
                String::new()
            } else {
                format!("; there are {}{more}", known.join(", "))
            };
            Some(Error::unknown_identifier(format!(
                "Unknown expression identifier `{}`{hint}",
                column_name(field)
            )))
        }
        SchemaError::AmbiguousReference { field } => Some(Error::ambiguous_identifier(format!(
            "Ambiguous identifier `{}`: more than one table has it",
            column_name(field)
        ))),
        _ => None,
    }
}

/// A text that was compared with a number and is none.
pub fn cast_error(text: &str) -> Option<Error> {
    let (written, name) =
        (between(text, "Cannot cast string '", "' to value of ")?, between(text, "' to value of ", " type")?);
    let name = type_name(name);
    Some(match name.starts_with("Float") && !begins_as_number(written) {
        true => Error::cannot_parse_number(format!(
            "Cannot read floating point value here: {written}: while converting '{written}' to {name}"
        )),
        false => Error::type_mismatch(format!("Cannot convert string '{written}' to type {name}")),
    })
}

/// Whether a text has a number in front. As in ClickHouse, that one is too long, and others are none.
fn begins_as_number(text: &str) -> bool {
    text.trim_start_matches(['+', '-', '.']).starts_with(|letter: char| letter.is_ascii_digit())
}

/// `table.column`; a table function has no name.
fn column_name(column: &Column) -> String {
    let name = shown_name(&column.name);
    match column.relation.as_ref().map(|relation| relation.table()).filter(|table| !table.ends_with("()")) {
        Some(table) => format!("{table}.{name}"),
        None => name.to_owned(),
    }
}

/// The function that an operator is.
const OPERATORS: &[(&str, &str)] =
    &[(" + ", "plus"), (" - ", "minus"), (" * ", "multiply"), (" / ", "divide"), (" % ", "modulo")];

/// The same for those that compare.
const COMPARISONS: &[(&str, &str)] = &[
    (" = ", "equals"),
    (" != ", "notEquals"),
    (" <= ", "lessOrEquals"),
    (" < ", "less"),
    (" >= ", "greaterOrEquals"),
    (" > ", "greater"),
];

/// An error found while a query was planned.
pub fn plan_error(text: &str) -> Option<Error> {
    if let Some(name) = between(text, "Invalid function '", "'") {
        return Some(names::unknown(clickhouse_name(name)));
    }
    if let Some(name) = between(text, "table function '", "' not found") {
        return Some(Error::unknown_function(format!("Unknown table function {name}")));
    }
    if let Some(name) = between(text, "table '", "' not found") {
        let name = name.trim_start_matches("granary.").trim_start_matches("default.");
        return Some(Error::unknown_table(format!("Unknown table expression identifier '{name}'")));
    }
    if let Some(function) = between(text, "satisfy a call to '", "'") {
        return Some(illegal_types(function, between(text, "coercion from ", " to the signature")?));
    }
    if let Some((_, compared)) = text.split_once("argument type for comparison operation ") {
        let found = COMPARISONS.iter().find_map(|(sign, name)| Some((compared.split_once(sign)?, *name)));
        let ((left, right), function) = found?;
        let (one, other) = (type_name(left), type_name(right));
        return Some(match (one == "String") != (other == "String") {
            true => no_common_type(&one, &other, function),
            false => never_compared(&one, &other, function),
        });
    }
    if let Some(operation) = between(text, "arithmetic expression ", " to valid types") {
        let found = OPERATORS.iter().find_map(|(sign, name)| Some((operation.split_once(sign)?, *name)));
        let ((left, right), function) = found?;
        return Some(illegal_types(function, &format!("{left}, {right}")));
    }
    if let Some(call) = between(text, "argument types '", "'. You might") {
        let (function, types) = call.strip_suffix(')')?.split_once('(')?;
        return Some(illegal_types(function, types));
    }
    if let Some(function) = between(text, "unction '", "' expects ") {
        let name = clickhouse_name(function);
        if let Some(given) = text.rsplit_once(" arguments but received ").map(|(_, given)| given) {
            let expected = between(text, "' expects ", " arguments")?;
            return Some(Error::wrong_argument_count(format!(
                "Number of arguments for function {name} doesn't match: passed {given}, should be {expected}"
            )));
        }
        return Some(illegal_types(function, text.rsplit_once(" but received ")?.1));
    }
    if text.contains("zero arguments") {
        return Some(no_arguments(between(text, "'", "'")?));
    }
    if text.contains("must appear in the GROUP BY clause") {
        let column = between(text, "column \"", "\" must")?;
        let column = shown_name(column.rsplit_once('.').map_or(column, |(_, name)| name));
        return Some(Error::not_an_aggregate(format!(
            "Column '{column}' is not under aggregate function and not in GROUP BY keys"
        )));
    }
    None
}

fn illegal_types(function: &str, types: &str) -> Error {
    if types.is_empty() {
        return no_arguments(function);
    }
    let types: Vec<String> = split_types(types).iter().map(|name| type_name(name)).collect();
    let name = clickhouse_name(function);
    Error::illegal_type(match types.as_slice() {
        [only] => format!("Illegal type {only} of argument of function {name}"),
        all => format!("Illegal types {} of arguments of function {name}", all.join(" and ")),
    })
}

fn no_arguments(function: &str) -> Error {
    let name = clickhouse_name(function);
    Error::wrong_argument_count(format!(
        "Number of arguments for function {name} doesn't match: passed 0, should be 1 or more"
    ))
}

/// Arrow's name of a type as ClickHouse's.
fn type_name(name: &str) -> String {
    DataType::from_str(name).map_or_else(|_| name.to_owned(), |data_type| plain_name(&data_type))
}

/// Apart by commas that are not inside parentheses.
fn split_types(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(behind).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_clickhouses() {
        for (text, code, message) in [
            ("Invalid function 'nosuch'", 46, "Function with name `nosuch` does not exist"),
            ("table 'granary.default.t' not found", 60, "Unknown table expression identifier 't'"),
            (
                "Failed to coerce arguments to satisfy a call to 'stddev_pop' function: coercion from Utf8 to the signature X failed",
                43,
                "Illegal type String of argument of function stddevPop",
            ),
            (
                "No function matches the given name and argument types 'replace(Utf8, Decimal128(3, 1))'. You might need",
                43,
                "Illegal types String and Decimal(3, 1) of arguments of function replace",
            ),
            (
                "Cannot infer common argument type for comparison operation Date32 >= Float64",
                43,
                "Illegal types of arguments (`Date`, `Float64`) of function `greaterOrEquals`",
            ),
            (
                "Cannot coerce arithmetic expression Utf8 + UInt8 to valid types",
                43,
                "Illegal types String and UInt8 of arguments of function plus",
            ),
            (
                "No function matches the given name and argument types 'lower(UInt8)'. You might need",
                43,
                "Illegal type UInt8 of argument of function lower",
            ),
            (
                "Function 'lower' expects 1 arguments but received 2",
                42,
                "Number of arguments for function lower doesn't match: passed 2, should be 1",
            ),
        ] {
            let error = plan_error(text).unwrap();
            assert_eq!((error.code, error.message.as_str()), (code, message));
        }
        assert_eq!(plan_error("something else"), None);
    }
}
