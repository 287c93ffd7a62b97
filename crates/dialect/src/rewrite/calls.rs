//! Rewrites calls of ClickHouse's functions to DataFusion's names and forms.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, NullTreatment, OrderByExpr, OrderByOptions, Value,
};

use super::syntax::{
    argument, argument_mut, arguments, arguments_mut, call, name_of, plain_arguments, rename, string, taken,
    text,
};
use super::{aggregates, conditions, windows, written};
use crate::error::{Error, Result};
use crate::functions::as_type::AS_TYPE;
use crate::functions::quantile::QuantileKind;
use crate::functions::{self, names};

/// ClickHouse's aggregates, and DataFusion's that do the same.
const AGGREGATES: &[(&str, &str)] = &[
    ("stddevPop", "stddev_pop"),
    ("stddevSamp", "stddev"),
    ("varPop", "var_pop"),
    ("varSamp", "var"),
    ("covarPop", "covar_pop"),
    ("covarSamp", "covar_samp"),
    ("groupArray", "array_agg"),
    ("groupBitAnd", "bit_and"),
    ("groupBitOr", "bit_or"),
    ("groupBitXor", "bit_xor"),
];

/// ClickHouse's and DataFusion's names of functions that are no aggregates.
const OTHERS: &[(&str, &str)] = &[("ifNull", "nvl"), ("map", "mapOf"), ("denseRank", "dense_rank")];

/// ClickHouse's name of a function of DataFusion's.
pub fn clickhouse_name(name: &str) -> &str {
    AGGREGATES.iter().chain(OTHERS).find(|(_, theirs)| *theirs == name).map_or(name, |(ours, _)| ours)
}

/// Aggregates of numbers, which take conditions, too.
const OF_NUMBERS: &[&str] = &["sum", "avg"];

/// Aggregates that return one of their arguments: a Bool stays a Bool, and a condition becomes a number.
const EXTREMES: &[&str] = &["min", "max"];

/// Functions for which it does not matter which columns `*` stands for.
const TAKE_ALL_COLUMNS: &[&str] = &["count", "ignore"];

/// Whether an argument is `*` or `t.*`.
fn is_wildcard(argument: &FunctionArg) -> bool {
    let FunctionArg::Unnamed(argument) = argument else { return false };
    matches!(argument, FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_))
}

/// Runs after the arguments were rewritten.
pub fn rewrite(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expr else { return Ok(()) };
    windows::count_of(function)?;
    let Some(written) = name_of(function) else { return Ok(()) };
    if function.null_treatment == Some(NullTreatment::RespectNulls) {
        return Err(Error::not_implemented(format!("{written}: RESPECT NULLS is not implemented")));
    }
    if let Some(aggregate) = names::find_conditional(written) {
        filter(function, aggregate.name)?;
        return rewrite(expr);
    }
    // Calls made by the rewriting may have names that no query can write.
    let name = names::find(written).map_or_else(|| written.to_owned(), |known| known.name.to_owned());
    check_wildcard(function, &name)?;
    aggregates::check_count(function, &name)?;
    let most = aggregates::parameters(function, &name)?;
    look_in_zone(function, &name)?;
    match name.as_str() {
        "if" | "multiIf" => return choice(expr),
        "pi" if arguments(function).is_empty() => {
            *expr = Expr::value(Value::Number(std::f64::consts::PI.to_string(), false));
        }
        "transform" => *expr = transformed(function)?,
        "nullIf" => *expr = null_if(function)?,
        "arrayJoin" => rename(function, "unnest"),
        "uniqExact" | "uniq" | "uniqCombined" | "uniqCombined64" | "uniqHLL12" => {
            rename(function, "count");
            distinct(function);
            *expr = unsigned(expr);
        }
        "count" => {
            count(function)?;
            *expr = unsigned(expr);
        }
        "tuple" | "negate" => {}
        "map" => map_of(function)?,
        // Columns that exist can be evaluated without being read.
        "ignore" => {
            rename(function, &name);
            if let Some(arguments) = arguments_mut(function) {
                arguments.retain(|argument| !is_wildcard(argument));
            }
        }
        "isNull" | "isNotNull" | "identity" | "toLowCardinality" => *expr = unary(function, &name)?,
        "toDateTime" if arguments(function).len() == 2 => as_type(expr, &name)?,
        "now" | "now64" => moment(expr, &name)?,
        // DataFusion declares it Nullable.
        "today" => {
            rename(function, "current_date");
            *expr = call("assumeNotNull", vec![taken(expr)]);
        }
        "yesterday" => {
            *expr = call(
                "subtractDays",
                vec![call("assumeNotNull", vec![call("current_date", Vec::new())]), number(1)],
            )
        }
        // A number is a Unix time already.
        "toUnixTimestamp" => {
            rename(function, "toDateTime/moment");
            *expr = call("toUInt32", vec![taken(expr)]);
        }
        "any" | "anyLast" | "argMin" | "argMax" if function.over.is_some() => {
            return Err(Error::not_implemented(format!(
                "Aggregate function {name} is not known over a window: join its answer for each group, from a subquery"
            )));
        }
        "any" | "anyLast" => first_not_null(function, &name),
        "groupArray" | "groupUniqArray" => {
            group_array(function, &name);
            if let Some(most) = most {
                *expr = call("arraySlice", vec![taken(expr), number(1), most]);
            }
        }
        "argMin" | "argMax" => first_by(function, name == "argMin")?,
        "dateTrunc" => truncated(function)?,
        "quantile" | "quantileExactInclusive" | "quantiles" | "quantilesExactInclusive" => {
            quantile(function, &name)?;
        }
        "toDate32" | "toDecimal32" | "toDecimal64" | "toDecimal128" | "toDecimal256" | "toIPv4"
        | "toIPv6" | "toInt128" | "toUInt128" | "toInt256" | "toUInt256" | "toDateTime64" => {
            as_type(expr, &name)?;
        }
        "toFixedString" => {
            rename(function, &name);
            constant_width(function);
        }
        _ => by_other_name(function, &name),
    }
    Ok(())
}

