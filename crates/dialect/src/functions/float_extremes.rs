//! `min` and `max` of floats in groups: DataFusion's begin with the largest and the smallest number, which infinities are
//! beyond.

use std::cmp::Ordering;

use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::logical_expr::GroupsAccumulator;
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

/// The accumulator of such an aggregate; `None`: it is none of them.
pub fn of_groups(name: &str, data_type: &DataType) -> Option<Box<dyn GroupsAccumulator>> {
    Some(match (name, data_type) {
        ("min", DataType::Float32) => least::<Float32Type>(f32::INFINITY),
        ("min", DataType::Float64) => least::<Float64Type>(f64::INFINITY),
        ("max", DataType::Float32) => greatest::<Float32Type>(f32::NEG_INFINITY),
        ("max", DataType::Float64) => greatest::<Float64Type>(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn least<T: ArrowPrimitiveType + Send>(first: T::Native) -> Box<dyn GroupsAccumulator> {
    let take = |least: &mut T::Native, new: T::Native| {
        if !matches!(new.partial_cmp(least), Some(Ordering::Greater | Ordering::Equal)) {
            *least = new;
        }
    };
    Box::new(PrimitiveGroupsAccumulator::<T, _>::new(&T::DATA_TYPE, take).with_starting_value(first))
}

fn greatest<T: ArrowPrimitiveType + Send>(first: T::Native) -> Box<dyn GroupsAccumulator> {
    let take = |greatest: &mut T::Native, new: T::Native| {
        if !matches!(new.partial_cmp(greatest), Some(Ordering::Less | Ordering::Equal)) {
            *greatest = new;
        }
    };
    Box::new(PrimitiveGroupsAccumulator::<T, _>::new(&T::DATA_TYPE, take).with_starting_value(first))
}
