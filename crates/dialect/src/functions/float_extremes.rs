//! `min` and `max` of floats in groups: DataFusion's begin with the largest and the smallest finite number, which
//! infinities exceed. These begin with NaN, which any number replaces, and which replaces none.

use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::logical_expr::GroupsAccumulator;
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

/// The accumulator of such an aggregate; `None`: it is another one.
pub fn of_groups(name: &str, data_type: &DataType) -> Option<Box<dyn GroupsAccumulator>> {
    Some(match (name, data_type) {
        ("min", DataType::Float32) => chosen::<Float32Type>(f32::NAN, |new, least| new < least),
        ("min", DataType::Float64) => chosen::<Float64Type>(f64::NAN, |new, least| new < least),
        ("max", DataType::Float32) => chosen::<Float32Type>(f32::NAN, |new, greatest| new > greatest),
        ("max", DataType::Float64) => chosen::<Float64Type>(f64::NAN, |new, greatest| new > greatest),
        _ => return None,
    })
}

/// Keeps the number that `is_before` all others.
fn chosen<T: ArrowPrimitiveType + Send>(
    nan: T::Native,
    is_before: impl Fn(T::Native, T::Native) -> bool + Send + Sync + 'static,
) -> Box<dyn GroupsAccumulator> {
    let take = move |kept: &mut T::Native, new: T::Native| {
        if is_before(new, *kept) || kept.partial_cmp(&kept).is_none() {
            *kept = new;
        }
    };
    Box::new(PrimitiveGroupsAccumulator::<T, _>::new(&T::DATA_TYPE, take).with_starting_value(nan))
}