/// Refuses `*` as an argument, unless it does not matter which columns it stands for.
fn check_wildcard(function: &Function, name: &str) -> Result<()> {
    let takes_all = TAKE_ALL_COLUMNS.contains(&name) && !is_distinct(function);
    if !takes_all && arguments(function).iter().any(is_wildcard) {
        let what = format!("Function {name} does not take `*` here: name the columns");
        return Err(Error::not_implemented(what));
    }
    Ok(())
}

/// The arguments of a call, if there are exactly `N`.
fn exactly<const N: usize>(function: &Function) -> Option<[Expr; N]> {
    plain_arguments(function)?.try_into().ok()
}

/// `nullIf(x, y)` is `CASE WHEN x = y THEN NULL ELSE x END`.
fn null_if(function: &Function) -> Result<Expr> {
    let Some([value, other]) = exactly(function) else {
        return Err(Error::wrong_argument_count("Function nullIf requires two arguments"));
    };
    let same = Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(value.clone()))),
        op: BinaryOperator::Eq,
        right: Box::new(Expr::Nested(Box::new(other))),
    };
    Ok(case(vec![CaseWhen { condition: same, result: Expr::value(Value::Null) }], Some(value)))
}

/// `count(1)` counts rows, as `count()` does.
fn count(function: &mut Function) -> Result<()> {
    if arguments(function).len() > 1 {
        return Err(Error::wrong_argument_count("Aggregate function count requires zero or one argument"));
    }
    let is_row =
        plain_arguments(function).is_some_and(|all| matches!(all.as_slice(), [one] if is_number(one)));
    if is_row && !is_distinct(function) {
        arguments_mut(function).into_iter().for_each(Vec::clear);
    }
    Ok(())
}

/// `map(key, value, ..)`.
fn map_of(function: &mut Function) -> Result<()> {
    let given = arguments(function).len();
    if given % 2 == 1 {
        let message = format!("Function map requires even number of arguments, but {given} given");
        return Err(Error::wrong_argument_count(message));
    }
    rename(function, "mapOf");
    Ok(())
}

/// Functions of one argument that are syntax or nothing: LowCardinality only concerns the layout in RAM.
fn unary(function: &Function, name: &str) -> Result<Expr> {
    let Some([argument]) = exactly(function) else {
        return Err(Error::wrong_argument_count(format!("Function {name} requires one argument")));
    };
    let argument = Box::new(argument);
    Ok(match name {
        "isNull" => Expr::IsNull(argument),
        "isNotNull" => Expr::IsNotNull(argument),
        _ => Expr::Nested(argument),
    })
}

