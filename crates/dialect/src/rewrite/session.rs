//! Functions that tell of the session: `currentDatabase()` and the like. Their calls become constants.

use datafusion::sql::sqlparser::ast::{Expr, Function, Value};

use super::Scope;
use super::syntax::{arguments, call, name_of, plain_arguments, string, text};

/// The ClickHouse whose behaviour is followed; clients choose what they send by it.
const CLICKHOUSE_VERSION: &str = "26.9.2.1";

/// What a call is that depends on nothing but the session.
pub fn constant(function: &Function, scope: &dyn Scope) -> Option<Expr> {
    if name_of(function)? == "getSetting" {
        let arguments = plain_arguments(function)?;
        let value = scope.setting(text(arguments.first()?)?)?;
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
        "currentDatabase" | "database" | "DATABASE" | "SCHEMA" => scope.database(),
        "currentUser" | "user" | "USER" => scope.user(),
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
