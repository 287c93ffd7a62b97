//! Arrays compared with each other, and with single items.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Scalar, UInt8Array, UInt32Array, UInt64Array};
use datafusion::arrow::compute::kernels::numeric::add;
use datafusion::arrow::compute::{SortOptions, cast, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{Row, Rows};
use datafusion::common::{Result, ScalarValue};

use super::lists::{item_of, list_field, list_of, nans, ordered, picked, range_of};
use super::{Function, of};
use crate::functions::{is_plain, supertype, type_of};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "hasAny",
        arguments: 2..=2,
        field: |given| compared(given).map(|_| of(DataType::UInt8)),
        answer: |given, _| {
            let both = Both::of(given)?;
            Ok(flags(given[0].len(), |row| {
                both.second(row).flatten().any(|item| both.first(row).flatten().any(|other| other == item))
            }))
        },
    },
    Function {
        name: "hasAll",
        arguments: 2..=2,
        field: |given| compared(given).map(|_| of(DataType::UInt8)),
        answer: |given, _| {
            let both = Both::of(given)?;
            Ok(flags(given[0].len(), |row| {
                let first: HashSet<Row<'_>> = both.first(row).flatten().collect();
                both.second(row).all(|item| item.is_some_and(|item| first.contains(&item)))
            }))
        },
    },
    Function {
        name: "arrayIntersect",
        arguments: 2..=2,
        field: |given| {
            let same = given[0].data_type() == given[1].data_type();
            compared(given).filter(|item| same && !item.data_type().is_floating()).map(list_field)
        },
        answer: |given, field| {
            let both = Both::of(given)?;
            let DataType::List(item) = field.data_type() else { return Ok(Arc::clone(&given[0])) };
            let list = cast(&given[0], &DataType::new_list(item.data_type().clone(), true))?;
            picked(&list, field, |row, items| {
                let others: HashSet<Row<'_>> = both.second(row).flatten().collect();
                let mut seen = HashSet::new();
                let is_wanted = |at: &u32| {
                    let item = both.items.row(*at as usize);
                    others.contains(&item) && seen.insert(item)
                };
                items.filter(is_wanted).collect()
            })
        },
    },
    Function {
        name: "indexOf",
        arguments: 2..=2,
        field: |given| looked_for(given).map(|_| of(DataType::UInt64)),
        answer: |given, _| {
            let both = Both::of(&wrapped(given)?)?;
            let index = |row| {
                let wanted = both.second(row).next();
                both.first(row).position(|item| Some(item) == wanted).map_or(0, |at| at as u64 + 1)
            };
            Ok(Arc::new(UInt64Array::from_iter_values((0..given[0].len()).map(index))))
        },
    },
    Function {
        name: "countEqual",
        arguments: 2..=2,
        field: |given| looked_for(given).map(|_| of(DataType::UInt64)),
        answer: |given, _| {
            let both = Both::of(&wrapped(given)?)?;
            let count = |row| {
                let wanted = both.second(row).next();
                both.first(row).filter(|item| Some(*item) == wanted).count() as u64
            };
            Ok(Arc::new(UInt64Array::from_iter_values((0..given[0].len()).map(count))))
        },
    },
    Function {
        name: "arrayUniq",
        arguments: 1..=1,
        field: |given| item_of(&given[0]).map(|_| of(DataType::UInt32)),
        answer: |given, _| {
            let list = given[0].as_list::<i32>();
            let items = ordered(list.values(), SortOptions::default())?;
            let count = |row| {
                let all: HashSet<Row<'_>> = range_of(list, row).map(|at| items.row(at as usize)).collect();
                all.len() as u32
            };
            Ok(Arc::new(UInt32Array::from_iter_values((0..list.len()).map(count))))
        },
    },
    Function {
        name: "arrayConcat",
        arguments: 1..=usize::MAX,
        field: |given| common(given).map(list_field),
        answer: joined,
    },
    Function {
        name: "arrayPushBack",
        arguments: 2..=2,
        field: |given| with_item(given).map(list_field),
        answer: |given, field| joined(&wrapped(given)?, field),
    },
    Function {
        name: "arrayPushFront",
        arguments: 2..=2,
        field: |given| with_item(given).map(list_field),
        answer: |given, field| {
            let mut lists = wrapped(given)?;
            lists.reverse();
            joined(&lists, field)
        },
    },
];

fn flags(rows: usize, is: impl Fn(usize) -> bool) -> ArrayRef {
    Arc::new(UInt8Array::from_iter_values((0..rows).map(|row| u8::from(is(row)))))
}

/// The common type of the items of all these arrays.
fn common(given: &[FieldRef]) -> Option<Field> {
    let items = given.iter().map(item_of).collect::<Option<Vec<_>>>()?;
    resolved(&items)
}