/// `groupArray(x)` and `groupUniqArray(x)` leave NULLs out.
fn group_array(function: &mut Function, name: &str) {
    rename(function, "array_agg");
    function.null_treatment = Some(NullTreatment::IgnoreNulls);
    if name == "groupUniqArray" {
        distinct(function);
    }
}

/// The width of a FixedString as a plain number: it is needed when the call is planned, before constants are evaluated.
fn constant_width(function: &mut Function) {
    let width = arguments_mut(function).and_then(|all| all.get_mut(1)).and_then(argument_mut);
    if let Some(width) = width
        && let Some(number) = inner_number(width)
    {
        *width = number;
    }
}

/// Calls a function by DataFusion's name for it. Where it wants numbers, conditions become numbers.
fn by_other_name(function: &mut Function, name: &str) {
    let theirs = AGGREGATES.iter().chain(OTHERS).find(|(ours, _)| *ours == name);
    rename(function, theirs.map_or(name, |(_, theirs)| theirs));
    if OF_NUMBERS.contains(&name) {
        numbers(function);
    } else if EXTREMES.contains(&name) {
        number_of_condition(function);
    } else if ["coalesce", "ifNull"].contains(&name)
        && let Some(values) = arguments_mut(function)
    {
        conditions::make_numbers_among(values.iter_mut().filter_map(argument_mut));
    }
}

/// `now()` has seconds, `now64()` as many fraction digits as its argument says, by default 3; both take a zone.
fn moment(expr: &mut Expr, name: &str) -> Result<()> {
    let Expr::Function(function) = &*expr else { return Ok(()) };
    let Some(mut given) = plain_arguments(function) else { return Ok(()) };
    let target = if name == "now" { "toDateTime" } else { "toDateTime64" };
    if name == "now64" && given.is_empty() {
        given.push(number(3));
    }
    let told_zone = name == "now" && !given.is_empty();
    given.insert(0, call("now", Vec::new()));
    *expr = call(target, given);
    if told_zone || name == "now64" { as_type(expr, target) } else { Ok(()) }
}

fn number(number: u8) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

/// `any(x)` is the first value that is not NULL, in no particular order.
fn first_not_null(function: &mut Function, name: &str) {
    rename(function, if name == "any" { "first_value" } else { "last_value" });
    function.null_treatment = Some(NullTreatment::IgnoreNulls);
    number_of_condition(function);
}

/// `toDate(x, 'zone')` and the like convert the time to that zone first.
fn look_in_zone(function: &mut Function, name: &str) -> Result<()> {
    let reads_texts = ["toDate", "toUnixTimestamp"].contains(&name);
    let places = match name {
        "formatDateTime" => 3,
        "toString" => 2,
        _ if reads_texts || functions::looks_in_zone(name) => 2,
        _ => return Ok(()),
    };
    let Some(mut given) = plain_arguments(function).filter(|given| given.len() == places) else {
        return Ok(());
    };
    let (Some(zone), Some(time)) = (given.pop(), given.first_mut()) else { return Ok(()) };
    let both = vec![taken(time), zone];
    *time = if reads_texts {
        let mut read = call("toDateTime", both);
        as_type(&mut read, "toDateTime")?;
        read
    } else {
        call(functions::TO_TIME_ZONE, both)
    };
    *function = super::syntax::function(name, given);
    Ok(())
}

/// `toIPv4(x)`, `toDateTime64(x, precision, 'zone')` and the like.
fn as_type(expr: &mut Expr, name: &str) -> Result<()> {
    let Expr::Function(function) = &*expr else { return Ok(()) };
    let Some(arguments) = plain_arguments(function) else { return Ok(()) };
    let short = name.trim_start_matches("to");
    let (value, data_type) = match (short, arguments.as_slice()) {
        ("DateTime", [value, zone]) => (value, format!("DateTime({zone})")),
        ("DateTime64", [value, precision]) => (value, format!("DateTime64({})", constant(precision))),
        ("DateTime64", [value, precision, zone]) => {
            (value, format!("DateTime64({}, {zone})", constant(precision)))
        }
        ("Decimal32" | "Decimal64" | "Decimal128" | "Decimal256", [value, scale]) => {
            let scale = constant(scale)
                .parse::<u8>()
                .map_err(|_| Error::illegal_type(format!("The scale of {name} must be a constant number")))?;
            (value, format!("{short}({scale})"))
        }
        ("DateTime64" | "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256", _) => {
            return Err(Error::wrong_argument_count(format!("Function {name} requires two arguments")));
        }
        (_, [value]) => (value, short.to_owned()),
        _ => return Err(Error::wrong_argument_count(format!("Function {name} requires one argument"))),
    };
    let mut value = value.clone();
    super::literals::exact_for(short, &mut value);
    *expr = call(AS_TYPE, vec![value, string(&data_type)]);
    Ok(())
}

