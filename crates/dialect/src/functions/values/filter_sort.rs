//! Functions of arrays and of a lambda's results for their items: the selected items, their places, their order. See
//! `rewrite/lambdas.rs`.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::Scalar;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, UInt8Array, UInt32Array, UInt64Array,
};
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{SortOptions, cast, is_null, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;

use super::lists::{item_of, nans, ordered, picked, range_of};
use super::{Function, of};
use crate::functions::default_value::default_value;

/// A question about each row's flags, given their places and whether a place is set.
macro_rules! asked {
    ($name:literal, $type:ident, $array:ident, $answer:expr) => {
        Function {
            name: $name,
            arguments: 1..=1,
            field: |given| is_flags(&given[0]).then(|| of(DataType::$type)),
            answer: |given, _| {
                let flags = Flags::of(&given[0])?;
                let answer: fn(&Flags, Range<u32>) -> _ = $answer;
                let of_row = |row| answer(&flags, range_of(given[0].as_list(), row));
                Ok(Arc::new($array::from_iter_values((0..given[0].len()).map(of_row))))
            },
        }
    };
}

/// A function that returns one of the selected items.
macro_rules! one {
    ($name:literal, $nullable:literal, $which:expr) => {
        Function {
            name: $name,
            arguments: 2..=2,
            field: |given| {
                let item = item_of(&given[0]).filter(|_| is_flags(&given[1]))?;
                Some(item.as_ref().clone().with_nullable($nullable || item.is_nullable()))
            },
            answer: |given, _| {
                let flags = Flags::of(&given[1])?;
                let which: fn(&Flags, Range<u32>) -> Option<u32> = $which;
                one(given, $nullable, |row| which(&flags, range_of(given[1].as_list(), row)))
            },
        }
    };
}

macro_rules! sorted {
    ($name:literal, $descending:literal) => {
        Function {
            name: $name,
            arguments: 1..=2,
            field: |given| {
                let lists = given.iter().all(|field| item_of(field).is_some());
                lists.then(|| given[0].as_ref().clone())
            },
            answer: |given, field| sorted(given, field, $descending),
        }
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    asked!("arrayExists", UInt8, UInt8Array, |flags, mut items| u8::from(items.any(|at| flags.is_set(at)))),
    asked!("arrayAll", UInt8, UInt8Array, |flags, mut items| u8::from(items.all(|at| flags.is_set(at)))),
    asked!("arrayCount", UInt32, UInt32Array, |flags, items| items.filter(|at| flags.is_set(*at)).count()
        as u32),
    asked!("arrayFirstIndex", UInt32, UInt32Array, |flags, items| {
        flags.first(items.clone()).map_or(0, |at| at - items.start + 1)
    }),
    asked!("arrayLastIndex", UInt32, UInt32Array, |flags, items| {
        flags.last(items.clone()).map_or(0, |at| at - items.start + 1)
    }),
    Function {
        name: "arrayFilter",
        arguments: 2..=2,
        field: |given| {
            let takes = item_of(&given[0]).is_some() && is_flags(&given[1]);
            takes.then(|| given[0].as_ref().clone())
        },
        answer: |given, field| {
            let flags = Flags::of(&given[1])?;
            picked(&given[0], field, |row, items| {
                let flagged = range_of(given[1].as_list(), row);
                items.zip(flagged).filter(|(_, flag)| flags.is_set(*flag)).map(|(item, _)| item).collect()
            })
        },
    },
    one!("arrayFirst", false, Flags::first),
    one!("arrayFirstOrNull", true, Flags::first),
    one!("arrayLast", false, Flags::last),
    one!("arrayLastOrNull", true, Flags::last),
    sorted!("arraySort", false),
    sorted!("arrayReverseSort", true),
];

fn is_flags(field: &FieldRef) -> bool {
    let is_flag =
        |item: &FieldRef| matches!(item.data_type(), DataType::UInt8 | DataType::Boolean | DataType::Null);
    item_of(field).is_some_and(is_flag)
}

/// The lambda's results: which items are selected.
struct Flags(BooleanArray);

impl Flags {
    fn of(list: &ArrayRef) -> Result<Flags> {
        let flags = cast(list.as_list::<i32>().values(), &DataType::Boolean)?;
        Ok(Flags(flags.as_boolean().clone()))
    }

    /// NULL counts as false.
    fn is_set(&self, at: u32) -> bool {
        let at = at as usize;
        self.0.is_valid(at) && self.0.value(at)
    }

    fn first(&self, mut items: Range<u32>) -> Option<u32> {
        items.find(|at| self.is_set(*at))
    }

    fn last(&self, mut items: Range<u32>) -> Option<u32> {
        items.rfind(|at| self.is_set(*at))
    }
}

/// By row, the item at the place that `which` returns; without a place, NULL or the type's default.
fn one(given: &[ArrayRef], nullable: bool, which: impl Fn(usize) -> Option<u32>) -> Result<ArrayRef> {
    let (items, flags) = (given[0].as_list::<i32>(), given[1].as_list::<i32>());
    let place = |row| {
        let at = which(row)? - range_of(flags, row).start;
        Some(u64::from(range_of(items, row).start + at))
    };
    let places: UInt64Array = (0..items.len()).map(place).collect();
    let found = take(items.values(), &places, None)?;
    if nullable || matches!(items.data_type(), DataType::List(item) if item.is_nullable()) {
        return Ok(found);
    }
    let zero = default_value(found.data_type())?.to_array()?;
    Ok(zip(&is_null(&places)?, &Scalar::new(zero), &found)?)
}

/// The items sorted by the values beside them, or by themselves if there are none.
fn sorted(given: &[ArrayRef], field: &Field, descending: bool) -> Result<ArrayRef> {
    let by = given[given.len() - 1].as_list::<i32>();
    let order = ordered(by.values(), SortOptions { descending, nulls_first: false })?;
    let by_null = |at: u32| by.values().is_null(at as usize);
    let nan = nans(by.values())?;
    picked(&given[0], field, |row, items| {
        let mut both: Vec<(u32, u32)> = items.zip(range_of(by, row)).collect();
        // NULL comes after NaN.
        let key = |by: u32| (by_null(by), nan[by as usize], order.row(by as usize));
        both.sort_by_key(|(_, by)| key(*by));
        both.into_iter().map(|(item, _)| item).collect()
    })
}
