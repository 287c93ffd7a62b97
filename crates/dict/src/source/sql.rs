//! What SQL sources share: the SELECT that a structure asks for.

use super::rows::Rows;
use super::select::{Select, Updates};
use super::update_stamp::{self, UpdateStamp};
use super::{Changes, NewestChange};
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::limits::CHANGES_MAX;
use crate::types::DataType;
use arrow::array::{Array, AsArray};

/// How a server wants names and strings quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// PostgreSQL: names in double quotes, doubled inside.
    Standard,
    /// SQLite: the same, with functions of its own for dates.
    Sqlite,
    /// MySQL and MariaDB: names in backticks, doubled inside; backslashes in strings.
    Mysql,
    /// ClickHouse: names in backticks; backslashes in both.
    Clickhouse,
}

/// Stands for the condition on the keys in QUERY.
const PLACEHOLDER: &str = "{condition}";

/// Julian days of the years 1900 to 2200.
const JULIAN_DAYS: [u32; 2] = [2_415_020, 2_524_594];

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
            Some(expression) => enclosed(expression),
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
            (format!("{} AS granary_query", enclosed(&query)), Vec::from_iter(outside))
        }
        (None, table) => {
            let table = table.as_deref().unwrap_or_default();
            (qualified(dialect, schema, table), Vec::from_iter(condition.map(str::to_string)))
        }
    };
    conditions.extend(select.filter.as_deref().map(enclosed));
    match conditions.is_empty() {
        true => format!("SELECT {list} FROM {from}"),
        false => format!("SELECT {list} FROM {from} WHERE {}", conditions.join(" AND ")),
    }
}

/// SQL of the user's in parentheses. It may end in a comment, which ends with its line.
fn enclosed(sql: &str) -> String {
    format!("({sql}\n)")
}

/// Statements that find changed rows (UPDATE_FIELD).
pub(super) struct UpdateStatements {
    dialect: Dialect,
    /// Without its WHERE: a row that a change moves out of it has changed, too.
    select: Select,
    schema: Option<String>,
    updates: Updates,
    /// The key columns, as the source's other statements list them.
    keys: String,
}

impl UpdateStatements {
    /// `None`: the definition has no UPDATE_FIELD.
    pub fn new(
        dialect: Dialect,
        select: &Select,
        schema: Option<&str>,
        keys: &[String],
    ) -> Option<UpdateStatements> {
        Some(UpdateStatements {
            dialect,
            updates: select.updates.clone()?,
            select: Select { filter: None, ..select.clone() },
            schema: schema.map(str::to_string),
            keys: keys.join(", "),
        })
    }

    /// The latest change, how many rows are as late as `watermark`, and the next watermark, each as text.
    fn newest_change(&self, watermark: Option<&str>) -> String {
        let field = self.dialect.name(&self.updates.field);
        let lag = self.updates.lag_after(watermark);
        let latest = format!("max({field})");
        let next = match (lag, self.dialect) {
            (0, _) => latest.clone(),
            // A text whose earlier time sorts after it has no next watermark.
            (_, Dialect::Sqlite) => {
                let earlier = format!("datetime({latest}, '-{lag} seconds')");
                let number = earlier_number(&latest, lag);
                format!(
                    "CASE WHEN typeof({latest}) <> 'text' THEN {number} WHEN {earlier} <= {latest} THEN {earlier} END"
                )
            }
            (_, Dialect::Standard) => format!("{latest} - interval '{lag} seconds'"),
            (_, Dialect::Mysql | Dialect::Clickhouse) => format!("{latest} - INTERVAL {lag} SECOND"),
        };
        let text = |expression: &str| match self.dialect {
            Dialect::Standard => format!("CAST({expression} AS text)"),
            // A cast to text would have fewer digits than a REAL.
            Dialect::Sqlite => format!(
                "CASE typeof({expression}) WHEN 'real' THEN printf('%!.17g', {expression}) ELSE CAST({expression} AS text) END"
            ),
            Dialect::Mysql => format!("CAST({expression} AS char)"),
            Dialect::Clickhouse => format!("toString({expression})"),
        };
        let greatest = |expression: &str| match self.dialect {
            // In ClickHouse the maximum of no rows is 0.
            Dialect::Clickhouse => format!("if(count() = 0, NULL, {})", text(expression)),
            _ => text(expression),
        };
        // Without a watermark all rows would have to be counted, for a number that is not used.
        let count = if watermark.is_some() { "count(*)" } else { "0" };
        let list = [greatest(&latest), text(count), greatest(&next)].join(", ");
        statement(self.dialect, &self.select, self.schema.as_deref(), &list, self.since(watermark).as_deref())
    }

