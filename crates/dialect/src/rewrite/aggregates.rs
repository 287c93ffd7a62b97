//! How many arguments an aggregate takes.

use datafusion::sql::sqlparser::ast::Function;

use super::syntax::arguments;
use crate::error::{Error, Result};

/// Refuses a call of an aggregate with another number of arguments than it takes; the condition of -If is none of them.
/// Aggregates that this table does not have are checked where they are rewritten.
///
/// # Errors
/// NUMBER_OF_ARGUMENTS_DOESNT_MATCH.
pub fn check_count(function: &Function, aggregate: &str) -> Result<()> {
    let (wanted, said) = match aggregate {
        "corr" | "covarPop" | "covarSamp" => (2..=2, "two arguments"),
        "uniq" | "uniqCombined" | "uniqCombined64" | "uniqExact" | "uniqHLL12" => {
            (1..=usize::MAX, "at least one argument")
        }
        "any" | "anyLast" | "avg" | "groupArray" | "groupBitAnd" | "groupBitOr" | "groupBitXor"
        | "groupUniqArray" | "max" | "min" | "stddevPop" | "stddevSamp" | "sum" | "varPop" | "varSamp" => {
            (1..=1, "single argument")
        }
        _ => return Ok(()),
    };
    if wanted.contains(&arguments(function).len()) {
        return Ok(());
    }
    Err(Error::wrong_argument_count(format!("Aggregate function {aggregate} requires {said}")))
}
