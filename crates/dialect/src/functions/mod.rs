//! ClickHouse's functions, under ClickHouse's names.

mod aggregates;
pub mod arguments;
mod arithmetic;
mod array;
pub(crate) mod array_order;
pub(crate) mod as_type;
mod assume_not_null;
mod bool;
mod cityhash;
mod comparison;
mod concat;
mod convert;
mod cut;
mod cut_decimal;
mod decimal_arithmetic;
mod declared_as;
mod default_value;
mod exact;
mod extremes;
mod fixed_string;
mod float_extremes;
mod frame_sum;
mod hash;
mod identifiers;
mod ieee;
mod ignore;
mod inherited;
mod lambda;
mod length;
mod lenient;
mod local_time;
mod map;
mod materialize;
mod moments;
pub(crate) mod names;
mod nan_first;
mod negate;
mod number_text;
mod numbers;
mod parse;
mod planner;
pub(crate) mod quantile;
mod rand;
mod refused_conversions;
mod rounding;
mod scalar;
mod sleep;
mod subcolumns;
mod subquery_value;
mod supertype;
pub(crate) mod truth;
mod tuple;
mod tuple_element;
mod type_name;
mod uuid;
pub(crate) mod uuid_order;
mod values;
mod zone;

use std::sync::Arc;

use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{HigherOrderUDF, ScalarUDF};
use granary_dict::WaitLimit;

use crate::error::Result;
use crate::limits::SLEEPERS_MAX;
pub(crate) use aggregates::{has_list, over_non_null, over_nullable, with_empty_value};
use arithmetic::{Arithmetic, Operation};

pub use as_type::inserted;
pub(crate) use assume_not_null::{NOT_NULL, assume_not_null};
pub(crate) use comparison::Comparison;
pub(crate) use convert::Convert;
pub use convert::{check_range, clamped, convert};
pub(crate) use cut_decimal::to_decimal;
pub(crate) use declared_as::DeclaredAs;
pub use default_value::{default_of, default_value};
pub use exact::exact;
pub use fixed_string::trimmed;
pub(crate) use inherited::{aggregates, planners, scalars, windows};
pub(crate) use lambda::ARRAY_MAP;
pub(crate) use lenient::ToNullable;
pub(crate) use materialize::{MATERIALIZE, materialize};
pub(crate) use nan_first::{nan_greatest, nan_least};
pub(crate) use negate::NEGATE;
pub(crate) use number_text::number_of;
pub use numbers::{check_bytes, rows, shaped};
pub use parse::range;
pub use planner::constant_text;
pub(crate) use planner::{ArithmeticPlanner, ClickHouseTypes, text_as, text_of, type_spelling};
pub(crate) use subquery_value::subquery_value;
pub(crate) use supertype::{common_type, is_plain, supertype, type_of};
pub(crate) use tuple::TUPLE;
pub use tuple_element::TupleElement;
pub(crate) use zone::TO_TIME_ZONE;

const OPERATIONS: [Operation; 7] = [
    Operation::Plus,
    Operation::Minus,
    Operation::Multiply,
    Operation::Divide,
    Operation::Modulo,
    Operation::IntDiv,
    Operation::IntDivOrZero,
];

/// Whether the function takes a zone after a time, and shows the time there.
pub(crate) fn looks_in_zone(name: &str) -> bool {
    name != "toDayOfWeek" && values::in_calendars().any(|function| function.name() == name)
}

/// The function that rounds times down to this unit.
pub(crate) fn start_of_interval(unit: &str) -> Option<String> {
    values::units().any(|known| known == unit).then(|| format!("toStartOfInterval/{unit}"))
}

/// Names of the functions of dictionaries, which the crate with the dictionaries registers.
pub fn of_dictionaries() -> impl Iterator<Item = &'static str> {
    names::by(names::Implementation::Dictionary)
}

/// The function of this name, if it is one that answers row by row.
pub(crate) fn value_function(name: &str) -> Option<ScalarUDF> {
    let function = values::all().find(|function| function.name() == name)?;
    Some(ScalarUDF::from(values::ValueFunction::new(function)))
}

/// Registers the dialect's functions with a session, except those of dictionaries and files. `sleep` waits by
/// `waiting`.
///
/// # Errors
/// An error of DataFusion's registry.
pub fn register(context: &SessionContext, waiting: &WaitLimit) -> Result<()> {
    for operation in OPERATIONS {
        context.register_udf(ScalarUDF::from(Arithmetic::new(operation)));
    }
    for action in array::ACTIONS {
        context.register_udf(ScalarUDF::from(array::ArrayFunction::new(action)));
    }
    for action in map::ACTIONS {
        context.register_udf(ScalarUDF::from(map::MapFunction::new(action)));
    }
    for function in values::all() {
        context.register_udf(ScalarUDF::from(values::ValueFunction::new(function)));
    }
    for question in length::LENGTH_FUNCTIONS {
        context.register_udf(ScalarUDF::from(length::Length::new(question)));
    }
    for (name, target) in convert::TARGETS {
        context.register_udf(ScalarUDF::from(convert::Convert::new(name, target.clone())));
    }
    for width in [hash::HashWidth::Bits32, hash::HashWidth::Bits64] {
        context.register_udf(ScalarUDF::from(hash::IntHash::new(width)));
    }
    for role in [truth::Role::Condition, truth::Role::Choice, truth::Role::Number] {
        context.register_udf(ScalarUDF::from(truth::Truth::new(role)));
    }
    for function in lenient::all() {
        context.register_udf(ScalarUDF::from(function));
    }
    context.register_udf(ScalarUDF::from(lenient::ToNullable::default()));
    for joining in [concat::Joining::Directly, concat::Joining::BySeparator] {
        context.register_udf(ScalarUDF::from(concat::Concat::new(joining)));
    }
    for direction in rounding::DIRECTIONS {
        context.register_udf(ScalarUDF::from(rounding::Rounding::new(direction)));
    }
    let sleeping = waiting.with_own_limit(SLEEPERS_MAX);
    for sleeper in sleep::SLEEPERS {
        context.register_udf(ScalarUDF::from(sleep::Sleep::new(sleeper, sleeping.clone())));
    }
    for width in [rand::RandWidth::Bits32, rand::RandWidth::Bits64] {
        context.register_udf(ScalarUDF::from(rand::Rand::new(width)));
    }
    for extreme in [extremes::Extreme::Greatest, extremes::Extreme::Least] {
        context.register_udf(ScalarUDF::from(extremes::Extremes::new(extreme)));
    }
    for function in identifiers::all() {
        context.register_udf(ScalarUDF::from(function));
    }
    let others = [
        ScalarUDF::from(as_type::AsType::default()),
        assume_not_null(),
        assume_not_null::refuse_null(),
        bool::to_bool(),
        cityhash::city_hash(),
        fixed_string::to_fixed_string(),
        ignore::ignore(),
        materialize(),
        negate::negate(),
        tuple::tuple(),
        ScalarUDF::from(tuple_element::TupleElement::default()),
        type_name::to_type_name(),
        uuid::to_uuid(),
        zone::to_time_zone(),
    ];
    for function in others {
        context.register_udf(function);
    }
    context
        .register_higher_order_function(Arc::new(HigherOrderUDF::new_from_impl(lambda::ArrayMap::default())));
    aggregates::register(context)?;
    context.state_ref().write().register_expr_planner(Arc::new(ArithmeticPlanner))?;
    Ok(())
}
