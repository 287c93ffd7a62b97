//! What SQL sources share: the SELECT that a structure asks for.

use crate::config::Select;
use crate::definition::Structure;

/// Stands for the condition on the keys in QUERY.
const PLACEHOLDER: &str = "{condition}";

/// One column of the SELECT: an expression, and the name it goes by.
pub(super) struct SelectColumn {
    pub expression: String,
    pub name: String,
}

/// Key columns, then attributes; an attribute with EXPRESSION is that expression.
pub(super) fn columns(structure: &Structure) -> Vec<SelectColumn> {
    let keys = structure
        .key_columns()
        .into_iter()
        .map(|key| SelectColumn { expression: quote(&key.name), name: key.name });
    let attributes = structure.attributes.iter().map(|attribute| SelectColumn {
        expression: match &attribute.expression {
            Some(expression) => format!("({expression})"),
            None => quote(&attribute.name),
        },
        name: attribute.name.clone(),
    });
    keys.chain(attributes).collect()
}

/// `SELECT list FROM .. WHERE ..`. Without a condition: every row. WHERE is put in parentheses, so that an OR
/// in it stays inside.
pub(super) fn statement(
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
            (qualified(schema, table), Vec::from_iter(condition.map(str::to_string)))
        }
    };
    conditions.extend(select.filter.as_ref().map(|filter| format!("({filter})")));
    match conditions.is_empty() {
        true => format!("SELECT {list} FROM {from}"),
        false => format!("SELECT {list} FROM {from} WHERE {}", conditions.join(" AND ")),
    }
}

/// `"schema"."table"`; without a schema of its own, a `schema.table` is cut at the point.
fn qualified(schema: Option<&str>, table: &str) -> String {
    match schema.or_else(|| table.split_once('.').map(|(schema, _)| schema)) {
        Some(name) if schema.is_none() => format!("{}.{}", quote(name), quote(&table[name.len() + 1..])),
        Some(name) => format!("{}.{}", quote(name), quote(table)),
        None => quote(table),
    }
}

/// An identifier in double quotes.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parenthesises_where_and_quotes_names() {
        let mut select =
            Select { table: Some("t\"x".into()), query: None, filter: Some("x > 0 OR y = 1".into()) };
        assert_eq!(
            statement(&select, None, "\"v\"", Some("\"id\" IN (1)")),
            "SELECT \"v\" FROM \"t\"\"x\" WHERE \"id\" IN (1) AND (x > 0 OR y = 1)"
        );
        assert_eq!(statement(&select, None, "v", None), "SELECT v FROM \"t\"\"x\" WHERE (x > 0 OR y = 1)");
        select = Select { table: Some("s.t".into()), ..Select::default() };
        assert_eq!(statement(&select, None, "v", None), "SELECT v FROM \"s\".\"t\"");
        assert_eq!(statement(&select, Some("p"), "v", None), "SELECT v FROM \"p\".\"s.t\"");
    }

    #[test]
    fn puts_the_condition_into_the_query_or_around_it() {
        let with = |query: &str| Select { query: Some(query.into()), ..Select::default() };
        assert_eq!(
            statement(&with("SELECT * FROM t WHERE {condition} AND a;"), None, "v", Some("k = 1")),
            "SELECT v FROM (SELECT * FROM t WHERE k = 1 AND a) AS granary_query"
        );
        assert_eq!(
            statement(&with("SELECT 1"), None, "v", Some("k = 1")),
            "SELECT v FROM (SELECT 1) AS granary_query WHERE k = 1"
        );
        assert_eq!(
            statement(&with("SELECT * FROM t WHERE {condition}"), None, "v", None),
            "SELECT v FROM (SELECT * FROM t WHERE 1 = 1) AS granary_query"
        );
    }
}
