//! Hooks by which DataFusion plans ClickHouse's operators and types.

use std::borrow::Cow;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr, TypePlanner,
};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, GetFieldAccess, Operator, ScalarUDF};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType as SqlType, ExactNumberInfo, Ident, ObjectName, ObjectNamePart,
};
use granary_dict::DataType as ClickHouseType;

use super::arithmetic::{Arithmetic, Operation};
use super::array::{ArrayAction, ArrayFunction};
use super::as_type::{AS_TYPE, AsType};
use super::convert::Convert;
use super::uuid::to_uuid;
use crate::error::Error;
use crate::plan::{function_of, never_compared, no_common_type};
use crate::types::{declared, fixed_bytes, is_time, plain_name};

/// Plans arithmetic as ClickHouse's functions, comparisons by ClickHouse's types, and array literals.
#[derive(Debug)]
pub(crate) struct ArithmeticPlanner;

impl ExprPlanner for ArithmeticPlanner {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let (left, right) = (type_of(&raw.left, schema)?, type_of(&raw.right, schema)?);
        if let Some(operator) = comparison(&raw.op) {
            let planned = compare(typed_text(raw, schema), operator, &left, &right);
            if let PlannerResult::Original(raw) = &planned {
                check_compared(operator, &type_of(&raw.left, schema)?, &type_of(&raw.right, schema)?)?;
            }
            return Ok(planned);
        }
        let operation = match raw.op {
            BinaryOperator::Plus => Operation::Plus,
            BinaryOperator::Minus => Operation::Minus,
            BinaryOperator::Multiply => Operation::Multiply,
            BinaryOperator::Divide => Operation::Divide,
            BinaryOperator::Modulo => Operation::Modulo,
            BinaryOperator::MyIntegerDivide => Operation::IntDiv,
            _ => return Ok(PlannerResult::Original(raw)),
        };
        // Between two of these DataFusion has durations, which ClickHouse lacks.
        let is_ours = operation.result_type(&left, &right).is_some()
            || is_time(&left) && is_time(&right)
            || left.is_numeric() && right.is_numeric();
        if !is_ours && !left.is_null() && !right.is_null() {
            return Err(operation.no_types(&left, &right).into());
        }
        let function = ScalarUDF::from(Arithmetic::new(operation));
        Ok(PlannerResult::Planned(function.call(vec![raw.left, raw.right])))
    }

    fn plan_array_literal(&self, items: Vec<Expr>, _: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(ScalarUDF::from(ArrayFunction::new(ArrayAction::Make)).call(items)))
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let key = match &access.field_access {
            GetFieldAccess::ListIndex { key } => key.as_ref().clone(),
            GetFieldAccess::NamedStructField { name }
                if matches!(type_of(&access.expr, schema)?, DataType::Map(..)) =>
            {
                Expr::Literal(name.clone(), None)
            }
            _ => return Ok(PlannerResult::Original(access)),
        };
        let function = ScalarUDF::from(ArrayFunction::new(ArrayAction::Element));
        Ok(PlannerResult::Planned(function.call(vec![access.expr, key])))
    }
}

fn comparison(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    one_sided(expr, schema)?.get_type(schema)
}

/// The expression with one side's column in place of each USING column, which both sides have during planning:
/// DataFusion chooses one of them, or refuses the name, later.
fn one_sided<'a>(expr: &'a Expr, schema: &DFSchema) -> Result<Cow<'a, Expr>> {
    let sides = |column: &Column| match column.relation {
        None => schema.qualified_fields_with_unqualified_name(&column.name),
        Some(_) => Vec::new(),
    };
    if !expr.exists(|expr| Ok(matches!(expr, Expr::Column(column) if sides(column).len() > 1)))? {
        return Ok(Cow::Borrowed(expr));
    }
    let of_one = |expr: Expr| match &expr {
        Expr::Column(column) => match sides(column).first() {
            Some(side) => Ok(Transformed::yes(Expr::Column(Column::from(*side)))),
            None => Ok(Transformed::no(expr)),
        },
        _ => Ok(Transformed::no(expr)),
    };
    Ok(Cow::Owned(expr.clone().transform(of_one).data()?))
}