/// The common type of an array's items and a single item, which must not be Nullable.
fn with_item(given: &[FieldRef]) -> Option<Field> {
    if given[1].is_nullable() { None } else { resolved(&[item_of(&given[0])?, &given[1]]) }
}

/// The common type of arrays whose items are compared: equal items are equal bytes.
fn compared(given: &[FieldRef]) -> Option<Field> {
    let is_plain = |field: &FieldRef| item_of(field).is_some_and(|item| !item.is_nullable());
    common(given).filter(|_| given.iter().all(is_plain))
}

/// The common type of an array's items and a single one, unless these are floats: NaN is not equal to itself.
fn looked_for(given: &[FieldRef]) -> Option<Field> {
    with_item(given).filter(|item| !item.data_type().is_floating())
}

fn resolved(items: &[&FieldRef]) -> Option<Field> {
    let known: Vec<&FieldRef> = items.iter().copied().filter(|item| !item.data_type().is_null()).collect();
    if known.len() < items.len() && known.iter().any(|item| item.data_type().is_nested()) {
        return None;
    }
    let data_type = match known.as_slice() {
        [] => DataType::Null,
        [first, others @ ..] if others.iter().all(|other| other.data_type() == first.data_type()) => {
            first.data_type().clone()
        }
        known => {
            let types = known.iter().map(|item| type_of(item)).collect::<Option<Vec<_>>>()?;
            Some(supertype(&types)?.to_arrow()).filter(is_plain)?
        }
    };
    let nullable = items.iter().any(|item| item.is_nullable());
    let like = items.iter().find(|item| item.data_type() == &data_type);
    let metadata = like.map(|item| item.metadata().clone()).unwrap_or_default();
    Some(Field::new("item", data_type, nullable).with_metadata(metadata))
}

/// An array, and an array of the single item beside it.
fn wrapped(given: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let item = Field::new("item", given[1].data_type().clone(), true);
    let lengths = std::iter::repeat_n(1, given[1].len());
    Ok(vec![Arc::clone(&given[0]), list_of(&list_field(item), lengths, Arc::clone(&given[1]))?])
}

/// Two columns of arrays with comparable items.
struct Both {
    lists: [datafusion::arrow::array::ListArray; 2],
    /// The items of the first column's arrays, then those of the second's.
    items: Rows,
    /// Which items are NaN, and thus equal to nothing.
    nan: Vec<bool>,
}

impl Both {
    fn of(given: &[ArrayRef]) -> Result<Both> {
        let lists = [given[0].as_list::<i32>().clone(), given[1].as_list::<i32>().clone()];
        let items = lists.each_ref().map(|list| Arc::new(of(list.values().data_type().clone())));
        let wanted = resolved(&items.each_ref()).map_or(DataType::Null, |item| item.data_type().clone());
        let items = lists.iter().map(|list| cast(list.values(), &wanted)).collect::<Result<Vec<_>, _>>()?;
        let all = concat(&[items[0].as_ref(), items[1].as_ref()])?;
        // Adding 0 turns -0 into 0.
        let all = if all.data_type().is_floating() { add(&all, &new_zero(all.data_type())?)? } else { all };
        let nan = nans(&all)?;
        Ok(Both { lists, items: ordered(&all, SortOptions::default())?, nan })
    }

    /// The items of a row; `None` is NaN.
    fn first(&self, row: usize) -> impl Iterator<Item = Option<Row<'_>>> {
        range_of(&self.lists[0], row).map(|at| self.item(at as usize))
    }

    fn second(&self, row: usize) -> impl Iterator<Item = Option<Row<'_>>> {
        let before = self.lists[0].values().len();
        range_of(&self.lists[1], row).map(move |at| self.item(before + at as usize))
    }

    fn item(&self, at: usize) -> Option<Row<'_>> {
        (!self.nan[at]).then(|| self.items.row(at))
    }
}

fn new_zero(data_type: &DataType) -> Result<Scalar<ArrayRef>> {
    Ok(Scalar::new(ScalarValue::new_zero(data_type)?.to_array()?))
}

/// Concatenates the arrays of each row.
fn joined(given: &[ArrayRef], field: &Field) -> Result<ArrayRef> {
    let DataType::List(item) = field.data_type() else { return Ok(Arc::clone(&given[0])) };
    let lists: Vec<_> = given.iter().map(|list| list.as_list::<i32>()).collect();
    let items =
        lists.iter().map(|list| cast(list.values(), item.data_type())).collect::<Result<Vec<_>, _>>()?;
    let all = concat(&items.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?;
    let (mut places, mut lengths) = (Vec::with_capacity(all.len()), Vec::new());
    for row in 0..given[0].len() {
        let (before, mut first) = (places.len(), 0);
        for list in &lists {
            places.extend(range_of(list, row).map(|at| at + first));
            first += list.values().len() as u32;
        }
        lengths.push(places.len() - before);
    }
    list_of(field, lengths.into_iter(), take(&all, &UInt32Array::from(places), None)?)
}
