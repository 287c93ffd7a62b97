//! Functions that tell of the session: `currentDatabase()` and the like. Their calls become constants.

use datafusion::sql::sqlparser::ast::{Expr, Function};

use super::syntax::{arguments, name_of, string};

/// The ClickHouse whose behaviour is followed; clients choose what they send by it.
const CLICKHOUSE_VERSION: &str = "26.9.2.1";

/// Who asks, and where from.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// The database of names without one.
    pub database: &'a str,
    pub user: &'a str,
}

/// What a call without arguments is.
pub fn constant(function: &Function, asker: Asker<'_>) -> Option<Expr> {
    if !arguments(function).is_empty() {
        return None;
    }
    let text = match name_of(function)? {
        "currentDatabase" | "database" | "DATABASE" | "SCHEMA" => asker.database,
        "currentUser" | "user" | "USER" => asker.user,
        "version" | "VERSION" => CLICKHOUSE_VERSION,
        "timezone" | "timeZone" | "serverTimezone" | "serverTimeZone" => "UTC",
        "hostName" | "hostname" | "displayName" => "granary",
        _ => return None,
    };
    Some(string(text))
}