    fn changed(&self, watermark: &str) -> String {
        let since = self.since(Some(watermark));
        let all = statement(self.dialect, &self.select, self.schema.as_deref(), &self.keys, since.as_deref());
        format!("{all} LIMIT {}", CHANGES_MAX + 1)
    }

    fn since(&self, watermark: Option<&str>) -> Option<String> {
        let watermark = watermark?;
        let literal = match update_stamp::number(watermark) {
            // PostgreSQL reads a string as what the column is.
            Some(_) if self.dialect != Dialect::Standard => watermark.to_string(),
            _ => self.dialect.string(watermark),
        };
        Some(format!("{} >= {literal}", self.dialect.name(&self.updates.field)))
    }

    /// Asks with `fill`, which puts the rows of a statement into columns.
    pub fn ask_newest_change(
        &self,
        watermark: Option<&str>,
        fill: impl FnOnce(&str, &mut Rows) -> Result<(), DictError>,
    ) -> Result<NewestChange, DictError> {
        let text = DataType::Nullable(Box::new(DataType::String));
        let columns = ["latest", "count", "next"].map(|name| (name.to_string(), text.clone()));
        let mut rows = Rows::of_columns(&columns);
        fill(&self.newest_change(watermark), &mut rows)?;
        let texts = rows.take()?;
        let text = |column: usize| {
            let texts = texts[column].as_string::<i32>();
            (texts.len() == 1 && texts.is_valid(0)).then(|| texts.value(0).to_string())
        };
        let newest =
            NewestChange { latest: text(0), count: text(1), next: text(2), ..NewestChange::default() };
        let Some(latest) = &newest.latest else { return Ok(newest) };
        self.check_latest(latest, newest.next.as_deref())?;
        let is_shared = newest.count.as_ref().is_some_and(|count| count != "1");
        let UpdateStamp { at, unit_seconds } = UpdateStamp::of_text(latest, is_shared);
        Ok(NewestChange { at, unit_seconds, ..newest })
    }

    /// Refuses a latest change after which later ones would not be found.
    fn check_latest(&self, latest: &str, next: Option<&str>) -> Result<(), DictError> {
        let Updates { field, lag_seconds, .. } = &self.updates;
        let is_number = |text| update_stamp::number(text).is_some();
        let problem = match next {
            _ if update_stamp::has_offset(latest) => {
                "times with an offset are not in the order of their texts; keep them in UTC".to_string()
            }
            Some(next) if *lag_seconds == 0 || is_number(next) || !is_number(latest) => return Ok(()),
            _ if is_number(latest) => update_stamp::no_lag(*lag_seconds),
            _ => format!("UPDATE_LAG {lag_seconds} can be taken only from times such as 2026-01-31 12:30:00"),
        };
        let text = format!("UPDATE_FIELD {field} is '{latest}': {problem}");
        Err(DictError::new(Code::TypeMismatch, text))
    }

    /// Asks for the keys of rows that are as late as a watermark.
    pub fn ask_changes(
        &self,
        structure: &Structure,
        watermark: &str,
        fill: impl FnOnce(&str, &mut Rows) -> Result<(), DictError>,
    ) -> Result<Changes, DictError> {
        // A key that no lookup can ask for does not hide other changes.
        let mut rows = Rows::of_key(structure).null_for_invalid();
        fill(&self.changed(watermark), &mut rows)?;
        match rows.len() > CHANGES_MAX {
            true => Ok(Changes::TooMany),
            false => Ok(Changes::Keys(rows.take()?)),
        }
    }
}

/// A number of SQLite's, `seconds` earlier: a time since 1970 or a Julian day. NULL if it is neither, as its unit is
/// unknown.
fn earlier_number(number: &str, seconds: u64) -> String {
    let [first, end] = update_stamp::UNIX_SECONDS;
    let unix = update_stamp::UNIX_UNITS.map(|units| {
        let (first, end) = (first * units, end * units);
        format!("WHEN {number} >= {first} AND {number} < {end} THEN {number} - {seconds} * {units} ")
    });
    let [first, end] = JULIAN_DAYS;
    format!(
        "CASE WHEN typeof({number}) NOT IN ('integer', 'real') THEN NULL {}WHEN typeof({number}) = 'real' AND {number} \
         >= {first} AND {number} < {end} THEN {number} - {seconds} / 86400.0 END",
        unix.concat()
    )
}

