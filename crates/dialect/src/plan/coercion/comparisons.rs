//! Comparisons of floats as in IEEE 754, of tuples element by element, of times as moments, and of numbers with texts
//! of numbers.

use std::cmp::Ordering;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Cast, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF, lit};
use granary_dict::{DataType as ClickHouseType, digits_of};

use crate::error::Error;
use crate::functions::array_order::has_own_order;
use crate::functions::as_type::AsType;
use crate::functions::uuid_order::{is_uuid, order_of};
use crate::functions::{Comparison, TUPLE, TupleElement, assume_not_null, number_of, text_as};
use crate::types::{declared, is_time, plain_field_name, plain_name, type_name};

pub fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| data_type.is_floating())
}

/// Whether an expression's values are UUIDs, which have their own order.
pub fn is_of_uuids(expr: &Expr, schema: &DFSchema) -> bool {
    expr.to_field(schema).is_ok_and(|(_, field)| is_uuid(&field))
}

fn is_of_arrays(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| has_own_order(&data_type))
}

/// Whether DataFusion would compare two types by local time: one has times in a zone, the other times without one, or
/// days.
pub fn differ_in_zone(one: &DataType, other: &DataType) -> bool {
    match (one, other) {
        (DataType::Timestamp(_, one), DataType::Timestamp(_, other)) => one.is_some() != other.is_some(),
        (DataType::Timestamp(_, Some(_)), DataType::Date32) => true,
        (DataType::Date32, DataType::Timestamp(_, Some(_))) => true,
        (DataType::List(one), DataType::List(other)) | (DataType::Map(one, _), DataType::Map(other, _)) => {
            differ_in_zone(one.data_type(), other.data_type())
        }
        (DataType::Struct(one), DataType::Struct(other)) => {
            one.iter().zip(other).any(|(one, other)| differ_in_zone(one.data_type(), other.data_type()))
        }
        _ => false,
    }
}

/// Whether DataFusion would compare two expressions by local time: their types [differ in zone](differ_in_zone).
pub fn are_apart(one: &Expr, other: &Expr, schema: &DFSchema) -> bool {
    let types = (one.get_type(schema), other.get_type(schema));
    matches!(types, (Ok(one), Ok(other)) if differ_in_zone(&one, &other))
}

/// The two sides of a comparison. If their types differ in zone, both get the one zone.
pub fn in_one_zone(left: (Expr, DataType), right: (Expr, DataType)) -> Result<(Expr, Expr)> {
    if !differ_in_zone(&left.1, &right.1) {
        return Ok((left.0, right.0));
    }
    let zone = [&left.1, &right.1].into_iter().find_map(|data_type| match data_type {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    });
    let Some(zone) = zone else {
        return Err(zones_within().into());
    };
    let in_zone = |(side, data_type): (Expr, DataType)| {
        let wanted = match data_type {
            DataType::Timestamp(_, Some(_)) => return side,
            DataType::Timestamp(unit, None) if unit != TimeUnit::Second => {
                format!("DateTime64({}, '{zone}')", digits_of(unit))
            }
            _ => format!("DateTime('{zone}')"),
        };
        AsType::exact(side, wanted)
    };
    Ok((in_zone(left), in_zone(right)))
}

/// The error for arrays, maps and tuples with times in different zones.
pub fn zones_within() -> Error {
    Error::not_implemented(
        "Arrays, maps and tuples with times in different zones are not brought to one type here: make all of one type, \
         as with CAST",
    )
}

/// Brings both sides of a comparison to the one zone; tuples are compared element by element later.
pub fn at_one_zone(compared: BinaryExpr, schema: &DFSchema) -> Result<BinaryExpr> {
    let is_tuple = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Struct(_)));
    // Handled element by element.
    if is_tuple(&compared.left) || !are_apart(&compared.left, &compared.right, schema) {
        return Ok(compared);
    }
    let types = (compared.left.get_type(schema)?, compared.right.get_type(schema)?);
    let (left, right) = in_one_zone((*compared.left, types.0), (*compared.right, types.1))?;
    Ok(BinaryExpr::new(Box::new(left), compared.op, Box::new(right)))
}

