//! Functions that tell of the session: `currentDatabase()` and the like. Their calls become constants.

use datafusion::sql::sqlparser::ast::{Expr, Function, Value};

use super::syntax::{arguments, call, name_of, plain_arguments, string, text};
use crate::catalogue::Catalogue;
use crate::settings::value_of;

/// The ClickHouse whose behaviour is followed; clients choose what they send by it.
const CLICKHOUSE_VERSION: &str = "26.9.2.1";

/// Who asks, and where from.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// The database of names without one.
    pub database: &'a str,
    pub user: &'a str,
    /// Where names are looked up.
    pub catalogue: &'a Catalogue,
    /// What SET said.
    pub settings: &'a [(String, String)],
}

/// What a call is that depends on nothing but the session.
pub fn constant(function: &Function, asker: Asker<'_>) -> Option<Expr> {
    if name_of(function)? == "getSetting" {
        let arguments = plain_arguments(function)?;
        let value = value_of(text(arguments.first()?)?, asker.settings)?;
        let number = Value::Number(value.clone(), false);
        return Some(match value.parse::<u64>() {
            Ok(_) => Expr::value(number),
            Err(_) => string(&value),
        });
    }
    if !arguments(function).is_empty() {
        return None;
    }
    let text = match name_of(function)? {
        "currentDatabase" | "database" | "DATABASE" | "SCHEMA" => asker.database,
        "currentUser" | "user" | "USER" => asker.user,
        "version" | "VERSION" => CLICKHOUSE_VERSION,
        "timezone" | "timeZone" | "serverTimezone" | "serverTimeZone" => "UTC",
        // A connection over HTTP has none.
        "connectionId" | "connection_id" => {
            return Some(call("toUInt64", vec![Expr::value(Value::Number("0".to_owned(), false))]));
        }
        "hostName" | "hostname" | "displayName" => "granary",
        _ => return None,
    };
    Some(string(text))
}