/// A constant's text, as written.
fn constant(expr: &Expr) -> String {
    let mut expr = expr.clone();
    super::literals::undo(&mut expr);
    expr.to_string()
}

/// The number within a conversion: `toUInt128(7)`.
fn inner_number(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Number(..)).then(|| expr.clone()),
        Expr::Function(function) => inner_number(plain_arguments(function)?.first()?),
        Expr::Cast { expr, .. } | Expr::Nested(expr) => inner_number(expr),
        _ => None,
    }
}

/// `quantile(level)(x)` and `quantiles(level, ...)(x)`: the levels become arguments after the value. The default is
/// 0.5.
fn quantile(function: &mut Function, name: &str) -> Result<()> {
    let mut levels: Vec<Expr> = match std::mem::replace(&mut function.parameters, FunctionArguments::None) {
        FunctionArguments::List(list) => list.args.iter().filter_map(argument).cloned().collect(),
        _ => vec![Expr::value(Value::Number("0.5".to_owned(), false))],
    };
    let answer = QuantileKind::called(name);
    if levels.is_empty() || !answer.is_array() && levels.len() > 1 {
        return Err(Error::wrong_argument_count(format!("Aggregate function {name} requires one level")));
    }
    for level in &mut levels {
        super::literals::undo(level);
        let number = level.to_string().parse::<f64>().ok().filter(|level| (0.0..=1.0).contains(level));
        let Some(number) = number else {
            let message = "The level of a quantile must be one constant number from 0 to 1";
            return Err(Error::parameter_out_of_bound(message));
        };
        *level = Expr::value(Value::Number(format!("{number:?}"), false));
    }
    let Some(first) = arguments_mut(function).and_then(|all| all.first_mut()).and_then(argument_mut) else {
        return Err(Error::wrong_argument_count(format!("Aggregate function {name} requires one argument")));
    };
    *first = call("toFloat64", vec![taken(first)]);
    rename(function, answer.name());
    if let Some(arguments) = arguments_mut(function) {
        arguments.extend(levels.into_iter().map(|level| FunctionArg::Unnamed(FunctionArgExpr::Expr(level))));
    }
    Ok(())
}

/// ClickHouse counts in UInt64.
fn unsigned(expr: &mut Expr) -> Expr {
    call("toUInt64", vec![taken(expr)])
}

fn number_of_condition(function: &mut Function) {
    let first = arguments(function).first().and_then(argument);
    if first.is_some_and(conditions::is_condition) {
        numbers(function);
    }
}

fn numbers(function: &mut Function) {
    if let Some(first) = arguments_mut(function).and_then(|all| all.first_mut()).and_then(argument_mut) {
        conditions::make_number(first);
    }
}

/// The combinator `-If`: `sumIf(x, c)` is `sum(x) FILTER (WHERE c)`.
fn filter(function: &mut Function, aggregate: &str) -> Result<()> {
    let Some(condition) = arguments_mut(function).and_then(Vec::pop) else {
        return Err(Error::wrong_argument_count(format!(
            "Aggregate function {aggregate}If requires a condition"
        )));
    };
    let Some(mut condition) = argument(&condition).cloned() else {
        return Err(Error::bad_arguments(format!("The condition of {aggregate}If must be an expression")));
    };
    conditions::make_choice(&mut condition);
    rename(function, aggregate);
    if arguments(function).is_empty() && aggregate == "count" {
        *function = super::syntax::function(aggregate, vec![Expr::value(Value::Boolean(true))]);
    }
    function.filter = Some(Box::new(condition));
    Ok(())
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { expr, .. } => is_number(expr),
        other => written::number(other).is_some(),
    }
}

fn is_distinct(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
}

fn distinct(function: &mut Function) {
    if let FunctionArguments::List(list) = &mut function.args {
        list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
    }
}