/// Refuses a comparison of types without a common one.
fn check_compared(operator: Operator, left: &DataType, right: &DataType) -> Result<(), Error> {
    if BinaryTypeCoercer::new(left, &operator, right).get_input_types().is_ok() {
        return Ok(());
    }
    let Some(function) = function_of(operator) else { return Ok(()) };
    let (one, other) = (plain_name(left), plain_name(right));
    Err(match (one == "String") != (other == "String") {
        true => no_common_type(&one, &other, function),
        false => never_compared(&one, &other, function),
    })
}

/// Converts a text that is compared with a value of a type unknown to Arrow.
fn typed_text(mut raw: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let field = |expr: &Expr| one_sided(expr, schema).ok()?.to_field(schema).ok().map(|(_, field)| field);
    let (Some(left), Some(right)) = (field(&raw.left), field(&raw.right)) else { return raw };
    // The padding of a FixedString is not compared.
    if fixed_bytes(&left).is_some() {
        raw.left = text_of(raw.left);
    }
    if fixed_bytes(&right).is_some() {
        raw.right = text_of(raw.right);
    }
    // Comparisons with days are handled later.
    let other = |field: &Field| declared(field).filter(|_| field.data_type() != &DataType::Date32);
    match (other(&left), other(&right)) {
        (Some(wanted), _) if right.data_type().is_string() => {
            raw.right = text_as(raw.right, wanted.inner());
        }
        (_, Some(wanted)) if left.data_type().is_string() => {
            raw.left = text_as(raw.left, wanted.inner());
        }
        _ => {}
    }
    raw
}

/// A value as the text it is shown as.
pub(crate) fn text_of(value: Expr) -> Expr {
    ScalarUDF::from(Convert::new("toString", DataType::Utf8)).call(vec![value])
}

/// Converts a text to a type by the rules of CAST, although the query has no cast.
pub(crate) fn text_as(text: Expr, wanted: &ClickHouseType) -> Expr {
    let name = Expr::Literal(ScalarValue::Utf8(Some(wanted.to_string())), None);
    ScalarUDF::from(AsType::default()).call(vec![said_by_nobody(text), name])
}

/// Marks a text that is converted without a cast in the query: `plan/comparisons.rs` recognises it by this cast, which
/// DataFusion drops.
fn said_by_nobody(text: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(text), DataType::Utf8))
}

/// `dictHas(...) = 1`: a condition compared with a number becomes a number; a DateTime becomes its Unix time. A literal
/// compared with a UUID becomes a UUID.
fn compare(
    mut raw: RawBinaryExpr,
    operator: Operator,
    left: &DataType,
    right: &DataType,
) -> PlannerResult<RawBinaryExpr> {
    let cast = |expr: Expr, to: DataType| Expr::Cast(Cast::new(Box::new(expr), to));
    let as_number = |expr: Expr| cast(expr, DataType::UInt8);
    let is_seconds = |data_type: &DataType| matches!(data_type, DataType::Timestamp(TimeUnit::Second, _));
    let as_uuid = |expr: Expr| match expr {
        // Already converted to the other's type, which is not UUID.
        Expr::ScalarFunction(call) if call.name() == AS_TYPE => Expr::ScalarFunction(call),
        text => to_uuid().call(vec![said_by_nobody(text)]),
    };
    match (left, right) {
        (DataType::FixedSizeBinary(16), right) if right.is_string() => raw.right = as_uuid(raw.right),
        (left, DataType::FixedSizeBinary(16)) if left.is_string() => raw.left = as_uuid(raw.left),
        (DataType::Boolean, right) if right.is_numeric() => raw.left = as_number(raw.left),
        (left, DataType::Boolean) if left.is_numeric() => raw.right = as_number(raw.right),
        (left, right) if is_seconds(left) && right.is_numeric() && !right.is_decimal() => {
            raw.left = cast(raw.left, DataType::Int64)
        }
        (left, right) if is_seconds(right) && left.is_numeric() && !left.is_decimal() => {
            raw.right = cast(raw.right, DataType::Int64)
        }
        _ => return PlannerResult::Original(raw),
    }
    let compared = BinaryExpr::new(Box::new(raw.left), operator, Box::new(raw.right));
    PlannerResult::Planned(Expr::BinaryExpr(compared))
}

