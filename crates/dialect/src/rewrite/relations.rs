//! FROM: files and dictionaries as tables.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, SetExpr, TableAliasColumnDef, TableFactor,
    TableFunctionArgs,
};

use super::syntax::text;
use super::{Extras, Scope};
use crate::error::{Error, Result};
use crate::full_name::FullName;

/// The table function that reads a dictionary.
pub const DICTIONARY_FUNCTION: &str = "dictionary";

/// Table functions that are not rewritten.
const TABLE_FUNCTIONS: [&str; 1] = ["numbers"];

/// A file that a query reads as a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTable {
    /// The table's name in the query.
    pub table: String,
    /// The file's path, as written.
    pub path: PathBuf,
    /// The format, if given; otherwise the file's name tells.
    pub format: Option<String>,
}

/// Refuses FINAL and SAMPLE, which no table here has, after a table or a query. The parser reads FINAL as an alias.
///
/// # Errors
/// ILLEGAL_FINAL, SAMPLING_NOT_SUPPORTED, and UNSUPPORTED_METHOD after a query.
pub fn check(factor: &TableFactor, database: &str) -> Result<()> {
    let (alias, sample) = match factor {
        TableFactor::Table { alias, sample, .. } | TableFactor::Derived { alias, sample, .. } => {
            (alias, sample)
        }
        _ => return Ok(()),
    };
    let is_final = alias.as_ref().is_some_and(|alias| {
        let name = &alias.name;
        !alias.explicit && name.quote_style.is_none() && name.value.eq_ignore_ascii_case("FINAL")
    });
    if !is_final && sample.is_none() {
        return Ok(());
    }
    let is_table = matches!(factor, TableFactor::Table { .. });
    let what = if is_final { "FINAL" } else { "SAMPLE" };
    let name = full_name(factor, database);
    let name = name.map_or_else(|| "of a table function".to_owned(), |name| name.to_string());
    Err(match (is_table, is_final) {
        (true, true) => Error::illegal_final(format!("Storage {name} doesn't support FINAL")),
        (true, false) => Error::sampling_not_supported(format!("Storage {name} doesn't support sampling")),
        (false, _) => Error::unsupported_method(format!(
            "Table expression modifiers {what} are not supported for subquery"
        )),
    })
}

/// Names the columns of `(VALUES (1, 'a')) AS t` as ClickHouse does: c1, c2 and so on.
pub fn name_values(factor: &mut TableFactor) {
    let TableFactor::Derived { subquery, alias: Some(alias), .. } = factor else { return };
    let SetExpr::Values(values) = subquery.body.as_mut() else { return };
    // A row with a single tuple is a row of the tuple's elements.
    if values.rows.iter().all(|row| matches!(row.content.as_slice(), [Expr::Tuple(_)])) {
        for row in &mut values.rows {
            if let Some(Expr::Tuple(items)) = row.content.pop() {
                row.content = items;
            }
        }
    }
    let count = values.rows.first().map_or(0, |row| row.content.len());
    if alias.columns.is_empty() {
        let column = |at| TableAliasColumnDef::from_name(format!("c{at}"));
        alias.columns = (1..=count).map(column).collect();
    }
}

/// Replaces `'x.csv'`, `file('x.csv', 'CSVWithNames')` and `dictionary('db.d')` by plain table names.
pub fn rewrite(factor: &mut TableFactor, scope: &dyn Scope, extras: &mut Extras) -> Result<()> {
    let TableFactor::Table { name, args, .. } = factor else { return Ok(()) };
    let [part] = name.0.as_slice() else { return Ok(()) };
    let Some(ident) = part.as_ident() else { return Ok(()) };
    match (ident.quote_style, args.as_ref()) {
        (Some('\''), None) => {
            let table = add(&mut extras.files, &ident.value, None);
            *name = table;
        }
        (None, Some(call)) if ident.value == "file" => {
            let texts = literals(call, "file")?;
            let [path, rest @ ..] = texts.as_slice() else {
                return Err(Error::wrong_argument_count("Table function file requires a path"));
            };
            *name = add(&mut extras.files, path, rest.first().cloned());
            *args = None;
        }
        (None, Some(call)) if ident.value == DICTIONARY_FUNCTION => {
            if call.args.len() != 1 {
                let what = "Table function dictionary requires one argument: the dictionary's name";
                return Err(Error::wrong_argument_count(what));
            }
            let dictionary = scope.dictionary(&literals(call, DICTIONARY_FUNCTION)?.concat())?;
            let parts = [&dictionary.database, &dictionary.name];
            *name = ObjectName::from(parts.map(|part| Ident::with_quote('"', part)).to_vec());
            *args = None;
            extras.dictionaries.push(dictionary);
        }
        (None, Some(_)) if !TABLE_FUNCTIONS.contains(&ident.value.as_str()) => {
            return Err(Error::unknown_function(format!("Unknown table function {}", ident.value)));
        }
        _ => {}
    }
    Ok(())
}

/// The full name of a plain table.
pub fn full_name(factor: &TableFactor, database: &str) -> Option<FullName> {
    let TableFactor::Table { name, args: None, .. } = factor else { return None };
    let parts: Option<Vec<&str>> =
        name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.as_str())).collect();
    match parts?.as_slice() {
        [name] => Some(FullName::new(database, *name)),
        [.., database, name] => Some(FullName::new(*database, *name)),
        [] => None,
    }
}

/// An unguessable name for a table that one query reads: statements may name any table.
pub fn secret_name() -> String {
    let half = || RandomState::new().hash_one(());
    format!("lent {:016x}{:016x}", half(), half())
}

fn add(files: &mut Vec<FileTable>, path: &str, format: Option<String>) -> ObjectName {
    let table = secret_name();
    files.push(FileTable { table: table.clone(), path: path.into(), format });
    ObjectName::from(vec![Ident::with_quote('"', table)])
}

fn literals(call: &TableFunctionArgs, function: &str) -> Result<Vec<String>> {
    let literal = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => match expr {
            Expr::Identifier(ident) => Some(ident.value.clone()),
            Expr::CompoundIdentifier(parts) => {
                Some(parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join("."))
            }
            expr => text(expr).map(str::to_owned),
        },
        _ => None,
    };
    call.args.iter().map(literal).collect::<Option<Vec<String>>>().ok_or_else(|| {
        Error::bad_arguments(format!("Arguments of table function {function} must be constant strings"))
    })
}