/// `argMin(x, y)` is the first `x` by `y`, among rows where neither is NULL.
fn first_by(function: &mut Function, ascending: bool) -> Result<()> {
    let Some([value, by]) = exactly(function) else {
        let name = name_of(function).unwrap_or_default();
        return Err(Error::wrong_argument_count(format!("Aggregate function {name} requires two arguments")));
    };
    let there = |expr: &Expr| Expr::IsNotNull(Box::new(expr.clone()));
    let both = super::syntax::both(there(&value), Some(there(&by)));
    let known = super::syntax::both(both, function.filter.take().map(|condition| *condition));
    let options = OrderByOptions { asc: Some(ascending), nulls_first: None };
    let order = OrderByExpr { expr: by, options, with_fill: None };
    *function = super::syntax::function("first_value", vec![value]);
    if let FunctionArguments::List(list) = &mut function.args {
        list.clauses.push(FunctionArgumentClause::OrderBy(vec![order]));
    }
    function.filter = Some(Box::new(known));
    number_of_condition(function);
    Ok(())
}

/// `dateTrunc('hour', x)` is `toStartOfHour(x)`.
fn truncated(function: &mut Function) -> Result<()> {
    let unit = arguments(function).first().and_then(argument).and_then(text).map(str::to_ascii_lowercase);
    let start = match unit.as_deref() {
        Some("minute") => "toStartOfMinute",
        Some("hour") => "toStartOfHour",
        Some("day") => "toStartOfDay",
        Some("week") => "toMonday",
        Some("month") => "toStartOfMonth",
        Some("quarter") => "toStartOfQuarter",
        Some("year") => "toStartOfYear",
        _ => {
            let what = "The first argument of function dateTrunc must be one of the texts minute, hour, day, week, month, quarter and year";
            return Err(Error::bad_arguments(what));
        }
    };
    if let Some(arguments) = arguments_mut(function) {
        arguments.remove(0);
        if let Some(time) = arguments.first_mut().and_then(argument_mut) {
            *time = call("dateTrunc/time", vec![taken(time)]);
        }
    }
    rename(function, start);
    Ok(())
}

/// `if(c, a, b)` and `multiIf(c1, a1, c2, a2, b)` as CASE, which evaluates only what it needs.
fn choice(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = &*expr else { return Ok(()) };
    let count = arguments(function).len();
    let Some(mut all) = plain_arguments(function).filter(|_| count >= 3 && count % 2 == 1) else {
        let name = name_of(function).unwrap_or_default();
        return Err(Error::wrong_argument_count(format!(
            "Function {name} requires an odd number of arguments, at least 3"
        )));
    };
    let otherwise = all.pop();
    let mut pairs = Vec::with_capacity(all.len() / 2);
    let mut all = all.into_iter();
    while let (Some(mut condition), Some(result)) = (all.next(), all.next()) {
        conditions::make_choice(&mut condition);
        pairs.push(CaseWhen { condition, result });
    }
    let mut otherwise = otherwise;
    conditions::make_numbers_among(pairs.iter_mut().map(|pair| &mut pair.result).chain(&mut otherwise));
    *expr = case(pairs, otherwise);
    Ok(())
}

/// `transform(x, [from, ..], [to, ..][, default])` is `CASE x WHEN from THEN to .. ELSE default END`.
fn transformed(function: &Function) -> Result<Expr> {
    let mut given = plain_arguments(function).unwrap_or_default();
    let otherwise = if given.len() == 4 { given.pop() } else { None };
    let Ok([value, Expr::Array(from), Expr::Array(to)]) = <[Expr; 3]>::try_from(given) else {
        let what = "Function transform takes a value, two arrays of constants and a default";
        return Err(Error::illegal_type(what));
    };
    if from.elem.len() != to.elem.len() || from.elem.is_empty() {
        let what = "Second and third arguments of function transform must be arrays of the same size";
        return Err(Error::bad_arguments(what));
    }
    if from.elem.iter().any(is_null) {
        return Err(Error::cannot_insert_null(
            "The second argument of function transform must not have NULL in it",
        ));
    }
    let pairs = from.elem.into_iter().zip(to.elem);
    let conditions = pairs.map(|(condition, result)| CaseWhen { condition, result }).collect();
    let otherwise = otherwise.unwrap_or_else(|| value.clone());
    Ok(match case(conditions, Some(otherwise)) {
        Expr::Case { case_token, end_token, conditions, else_result, .. } => {
            Expr::Case { case_token, end_token, operand: Some(Box::new(value)), conditions, else_result }
        }
        other => other,
    })
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Value::Null)
}

fn case(conditions: Vec<CaseWhen>, otherwise: Option<Expr>) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result: otherwise.map(Box::new),
    }
}