/// ClickHouse's type names in CAST.
#[derive(Debug)]
pub(crate) struct ClickHouseTypes;

impl TypePlanner for ClickHouseTypes {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        let Some(name) = name(sql_type) else { return Ok(None) };
        match ClickHouseType::parse(&name) {
            // A CAST may always return NULL; whether it does is known from the value.
            Ok(data_type) => Ok(Some(data_type.to_field("cast").with_nullable(true).into())),
            Err(error) => Err(Error::from(error).into()),
        }
    }
}

/// ClickHouse's spelling of a type.
pub(crate) fn type_spelling(sql_type: &SqlType) -> String {
    match sql_type {
        SqlType::Array(ArrayElemTypeDef::Parenthesis(item)) => format!("Array({})", type_spelling(item)),
        SqlType::Nullable(inner) => format!("Nullable({})", type_spelling(inner)),
        SqlType::Map(key, value) => format!("Map({}, {})", type_spelling(key), type_spelling(value)),
        SqlType::Tuple(elements) => {
            let elements = elements.iter().map(|e| element(e.field_name.as_ref(), &e.field_type));
            format!("Tuple({})", elements.collect::<Vec<_>>().join(", "))
        }
        SqlType::Nested(elements) => {
            let elements = elements.iter().map(|e| element(Some(&e.name), &e.data_type));
            format!("Nested({})", elements.collect::<Vec<_>>().join(", "))
        }
        SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale)) => {
            format!("Decimal({precision}, {scale})")
        }
        SqlType::Date => "Date".into(),
        other => name(other).unwrap_or_else(|| other.to_string()),
    }
}

fn element(name: Option<&Ident>, data_type: &SqlType) -> String {
    match name {
        Some(name) => {
            format!("`{}` {}", name.value.replace('\\', "\\\\").replace('`', "\\`"), type_spelling(data_type))
        }
        None => type_spelling(data_type),
    }
}

/// ClickHouse's spelling of a type that is not SQL's own.
fn name(sql_type: &SqlType) -> Option<String> {
    Some(match sql_type {
        SqlType::UInt8 => "UInt8".into(),
        SqlType::UInt16 => "UInt16".into(),
        SqlType::UInt32 => "UInt32".into(),
        SqlType::UInt64 => "UInt64".into(),
        SqlType::Int8(None) => "Int8".into(),
        SqlType::Int16 => "Int16".into(),
        SqlType::Int32 => "Int32".into(),
        SqlType::Int64 => "Int64".into(),
        SqlType::UInt256 => "UInt256".into(),
        SqlType::Float32 => "Float32".into(),
        SqlType::Float64 => "Float64".into(),
        SqlType::String(None) => "String".into(),
        SqlType::Date32 => "Date32".into(),
        SqlType::Datetime(None) => "DateTime".into(),
        SqlType::Uuid => "UUID".into(),
        SqlType::Bool => "Bool".into(),
        SqlType::LowCardinality(inner) => return name(inner),
        SqlType::Nullable(inner) => format!("Nullable({})", name(inner).unwrap_or_else(|| inner.to_string())),
        // The parser drops the zone's quotes.
        SqlType::Custom(name, zone) if !zone.is_empty() && is_datetime(name) => {
            format!("DateTime('{}')", zone.concat())
        }
        SqlType::Custom(..) => sql_type.to_string(),
        _ => return None,
    })
}

fn is_datetime(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [ObjectNamePart::Identifier(name)] if name.value == "DateTime")
}

/// The text of a constant, for functions that require one.
pub fn constant_text(scalar: Option<&ScalarValue>) -> Option<&str> {
    match scalar {
        Some(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
        ) => Some(text),
        _ => None,
    }
}
