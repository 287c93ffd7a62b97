//! What SQL sources share: the SELECT that a structure asks for.

use crate::config::Select;
use crate::definition::Structure;

/// How a server wants names and strings quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// PostgreSQL and SQLite: names in double quotes, doubled inside.
    Standard,
    /// MySQL and MariaDB: names in backticks, doubled inside; backslashes in strings.
    Mysql,
    /// ClickHouse: names in backticks; backslashes in both.
    Clickhouse,
}

/// Stands for the condition on the keys in QUERY.
const PLACEHOLDER: &str = "{condition}";

/// One column of the SELECT: an expression, and the name it goes by.
pub(super) struct SelectColumn {
    pub expression: String,
    pub name: String,
}

/// Key columns, then attributes; an attribute with EXPRESSION is that expression.
pub(super) fn columns(dialect: Dialect, structure: &Structure) -> Vec<SelectColumn> {
    let keys = structure
        .key_columns()
        .into_iter()
        .map(|key| SelectColumn { expression: dialect.name(&key.name), name: key.name });
    let attributes = structure.attributes.iter().map(|attribute| SelectColumn {
        expression: match &attribute.expression {
            Some(expression) => format!("({expression})"),
            None => dialect.name(&attribute.name),
        },
        name: attribute.name.clone(),
    });
    keys.chain(attributes).collect()
}

/// `SELECT list FROM .. WHERE ..`. Without a condition: every row. WHERE is put in parentheses, so that an OR
/// in it stays inside.
pub(super) fn statement(
    dialect: Dialect,
    select: &Select,
    schema: Option<&str>,
    list: &str,
    condition: Option<&str>,
) -> String {
    let (from, mut conditions) = match (&select.query, &select.table) {
        (Some(query), _) => {
            let query = query.trim().trim_end_matches(';');
            let inside = query.contains(PLACEHOLDER);
            let query = query.replace(PLACEHOLDER, condition.unwrap_or("1 = 1"));
            let outside = condition.filter(|_| !inside).map(str::to_string);
            (format!("({query}) AS granary_query"), Vec::from_iter(outside))
        }
        (None, table) => {
            let table = table.as_deref().unwrap_or_default();
            (qualified(dialect, schema, table), Vec::from_iter(condition.map(str::to_string)))
        }
    };
    conditions.extend(select.filter.as_ref().map(|filter| format!("({filter})")));
    match conditions.is_empty() {
        true => format!("SELECT {list} FROM {from}"),
        false => format!("SELECT {list} FROM {from} WHERE {}", conditions.join(" AND ")),
    }
}

/// `"schema"."table"`; without a schema of its own, a `schema.table` is cut at the point.
fn qualified(dialect: Dialect, schema: Option<&str>, table: &str) -> String {
    match (schema, table.split_once('.')) {
        (Some(schema), _) => format!("{}.{}", dialect.name(schema), dialect.name(table)),
        (None, Some((schema, table))) => format!("{}.{}", dialect.name(schema), dialect.name(table)),
        (None, None) => dialect.name(table),
    }
}

impl Dialect {
    /// An identifier in quotes.
    pub fn name(self, name: &str) -> String {
        match self {
            Dialect::Standard => format!("\"{}\"", name.replace('"', "\"\"")),
            Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
            Dialect::Clickhouse => format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`")),
        }
    }

    /// A string in quotes, for the dialects that take keys as text. The connection is UTF-8, in which no byte
    /// of a longer character looks like a quote or a backslash.
    pub fn string(self, text: &str) -> String {
        let mut quoted = String::with_capacity(text.len() + 2);
        quoted.push('\'');
        for character in text.chars() {
            match character {
                '\0' => quoted += "\\0",
                '\'' | '\\' => quoted.extend(['\\', character]),
                other => quoted.push(other),
            }
        }
        quoted.push('\'');
        quoted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parenthesises_where_and_quotes_names() {
        let mut select =
            Select { table: Some("t\"x".into()), query: None, filter: Some("x > 0 OR y = 1".into()) };
        assert_eq!(
            statement(Dialect::Standard, &select, None, "\"v\"", Some("\"id\" IN (1)")),
            "SELECT \"v\" FROM \"t\"\"x\" WHERE \"id\" IN (1) AND (x > 0 OR y = 1)"
        );
        assert_eq!(
            statement(Dialect::Standard, &select, None, "v", None),
            "SELECT v FROM \"t\"\"x\" WHERE (x > 0 OR y = 1)"
        );
        select = Select { table: Some("s.t".into()), ..Select::default() };
        assert_eq!(statement(Dialect::Standard, &select, None, "v", None), "SELECT v FROM \"s\".\"t\"");
        assert_eq!(
            statement(Dialect::Standard, &select, Some("p"), "v", None),
            "SELECT v FROM \"p\".\"s.t\""
        );
    }

    #[test]
    fn puts_the_condition_into_the_query_or_around_it() {
        let with = |query: &str| Select { query: Some(query.into()), ..Select::default() };
        assert_eq!(
            statement(
                Dialect::Standard,
                &with("SELECT * FROM t WHERE {condition} AND a;"),
                None,
                "v",
                Some("k = 1")
            ),
            "SELECT v FROM (SELECT * FROM t WHERE k = 1 AND a) AS granary_query"
        );
        assert_eq!(
            statement(Dialect::Standard, &with("SELECT 1"), None, "v", Some("k = 1")),
            "SELECT v FROM (SELECT 1) AS granary_query WHERE k = 1"
        );
        assert_eq!(
            statement(Dialect::Standard, &with("SELECT * FROM t WHERE {condition}"), None, "v", None),
            "SELECT v FROM (SELECT * FROM t WHERE 1 = 1) AS granary_query"
        );
    }
}
