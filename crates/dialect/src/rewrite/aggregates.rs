//! How many arguments an aggregate takes, and which parameters.

use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArg, FunctionArguments, Value};

use super::syntax::{argument, arguments};
use crate::error::{Error, Result};
use crate::functions::names;

/// Refuses a call of an aggregate with a wrong number of arguments; the condition of -If does not count. Aggregates
/// missing in this table are checked where they are rewritten.
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

/// Accuracies that ClickHouse accepts; uniq is exact here.
const ACCURACIES: std::ops::RangeInclusive<u64> = 12..=20;

/// Removes a call's parameters, `groupArray(N)(x)`, and returns the wanted number of items if they give one. Those of
/// quantiles stay.
///
/// # Errors
/// Refuses parameters that ClickHouse does not have.
pub fn parameters(function: &mut Function, name: &str) -> Result<Option<Expr>> {
    if name.starts_with("quantile") {
        return Ok(None);
    }
    let given: Vec<FunctionArg> = match std::mem::replace(&mut function.parameters, FunctionArguments::None) {
        FunctionArguments::List(list) => list.args,
        _ => return Ok(None),
    };
    if given.is_empty() {
        return Ok(None);
    }
    let wanted = given.first().and_then(argument).and_then(whole);
    match name {
        "groupArray" | "groupUniqArray" if given.len() > 1 => Err(Error::wrong_argument_count(format!(
            "Incorrect number of parameters for aggregate function {name}, should be 0 or 1"
        ))),
        "groupArray" | "groupUniqArray" => match wanted.filter(|most| (1..=i64::MAX as u64).contains(most)) {
            Some(most) => Ok(Some(Expr::value(Value::Number(most.to_string(), false)))),
            None => Err(Error::bad_arguments(format!(
                "Parameter for aggregate function {name} should be positive number, written as one"
            ))),
        },
        "uniqCombined" | "uniqCombined64" => match wanted.filter(|accuracy| ACCURACIES.contains(accuracy)) {
            Some(_) => Ok(None),
            None => Err(Error::argument_out_of_bound(format!(
                "Parameter for aggregate function {name} is out of range: [12, 20]"
            ))),
        },
        // Ignored, as in ClickHouse.
        "argMin" | "argMax" => Ok(None),
        _ if names::is_aggregate(name) => Err(Error::no_parameters_of_aggregate(format!(
            "Aggregate function {name} cannot have parameters"
        ))),
        _ => Err(Error::no_parameters(format!("Function {name} is not parametric"))),
    }
}

/// The number of a parameter.
fn whole(expr: &Expr) -> Option<u64> {
    let mut expr = expr.clone();
    super::literals::undo(&mut expr);
    expr.to_string().parse().ok()
}