/// A type of moments without its time zone: as a session in UTC writes values with a zone.
pub(super) fn in_utc(data_type: &DataType) -> DataType {
    match data_type {
        DataType::DateTime { .. } => DataType::DateTime { tz: None },
        DataType::DateTime64 { precision, .. } => DataType::DateTime64 { precision: *precision, tz: None },
        DataType::Nullable(inner) => DataType::Nullable(Box::new(in_utc(inner))),
        plain => plain.clone(),
    }
}

/// Whether a type is one of moments.
pub(super) fn is_moment(data_type: &DataType) -> bool {
    matches!(data_type, DataType::DateTime { .. } | DataType::DateTime64 { .. })
}

/// A type whose moments, also those inside of it, are in UTC: its texts are unambiguous, where a local time may come
/// twice, and one without a zone is that of the reader.
pub(super) fn with_utc_zone(data_type: &DataType) -> DataType {
    let utc = || Some("UTC".to_string());
    data_type.with_parts(&|plain: &DataType| match plain {
        DataType::DateTime { .. } => DataType::DateTime { tz: utc() },
        DataType::DateTime64 { precision, .. } => DataType::DateTime64 { precision: *precision, tz: utc() },
        other => other.clone(),
    })
}

/// Names of the columns of a statement's own table of keys, in quotes: no column of a source has one, for in a subquery
/// a name means the innermost column that has it.
pub(super) fn key_names(width: usize) -> Vec<String> {
    (0..width).map(|i| Dialect::Standard.name(&format!("granary key {i}"))).collect()
}

/// The error of a source without UPDATE_FIELD.
pub(super) fn no_updates() -> DictError {
    DictError::new(Code::UnsupportedMethod, "The source has no UPDATE_FIELD")
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
            Dialect::Standard | Dialect::Sqlite => format!("\"{}\"", name.replace('"', "\"\"")),
            Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
            Dialect::Clickhouse => format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`")),
        }
    }

    /// A string in quotes. The connection is UTF-8, in which no byte
    /// of a longer character looks like a quote or a backslash. For MySQL it is divided into several strings, which the
    /// server joins, before what its client library could take for the name of a parameter or the end of a comment.
    pub fn string(self, text: &str) -> String {
        if matches!(self, Dialect::Standard | Dialect::Sqlite) {
            return format!("'{}'", text.replace('\'', "''"));
        }
        let mut quoted = String::with_capacity(text.len() + 2);
        quoted.push('\'');
        let mut before = None;
        for character in text.chars() {
            let is_divided = match (before.replace(character), character) {
                (Some(':'), 'a'..='z' | '_') | (Some('*'), '/') => self == Dialect::Mysql,
                _ => false,
            };
            if is_divided {
                quoted += "' '";
            }
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

    /// The client library of MySQL could take `:b` and `*/` for something else.
    #[test]
    fn strings_of_mysql_are_divided() {
        let strings = ["k:v", "::_a*/", ":1", "it's", "**//", ":"].map(|text| Dialect::Mysql.string(text));
        assert_eq!(strings, ["'k:' 'v'", "'::' '_a*' '/'", "':1'", "'it\\'s'", "'**' '//'", "':'"]);
        assert_eq!(Dialect::Clickhouse.string("k:v*/"), "'k:v*/'");
    }

    #[test]
    fn parenthesises_where_and_quotes_names() {
        let mut select =
            Select { table: Some("t\"x".into()), filter: Some("x > 0 OR y = 1".into()), ..Select::default() };
        assert_eq!(
            statement(Dialect::Standard, &select, None, "\"v\"", Some("\"id\" IN (1)")),
            "SELECT \"v\" FROM \"t\"\"x\" WHERE \"id\" IN (1) AND (x > 0 OR y = 1\n)"
        );
        assert_eq!(
            statement(Dialect::Standard, &select, None, "v", None),
            "SELECT v FROM \"t\"\"x\" WHERE (x > 0 OR y = 1\n)"
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
            "SELECT v FROM (SELECT * FROM t WHERE k = 1 AND a\n) AS granary_query"
        );
        assert_eq!(
            statement(Dialect::Standard, &with("SELECT 1"), None, "v", Some("k = 1")),
            "SELECT v FROM (SELECT 1\n) AS granary_query WHERE k = 1"
        );
        assert_eq!(
            statement(Dialect::Standard, &with("SELECT * FROM t WHERE {condition}"), None, "v", None),
            "SELECT v FROM (SELECT * FROM t WHERE 1 = 1\n) AS granary_query"
        );
    }
}