/// The two sides of a comparison: a text beside a time becomes one, by the rules of CAST, and of two times the one with
/// fewer digits gets those of the other. DataFusion would cut a constant's excess digits.
fn of_times(compared: BinaryExpr, schema: &DFSchema) -> BinaryExpr {
    let BinaryExpr { left, op, right } = compared;
    let (left, right) = match (time_of(&left, schema), time_of(&right, schema)) {
        (Some(time), None) if is_text(&right, schema) => (left, Box::new(text_as(*right, &time))),
        (None, Some(time)) if is_text(&left, schema) => (Box::new(text_as(*left, &time)), right),
        // DataFusion would count nanoseconds, of which 64 bits hold no later year than 2262.
        (Some(time), None) if let Some(precision) = beside_day(&time, &right, schema) => {
            (Box::new(with_digits(*left, &time, precision)), Box::new(midnight(*right, precision)))
        }
        (None, Some(time)) if let Some(precision) = beside_day(&time, &left, schema) => {
            (Box::new(midnight(*left, precision)), Box::new(with_digits(*right, &time, precision)))
        }
        (Some(one), Some(other)) => match digits(&one).cmp(&digits(&other)) {
            Ordering::Less => (Box::new(with_digits(*left, &one, digits(&other))), right),
            Ordering::Greater => (left, Box::new(with_digits(*right, &other, digits(&one)))),
            Ordering::Equal => (left, right),
        },
        _ => (left, right),
    };
    BinaryExpr::new(left, op, right)
}

fn is_truth(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Boolean))
}

/// The two sides of a comparison: a text or a condition beside a number becomes one, and a text beside a day a day.
fn of_numbers(compared: BinaryExpr, schema: &DFSchema) -> Result<BinaryExpr> {
    let BinaryExpr { left, op, right } = compared;
    let as_number = |truth: Box<Expr>| Box::new(Expr::Cast(Cast::new(truth, DataType::UInt8)));
    let (left, right) = match (is_truth(&left, schema), is_truth(&right, schema)) {
        (true, false) => (as_number(left), right),
        (false, true) => (left, as_number(right)),
        _ => (left, right),
    };
    let (left, right) = match (read_type(&left, schema), read_type(&right, schema)) {
        (Some(number), None) if is_text(&right, schema) => (left, Box::new(number_of(*right, &number)?)),
        (None, Some(number)) if is_text(&left, schema) => (Box::new(number_of(*left, &number)?), right),
        _ => (left, right),
    };
    Ok(BinaryExpr::new(left, op, right))
}

/// The field of an expression if a text beside it is read, whole, as its type: Arrow's numbers, and days.
fn read_type(expr: &Expr, schema: &DFSchema) -> Option<FieldRef> {
    let (_, field) = expr.to_field(schema).ok()?;
    let is_number = field.data_type().is_numeric() && declared(&field).is_none();
    (is_number || field.data_type() == &DataType::Date32).then_some(field)
}

/// Whether one of two is a number or a day, and the other a text that is read as one.
pub fn are_read(one: &Expr, other: &Expr, schema: &DFSchema) -> bool {
    read_type(one, schema).is_some() && is_text(other, schema)
        || is_text(one, schema) && read_type(other, schema).is_some()
}

/// Fraction digits of a time type.
fn digits(time: &ClickHouseType) -> u8 {
    match time {
        ClickHouseType::DateTime64 { precision, .. } => *precision,
        _ => 0,
    }
}

/// The digits to compare a time without a zone with a Date32 by; `None` for other types.
fn beside_day(time: &ClickHouseType, day: &Expr, schema: &DFSchema) -> Option<u8> {
    let (_, field) = day.to_field(schema).ok()?;
    let is_day = field.data_type() == &DataType::Date32 && plain_field_name(&field) == "Date32";
    let has_zone = matches!(
        time,
        ClickHouseType::DateTime { tz: Some(_) } | ClickHouseType::DateTime64 { tz: Some(_), .. }
    );
    (is_day && !has_zone && digits(time) <= 6).then(|| digits(time).max(3))
}

fn midnight(day: Expr, precision: u8) -> Expr {
    AsType::exact(day, ClickHouseType::DateTime64 { precision, tz: None })
}

/// A time with `precision` digits, in its zone.
fn with_digits(time: Expr, given: &ClickHouseType, precision: u8) -> Expr {
    let (ClickHouseType::DateTime { tz } | ClickHouseType::DateTime64 { tz, .. }) = given else {
        return time;
    };
    let wanted = ClickHouseType::DateTime64 { precision, tz: tz.clone() };
    AsType::exact(time, wanted)
}

/// The type of an expression of times; `None` for other types.
fn time_of(expr: &Expr, schema: &DFSchema) -> Option<ClickHouseType> {
    let (_, field) = expr.to_field(schema).ok()?;
    let is_time = matches!(field.data_type(), DataType::Timestamp(..));
    is_time
        .then(|| ClickHouseType::parse(&type_name(&field)).ok())?
        .map(|data_type| data_type.inner().clone())
}

fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| data_type.is_string())
}

