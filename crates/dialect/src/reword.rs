//! Rewords DataFusion's errors as ClickHouse's.
//!
//! Errors of columns, casts and memory have their own variants. Other errors of a query are texts only: [`PLAN`],
//! [`INTERNAL`], [`CAST`], [`UNNEST`] and [`DOT`] are all the texts that are recognised, as DataFusion 55.2 and Arrow
//! 59 write them. `sql/tests/sql/errors.rs` has a query for each, and fails when one is written differently. An unknown
//! text keeps its own words.

use std::str::FromStr;

use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError};

use crate::error::Error;
use crate::functions::names;
use crate::rewrite::clickhouse_name;
use crate::text::shown_name;
use crate::types::plain_name;

/// Columns listed in the error of an unknown one.
const KNOWN_MAX: usize = 10;

/// A text of DataFusion's, and its error here.
struct Text {
    /// The constant parts of the text, in order; an empty last one matches the text's end.
    marks: &'static [&'static str],
    /// Makes the error from the parts after each mark, up to the next one.
    error: fn(&[&str]) -> Option<Error>,
}

/// Texts of `DataFusionError::Plan`; the first match counts.
const PLAN: &[Text] = &[
    Text {
        marks: &["Invalid function '", "'"],
        error: |found| Some(names::unknown(clickhouse_name(found[0]))),
    },
    Text { marks: &["argument types '", ")'. You might"], error: |found| called(found[0]) },
    Text {
        marks: &["column \"", "\" must appear in the GROUP BY clause"],
        error: |found| Some(loose(found[0])),
    },
    Text {
        marks: &["subquery can only be used in Projection", ""],
        error: |_| {
            Some(Error::not_implemented(
                "IN (SELECT ..) is not known in ORDER BY: make it a column of SELECT, and order by its alias",
            ))
        },
    },
    Text { marks: &["require unique expression names", ""], error: |_| Some(repeated()) },
    Text {
        marks: &["Too many columns! The subquery should only return one column", ""],
        error: |_| Some(rows_among_rows()),
    },
];

/// Texts of `DataFusionError::Internal`.
const INTERNAL: &[Text] = &[
    Text {
        marks: &["Cannot run range queries on datatype: Struct", ""],
        error: |_| {
            Some(Error::not_implemented(
                "A window is not ordered by a tuple here, unless it has a frame of ROWS: ORDER BY its elements",
            ))
        },
    },
    Text {
        marks: &["Min/Max accumulator not implemented for type Map", ""],
        error: |_| {
            Some(Error::not_implemented("min and max of maps are not known here: compare what they hold"))
        },
    },
];

/// Words of other texts of `DataFusionError::Plan` about types of arguments.
const ABOUT_TYPES: [&str; 2] = ["coerce", "signature"];

/// The text of `ArrowError::CastError` about an invalid number in a comparison.
const CAST: Text = Text {
    marks: &["Cannot cast string '", "' to value of ", " type"],
    error: |found| Some(no_number(found[0], found[1])),
};

/// The beginning of the text of `DataFusionError::NotImplemented` about arrayJoin outside of SELECT.
const UNNEST: &str = "Unnest should be rewritten to LogicalPlan::Unnest";

/// The beginning of the text of `DataFusionError::NotImplemented` about a word behind a dot that is no name, as `null`.
const DOT: &str = "Dot access not supported for non-string expr";

impl Text {
    fn read(&self, text: &str) -> Option<Error> {
        let (first, others) = self.marks.split_first()?;
        let (_, mut rest) = text.split_once(first)?;
        let mut found = Vec::with_capacity(others.len());
        for mark in others {
            let (between, behind) = if mark.is_empty() { (rest, "") } else { rest.split_once(mark)? };
            found.push(between);
            rest = behind;
        }
        (self.error)(&found)
    }
}

