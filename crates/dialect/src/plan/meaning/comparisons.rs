//! Comparisons of floats as IEEE 754 says, and of tuples element by element.

use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, Cast, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF, lit};

use crate::error::Error;
use crate::functions::{AssumeNotNull, Ieee, TUPLE, TupleElement};
use crate::types::plain_name;

pub fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| data_type.is_floating())
}

/// A comparison by ClickHouse's rules.
pub fn compared(compared: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
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
    let is_text_or_number = |field: &Field| {
        let data_type = field.data_type();
        data_type.is_numeric() || data_type.is_string() || data_type == &DataType::Boolean
    };
    let of_floats = (left.data_type().is_floating() || right.data_type().is_floating())
        && is_text_or_number(&left)
        && is_text_or_number(&right);
    match of_floats {
        true => ieee(compared, schema).map(Transformed::yes),
        false => Ok(Transformed::no(Expr::BinaryExpr(compared))),
    }
}

/// The comparison as IEEE 754 has it; a text is read as a number.
fn ieee(compared: BinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let number = |side: Expr| -> Result<Expr> {
        Ok(match side.get_type(schema)?.is_string() {
            true => Expr::Cast(Cast::new(Box::new(side), DataType::Float64)),
            false => side,
        })
    };
    let function = ScalarUDF::from(Ieee::new(compared.op));
    Ok(function.call(vec![number(*compared.left)?, number(*compared.right)?]))
}

/// Two NULLs are the same, and the answer is never NULL.
fn distinct(
    compared: BinaryExpr,
    left: &Field,
    right: &Field,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    let negated = compared.op == Operator::IsDistinctFrom;
    let known = |expr: Expr| ScalarUDF::from(AssumeNotNull::unchecked()).call(vec![expr]);
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

/// `x BETWEEN low AND high`, of which `NOT` is `x < low OR x > high`.
pub fn between(between: Between, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let sides = [&between.expr, &between.low, &between.high];
    if !sides.iter().any(|side| is_float(side, schema)) {
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

/// `tuple IN (..)` where the elements of the tuple have names, as those of dictGet: it is one of the others, which have
/// none. A tuple with NULL in it is none of them.
pub fn listed(list: InList, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_named = match list.expr.get_type(schema)? {
        DataType::Struct(fields) => fields.iter().any(|field| field.name().parse::<usize>().is_err()),
        _ => false,
    };
    if !is_named {
        return Ok(Transformed::no(Expr::InList(list)));
    }
    let InList { expr, list, negated } = list;
    let equal =
        |item: Expr| Ok(compared(BinaryExpr::new(expr.clone(), Operator::Eq, Box::new(item)), schema)?.data);
    let any = list.into_iter().map(equal).collect::<Result<Vec<_>>>()?;
    let any = any.into_iter().reduce(Expr::or).unwrap_or_else(|| lit(false));
    let any = ScalarUDF::from(AssumeNotNull::unchecked()).call(vec![any]);
    Ok(Transformed::yes(if negated { Expr::Not(Box::new(any)) } else { any }))
}

/// Tuples are equal if all their elements are, and the first that differs says which one is less.
fn tuples(compared: &BinaryExpr, left: &Fields, right: &Fields, schema: &DFSchema) -> Result<Expr> {
    if left.len() != right.len() || left.is_empty() {
        let types = [left, right].map(|fields| plain_name(&DataType::Struct(fields.clone())));
        let what = format!("Cannot compare tuples of different sizes: {} and {}", types[0], types[1]);
        return Err(Error::bad_arguments(what).into());
    }
    let places = 0..left.len();
    let pair = |op: Operator, at: usize| -> Result<Expr> {
        let sides = [&compared.left, &compared.right].map(|side| Box::new(element(side, at)));
        let [one, other] = sides;
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

/// An element of a tuple; of one that is made on the spot, what it is made of.
fn element(tuple: &Expr, at: usize) -> Expr {
    match tuple {
        Expr::ScalarFunction(call) if call.name() == TUPLE && at < call.args.len() => call.args[at].clone(),
        Expr::Alias(alias) => element(&alias.expr, at),
        tuple => {
            ScalarUDF::from(TupleElement::default()).call(vec![tuple.clone(), lit((at + 1).to_string())])
        }
    }
}