/// Whether a text is compared with a time, or two times differ in digits.
fn are_unlike_times(one: &Expr, other: &Expr, schema: &DFSchema) -> bool {
    match (time_of(one, schema), time_of(other, schema)) {
        (Some(one), Some(other)) => digits(&one) != digits(&other),
        (Some(_), None) => is_text(other, schema),
        (None, Some(_)) => is_text(one, schema),
        (None, None) => false,
    }
}

/// Refuses a text where CASE looks for a time or a UUID: ClickHouse finds none, whatever the text is.
pub fn check_chosen(operand: &Expr, when: &Expr, schema: &DFSchema) -> Result<()> {
    let is_special = |side: &Expr| {
        side.to_field(schema).is_ok_and(|(_, field)| is_time(field.data_type()) || is_uuid(&field))
    };
    for (one, other) in [(operand, when), (when, operand)] {
        if is_special(one) && is_text(other, schema) {
            let name = type_name(&one.to_field(schema)?.1);
            let what =
                format!("CASE does not find {name} by a String here: convert it, as with CAST(.. AS {name})");
            return Err(Error::no_common_type(what).into());
        }
    }
    Ok(())
}

/// A comparison by ClickHouse's rules.
pub fn compared(compared: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let compared = at_one_zone(of_times(of_numbers(compared, schema)?, schema), schema)?;
    let (left, right) = match (compared.left.to_field(schema), compared.right.to_field(schema)) {
        (Ok((_, left)), Ok((_, right))) => (left, right),
        _ => return Ok(Transformed::no(Expr::BinaryExpr(compared))),
    };
    if let Operator::IsDistinctFrom | Operator::IsNotDistinctFrom = compared.op {
        return distinct(compared, &left, &right, schema);
    }
    if let (DataType::Struct(left), DataType::Struct(right)) = (left.data_type(), right.data_type()) {
        return tuples(&compared, left, right, schema).map(Transformed::yes);
    }
    let is_ordering = matches!(compared.op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    if is_ordering && is_uuid(&left) && is_uuid(&right) {
        let [left, right] = [compared.left, compared.right].map(|side| Box::new(order_of(*side)));
        return Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(left, compared.op, right))));
    }
    let sides = [left.data_type(), right.data_type()];
    let is_array = |side: &&DataType| matches!(side, DataType::List(_) | DataType::Map(..));
    let is_number = |side: &&DataType| side.is_numeric() || **side == DataType::Boolean;
    let function = if sides.iter().all(is_array) && sides.iter().any(|side| has_own_order(side)) {
        ScalarUDF::from(Comparison::of_arrays(compared.op))
    } else if sides.iter().all(is_number) && sides.iter().any(|side| side.is_floating()) {
        ScalarUDF::from(Comparison::of_floats(compared.op))
    } else {
        return Ok(Transformed::yes(Expr::BinaryExpr(compared)));
    };
    Ok(Transformed::yes(function.call(vec![*compared.left, *compared.right])))
}

/// NULL equals NULL, and the result is never NULL.
fn distinct(
    compared: BinaryExpr,
    left: &Field,
    right: &Field,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    let negated = compared.op == Operator::IsDistinctFrom;
    let known = |expr: Expr| assume_not_null().call(vec![expr]);
    if !left.data_type().is_floating() && !right.data_type().is_floating() {
        return Ok(Transformed::yes(known(Expr::BinaryExpr(compared))));
    }
    let (one, other) = (compared.left.as_ref().clone(), compared.right.as_ref().clone());
    let both_null = one.clone().is_null().and(other.clone().is_null());
    let equal = self::compared(
        BinaryExpr::new(Box::new(one.clone()), Operator::Eq, Box::new(other.clone())),
        schema,
    )?;
    let equal = one.is_not_null().and(other.is_not_null()).and(equal.data);
    let same = both_null.or(equal);
    Ok(Transformed::yes(known(if negated { Expr::Not(Box::new(same)) } else { same })))
}

/// `x BETWEEN low AND high`; with `NOT` it is `x < low OR x > high`.
pub fn between(between: Between, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let sides = [&between.expr, &between.low, &between.high];
    let is_apart = |side: &Expr| {
        is_float(side, schema)
            || is_truth(side, schema) != is_truth(&between.expr, schema)
            || is_of_uuids(side, schema)
            || are_apart(&between.expr, side, schema)
            || are_unlike_times(&between.expr, side, schema)
            || are_read(&between.expr, side, schema)
            || is_of_arrays(side, schema)
    };
    if !sides.iter().any(|side| is_apart(side)) {
        return Ok(Transformed::no(Expr::Between(between)));
    }
    let Between { expr, negated, low, high } = between;
    let side = |op, bound| Ok(compared(BinaryExpr::new(expr.clone(), op, bound), schema)?.data);
    let side: &dyn Fn(Operator, Box<Expr>) -> Result<Expr> = &side;
    Ok(Transformed::yes(match negated {
        false => side(Operator::GtEq, low)?.and(side(Operator::LtEq, high)?),
        true => side(Operator::Lt, low)?.or(side(Operator::Gt, high)?),
    }))
}