/// The error shown for one of DataFusion's that does not wrap one of ours.
pub fn reworded(error: &DataFusionError) -> Error {
    // The failed rule's name does not help.
    let root = error.find_root();
    let message = root.strip_backtrace();
    match root {
        DataFusionError::SQL(..) => Error::syntax_error(message),
        DataFusionError::SchemaError(reason, _) => {
            schema_error(reason).unwrap_or_else(|| Error::bad_arguments(message))
        }
        DataFusionError::ArrowError(reason, _) => {
            arrow_error(reason).unwrap_or_else(|| Error::bad_arguments(message))
        }
        DataFusionError::ResourcesExhausted(text) => Error::memory_limit_exceeded(memory_error(text)),
        DataFusionError::NotImplemented(text) if text.starts_with(UNNEST) => Error::not_implemented(
            "arrayJoin is known among the columns of SELECT and in GROUP BY: put it into a subquery, and the rest around it",
        ),
        DataFusionError::NotImplemented(text) if text.starts_with(DOT) => Error::not_implemented(
            "Subcolumns are elements of tuples, size0 of arrays and maps, and keys and values of maps here: write n IS NULL for n.null",
        ),
        DataFusionError::NotImplemented(_) => Error::not_implemented(message),
        DataFusionError::Internal(text) => match INTERNAL.iter().find_map(|known| known.read(text)) {
            Some(error) => error,
            None => Error::logical_error(message),
        },
        DataFusionError::Plan(text) => match PLAN.iter().find_map(|known| known.read(text)) {
            Some(error) => error,
            None if ABOUT_TYPES.iter().any(|word| text.contains(word)) => Error::illegal_type(message),
            None => Error::bad_arguments(message),
        },
        _ => Error::bad_arguments(message),
    }
}

/// The message when memory runs out: that of the limit, whichever operator hit it.
fn memory_error(text: &str) -> String {
    match text.find("Memory limit (") {
        Some(at) => text[at..].to_owned(),
        None => format!("Memory limit (total) exceeded: {text}"),
    }
}

/// The error about columns.
fn schema_error(error: &SchemaError) -> Option<Error> {
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
        SchemaError::DuplicateQualifiedField { .. } | SchemaError::DuplicateUnqualifiedField { .. } => {
            Some(repeated())
        }
    }
}

/// The error for two columns of one name that could not be told apart.
fn repeated() -> Error {
    Error::not_implemented(
        "Two columns of a SELECT have the same name, and one of them is of a `*`, a subquery or an aggregate: give one \
         another name with AS, or leave one out with * EXCEPT",
    )
}

/// The error for `(a, b) IN (SELECT a, b ..)`.
fn rows_among_rows() -> Error {
    Error::not_implemented(
        "Several columns are not looked for with IN among those of a subquery: join with it, as with SEMI JOIN, or \
         look for the tuple among tuples, as in (a, b) IN (SELECT (a, b) ..)",
    )
}

fn arrow_error(error: &ArrowError) -> Option<Error> {
    match error {
        ArrowError::CastError(text) => CAST.read(text),
        _ => None,
    }
}

/// The error for a text that is no number of the type with this Arrow name.
pub(crate) fn no_number(written: &str, name: &str) -> Error {
    let name = type_name(name);
    match name.starts_with("Float") && !begins_as_number(written) {
        true => Error::cannot_parse_number(format!(
            "Cannot read floating point value here: {written}: while converting '{written}' to {name}"
        )),
        false => Error::type_mismatch(format!("Cannot convert string '{written}' to type {name}")),
    }
}

/// Whether the text starts with a number: ClickHouse then reports trailing input, else no number.
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

/// `function(type, ..`
fn called(call: &str) -> Option<Error> {
    let (function, types) = call.split_once('(')?;
    Some(illegal_types(function, types))
}

/// The error for a column that is neither grouped by nor under an aggregate.
fn loose(column: &str) -> Error {
    let column = shown_name(column.rsplit_once('.').map_or(column, |(_, name)| name));
    Error::not_an_aggregate(format!(
        "Column '{column}' is not under aggregate function and not in GROUP BY keys"
    ))
}

fn illegal_types(function: &str, types: &str) -> Error {
    if types.is_empty() {
        let name = clickhouse_name(function);
        return Error::wrong_argument_count(format!(
            "Number of arguments for function {name} doesn't match: passed 0, should be 1 or more"
        ));
    }
    let types: Vec<String> = split_types(types).iter().map(|name| type_name(name)).collect();
    let name = clickhouse_name(function);
    Error::illegal_type(match types.as_slice() {
        [only] => format!("Illegal type {only} of argument of function {name}"),
        all => format!("Illegal types {} of arguments of function {name}", all.join(" and ")),
    })
}

/// ClickHouse's name of a type, from Arrow's.
fn type_name(name: &str) -> String {
    DataType::from_str(name).map_or_else(|_| name.to_owned(), |data_type| plain_name(&data_type))
}

/// Splits at commas that are not inside parentheses.
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
