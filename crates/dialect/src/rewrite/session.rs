//! Functions about the session: `currentDatabase()` and the like. Their calls become constants.

use datafusion::sql::sqlparser::ast::{Expr, Function, Value};

use super::Scope;
use super::syntax::{arguments, call, name_of, plain_arguments, string, text};
use crate::functions::names;

/// The version of ClickHouse whose behaviour is followed; clients choose what they send by it.
const CLICKHOUSE_VERSION: &str = "26.9.2.1";

/// Its revision, which clients over HTTP ask for.
const CLICKHOUSE_REVISION: &str = "54515";

/// The value of a call that depends on the session alone.
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
    let number = |number: &str| Expr::value(Value::Number(number.to_owned(), false));
    let text = match names::find(name_of(function)?)?.name {
        "currentDatabase" => scope.database(),
        "currentUser" => scope.user(),
        "version" => CLICKHOUSE_VERSION,
        "revision" => return Some(call("toUInt32", vec![number(CLICKHOUSE_REVISION)])),
        "timezone" | "serverTimezone" => "UTC",
        // A connection over HTTP has no id.
        "connectionId" => return Some(call("toUInt64", vec![number("0")])),
        "hostName" | "displayName" => "granary",
        _ => return None,
    };
    Some(string(text))
}