/// `tuple IN (..)` where the tuple's elements have names, like those of dictGet, or are Nullable: each listed tuple,
/// without names, is compared. A tuple with NULL in it equals none.
pub fn listed(list: InList, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let by_elements = match list.expr.get_type(schema)? {
        DataType::Struct(fields) => {
            fields.iter().any(|field| field.is_nullable() || field.name().parse::<usize>().is_err())
        }
        _ => false,
    };
    if !by_elements {
        return Ok(Transformed::no(Expr::InList(list)));
    }
    let InList { expr, list, negated } = list;
    let equal =
        |item: Expr| Ok(compared(BinaryExpr::new(expr.clone(), Operator::Eq, Box::new(item)), schema)?.data);
    let any = any(list.into_iter().map(equal).collect::<Result<Vec<_>>>()?);
    let any = assume_not_null().call(vec![any]);
    Ok(Transformed::yes(if negated { Expr::Not(Box::new(any)) } else { any }))
}

/// OR of the conditions, as a balanced tree.
fn any(mut conditions: Vec<Expr>) -> Expr {
    match conditions.len() {
        0 => lit(false),
        1 => conditions.swap_remove(0),
        count => {
            let others = conditions.split_off(count / 2);
            any(conditions).or(any(others))
        }
    }
}

/// Tuples are equal if all their elements are; otherwise the first differing element decides.
fn tuples(compared: &BinaryExpr, left: &Fields, right: &Fields, schema: &DFSchema) -> Result<Expr> {
    if left.len() != right.len() || left.is_empty() {
        let types = [left, right].map(|fields| plain_name(&DataType::Struct(fields.clone())));
        let what = format!("Cannot compare tuples of different sizes: {} and {}", types[0], types[1]);
        return Err(Error::bad_arguments(what).into());
    }
    let places = 0..left.len();
    let is_constant =
        |at| [&compared.left, &compared.right].iter().all(|side| is_written_out(&element(side, at)));
    let is_ordered = !matches!(compared.op, Operator::Eq | Operator::NotEq);
    // An untyped NULL has no order; among constants, equality is unknown, too.
    let has_null = left.iter().chain(right.iter()).any(|field| field.data_type().is_null());
    if has_null && (is_ordered || places.clone().all(is_constant)) {
        return Ok(lit(ScalarValue::Boolean(None)));
    }
    let pair = |op: Operator, at: usize| -> Result<Expr> {
        let sides = [&compared.left, &compared.right].map(|side| Box::new(element(side, at)));
        let [one, other] = sides;
        if [&one, &other].iter().any(|side| side.get_type(schema).is_ok_and(|side| side.is_null())) {
            return Ok(lit(ScalarValue::Boolean(None)));
        }
        Ok(self::compared(BinaryExpr::new(one, op, other), schema)?.data)
    };
    let equal = || -> Result<Expr> {
        let all = places.clone().map(|at| pair(Operator::Eq, at)).collect::<Result<Vec<_>>>()?;
        Ok(all.into_iter().reduce(Expr::and).unwrap_or_else(|| lit(true)))
    };
    let (strict, last) = match compared.op {
        Operator::Eq => return equal(),
        Operator::NotEq => return Ok(Expr::Not(Box::new(equal()?))),
        Operator::Lt | Operator::LtEq => (Operator::Lt, compared.op),
        _ => (Operator::Gt, compared.op),
    };
    let mut order = pair(last, left.len() - 1)?;
    for at in (0..left.len() - 1).rev() {
        order = pair(strict, at)?.or(pair(Operator::Eq, at)?.and(order));
    }
    Ok(order)
}

/// Whether an expression is a literal, perhaps cast.
fn is_written_out(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_written_out(&cast.expr),
        expr => matches!(expr, Expr::Literal(..)),
    }
}

/// An element of a tuple; if the tuple is constructed here, its argument.
pub fn element(tuple: &Expr, at: usize) -> Expr {
    match tuple {
        Expr::ScalarFunction(call) if call.name() == TUPLE && at < call.args.len() => call.args[at].clone(),
        Expr::Alias(alias) => element(&alias.expr, at),
        tuple => {
            ScalarUDF::from(TupleElement::default()).call(vec![tuple.clone(), lit((at + 1).to_string())])
        }
    }
}
