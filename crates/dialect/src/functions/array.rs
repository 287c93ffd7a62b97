//! Arrays: `[a, b]` and `array(a, b)`, `arrayElement(array, n)` and `array[n]`, `has(array, element)` (the last two
//! also for maps); `arrayDistinct(array)`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, UInt8Array, UInt64Array, new_null_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::kernels::cmp::not_distinct;
use datafusion::arrow::compute::{cast, interleave, is_null, nullif, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, UInt64Type};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::binary::type_union_resolution;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::arguments;
use super::default_value::default_value;
use super::map;
use super::numbers::{array_bits, by_slices, expanded, rows, shaped};
use crate::error::Error;
use crate::types::plain_name;

/// Operations on arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArrayAction {
    /// Makes an array of elements.
    Make,
    /// Takes the n-th element, from 1 forwards or -1 backwards; beyond the ends, the default of its type.
    Element,
    /// Whether an array has an element.
    Has,
    /// Removes repeated elements and NULL.
    Distinct,
}

pub const ACTIONS: [ArrayAction; 4] =
    [ArrayAction::Make, ArrayAction::Element, ArrayAction::Has, ArrayAction::Distinct];

/// A function of arrays.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ArrayFunction {
    action: ArrayAction,
    signature: Signature,
}

impl ArrayAction {
    pub fn name(self) -> &'static str {
        match self {
            ArrayAction::Make => "array",
            ArrayAction::Element => "arrayElement",
            ArrayAction::Has => "has",
            ArrayAction::Distinct => "arrayDistinct",
        }
    }
}

impl ArrayFunction {
    pub fn new(action: ArrayAction) -> Self {
        let signature = match action {
            ArrayAction::Make => Signature::one_of(
                vec![TypeSignature::Nullary, TypeSignature::UserDefined],
                Volatility::Immutable,
            ),
            ArrayAction::Element | ArrayAction::Has | ArrayAction::Distinct => {
                arguments::any(Volatility::Immutable)
            }
        };
        Self { action, signature }
    }
}

impl ScalarUDFImpl for ArrayFunction {
    fn name(&self) -> &str {
        self.action.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let common = coerced(arguments)?;
        Ok(vec![common; arguments.len()])
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match (self.action, arguments) {
            (ArrayAction::Make, []) => Ok(DataType::new_list(DataType::Null, true)),
            (ArrayAction::Make, [element, ..]) => Ok(DataType::new_list(element.clone(), true)),
            (ArrayAction::Element | ArrayAction::Distinct, [DataType::List(element), ..])
                if element.data_type().is_null() =>
            {
                Err(self.illegal(arguments))
            }
            (ArrayAction::Element, [DataType::List(element), index]) if index.is_integer() => {
                Ok(element.data_type().clone())
            }
            (ArrayAction::Has, [DataType::List(item), element]) => {
                let is_empty = item.data_type().is_null();
                let same = item.data_type() == element
                    || item.data_type().is_integer() && element.is_integer()
                    || item.data_type().is_string() && element.is_string();
                match same || is_empty || element.is_null() {
                    true => Ok(DataType::UInt8),
                    false => Err(self.illegal(arguments)),
                }
            }
            (ArrayAction::Distinct, [list @ DataType::List(_)]) => Ok(list.clone()),
            (ArrayAction::Element | ArrayAction::Has, [map @ DataType::Map(..), key]) => {
                let (keys, values) = map::entry(map).expect("a map has entries");
                match self.action {
                    _ if !are_comparable(keys.data_type(), key) => Err(self.illegal(arguments)),
                    ArrayAction::Element => Ok(values.data_type().clone()),
                    _ => Ok(DataType::UInt8),
                }
            }
            _ => Err(self.illegal(arguments)),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let wanted = match self.action {
            ArrayAction::Make => 0..=usize::MAX,
            ArrayAction::Element | ArrayAction::Has => 2..=2,
            ArrayAction::Distinct => 1..=1,
        };
        arguments::check_count(self.name(), args.arg_fields.len(), wanted)?;
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = match (self.return_type(&types)?, types.as_slice()) {
            (DataType::List(element), _) if self.action == ArrayAction::Make => {
                let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
                let element = Field::new("item", element.data_type().clone(), nullable);
                let element = element.with_metadata(common_metadata(args.arg_fields));
                Field::new(self.name(), DataType::List(Arc::new(element)), false)
            }
            // An element of an array of IPv4 is an IPv4.
            (data_type, [DataType::List(element), ..]) if self.action == ArrayAction::Element => {
                let nullable =
                    element.is_nullable() || args.arg_fields[1].is_nullable() && !data_type.is_nested();
                Field::new(self.name(), data_type, nullable).with_metadata(element.metadata().clone())
            }
            (data_type, [given @ DataType::Map(..), _]) if self.action == ArrayAction::Element => {
                let (_, value) = map::entry(given).expect("a map has entries");
                let nullable = value.is_nullable() || args.arg_fields[1].is_nullable();
                Field::new(self.name(), data_type, nullable).with_metadata(value.metadata().clone())
            }
            (DataType::List(item), _) if self.action == ArrayAction::Distinct => {
                let item = item.as_ref().clone().with_nullable(false);
                Field::new(self.name(), DataType::List(Arc::new(item)), args.arg_fields[0].is_nullable())
            }
            (data_type, _) => Field::new(self.name(), data_type, false),
        };
        Ok(Arc::new(field))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_slices(args, |args| self.answer(args))
    }
}

impl ArrayFunction {
    fn answer(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = rows(&args.args, args.number_rows);
        let arrays = args.args.iter().map(|item| expanded(item, rows)).collect::<Result<Vec<_>>>()?;
        let result: ArrayRef = match (self.action, arrays.as_slice()) {
            (ArrayAction::Element, [map, key]) if map.as_map_opt().is_some() => {
                let values = map::value(map.as_map(), key)?;
                nullif(&values, &is_null(key)?)?
            }
            (ArrayAction::Has, [map, key]) if map.as_map_opt().is_some() => map::contains(map.as_map(), key)?,
            (ArrayAction::Element, [array, index]) => element(array.as_list(), index)?,
            (ArrayAction::Has, [array, element]) => has(array.as_list(), element)?,
            (ArrayAction::Distinct, [array]) => distinct(array.as_list())?,
            (_, elements) => make(args.return_type(), elements, rows)?,
        };
        shaped(result, &args.args)
    }

    fn illegal(&self, arguments: &[DataType]) -> DataFusionError {
        let types: Vec<String> = arguments.iter().map(plain_name).collect();
        let (types, name) = (types.join(", "), self.name());
        Error::illegal_type(format!("Illegal types of arguments: {types} for function {name}")).into()
    }
}

/// The type that DataFusion coerces items of these types to. Different types that get here at execution are NULL, or
/// have NULL within.
///
/// # Errors
/// NO_COMMON_TYPE.
pub fn coerced(items: &[DataType]) -> Result<DataType> {
    let known: Vec<DataType> = items.iter().filter(|item| !item.is_null()).cloned().collect();
    if known.is_empty() {
        return Ok(DataType::Null);
    }
    let common = type_union_resolution(&known);
    Ok(common.ok_or_else(|| Error::no_common_type(format!("There is no supertype for types {known:?}")))?)
}

/// Whether keys of one type can be looked up by values of the other.
pub fn are_comparable(keys: &DataType, key: &DataType) -> bool {
    keys == key
        || key.is_null()
        || keys.is_numeric() && key.is_numeric()
        || keys.is_string() && key.is_string()
}

/// The metadata of the fields, if all have the same.
pub fn common_metadata(fields: &[FieldRef]) -> HashMap<String, String> {
    match fields {
        [first, others @ ..] if others.iter().all(|field| field.metadata() == first.metadata()) => {
            first.metadata().clone()
        }
        _ => HashMap::new(),
    }
}

fn make(data_type: &DataType, elements: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let DataType::List(field) = data_type else { unreachable!("it makes lists") };
    let values = match elements {
        [] => datafusion::arrow::array::new_empty_array(field.data_type()),
        _ => interleaved(elements, rows)?,
    };
    let ends = OffsetBuffer::from_repeated_length(elements.len(), rows);
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), ends, values, None)?))
}

/// The values of all columns, row by row.
pub fn interleaved(columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let places: Vec<(usize, usize)> =
        (0..rows).flat_map(|row| (0..columns.len()).map(move |i| (i, row))).collect();
    let columns: Vec<&dyn Array> = columns.iter().map(|column| column.as_ref()).collect();
    Ok(interleave(&columns, &places)?)
}

fn element(array: &ListArray, index: &ArrayRef) -> Result<ArrayRef> {
    let index = match index.as_primitive_opt::<UInt64Type>() {
        // Beyond every array.
        Some(index) => index.unary::<_, Int64Type>(|index| index.min(i64::MAX as u64) as i64),
        None => cast(index, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
    };
    let values = array.values();
    // NULL if items are Nullable, or if the index is NULL.
    let nullable = matches!(array.data_type(), DataType::List(item) if item.is_nullable());
    let null = new_null_array(values.data_type(), 1);
    let default = match nullable {
        true => new_null_array(values.data_type(), 1),
        false => default_value(values.data_type())?.to_array()?,
    };
    let places: Vec<(usize, usize)> = (0..array.len())
        .map(|row| {
            let (start, len) = (array.value_offsets()[row] as i64, i64::from(array.value_length(row)));
            match index.value(row) {
                _ if index.is_null(row) && !values.data_type().is_nested() => (2, 0),
                n if (1..=len).contains(&n) => (0, (start + n - 1) as usize),
                n if (-len..=-1).contains(&n) => (0, (start + len + n) as usize),
                _ => (1, 0),
            }
        })
        .collect();
    Ok(interleave(&[values.as_ref(), default.as_ref(), null.as_ref()], &places)?)
}

fn has(array: &ListArray, element: &ArrayRef) -> Result<ArrayRef> {
    if array.values().data_type().is_null() && !element.data_type().is_null() && array.values().is_empty() {
        return Ok(Arc::new(UInt8Array::from(vec![0; array.len()])));
    }
    if array.values().data_type().is_integer() {
        return has_integer(array, element);
    }
    if array.values().data_type().is_floating() && element.data_type().is_floating() {
        return has_float(array, element);
    }
    let places = places_of(array.offsets(), array.values(), element)?;
    Ok(Arc::new(UInt8Array::from_iter_values(places.into_iter().map(|place| u8::from(place.is_some())))))
}

/// Integers of any width are compared by value.
fn has_integer(array: &ListArray, element: &ArrayRef) -> Result<ArrayRef> {
    let wide = |array: &ArrayRef| {
        let signed = array.data_type().is_signed_integer();
        let bits = array_bits(array).unwrap_or_default();
        move |row: usize| if signed { i128::from(bits[row] as i64) } else { i128::from(bits[row]) }
    };
    let items = array.values();
    if !element.data_type().is_integer() {
        let has_null = |row: usize| range(array, row).any(|at| items.is_null(at));
        return Ok(Arc::new(UInt8Array::from_iter_values(
            (0..array.len()).map(|row| u8::from(has_null(row))),
        )));
    }
    let (item, wanted) = (wide(items), wide(element));
    let has = |row: usize| match element.is_null(row) {
        true => range(array, row).any(|at| items.is_null(at)),
        false => range(array, row).any(|at| items.is_valid(at) && item(at) == wanted(row)),
    };
    Ok(Arc::new(UInt8Array::from_iter_values((0..array.len()).map(|row| u8::from(has(row))))))
}

/// Floats are compared as in IEEE 754: NaN is not found.
fn has_float(array: &ListArray, element: &ArrayRef) -> Result<ArrayRef> {
    let floats = |array: &ArrayRef| {
        Ok::<_, DataFusionError>(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
    };
    let (items, wanted) = (floats(array.values())?, floats(element)?);
    let has = |row: usize| match wanted.is_null(row) {
        true => range(array, row).any(|at| items.is_null(at)),
        false => range(array, row).any(|at| items.is_valid(at) && items.value(at) == wanted.value(row)),
    };
    Ok(Arc::new(UInt8Array::from_iter_values((0..array.len()).map(|row| u8::from(has(row))))))
}

fn range(array: &ListArray, row: usize) -> std::ops::Range<usize> {
    array.value_offsets()[row] as usize..array.value_offsets()[row + 1] as usize
}

fn distinct(array: &ListArray) -> Result<ArrayRef> {
    let DataType::List(item) = array.data_type() else { unreachable!("it is a list") };
    let values = array.values();
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
    let rows = converter.convert_columns(std::slice::from_ref(values))?;
    let nulls = values.logical_nulls();
    let (mut kept, mut lengths) = (Vec::new(), Vec::with_capacity(array.len()));
    for ends in array.offsets().windows(2) {
        let (mut seen, before) = (HashSet::new(), kept.len());
        for place in ends[0] as usize..ends[1] as usize {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(place));
            if !is_null && seen.insert(rows.row(place)) {
                kept.push(place as u64);
            }
        }
        lengths.push(kept.len() - before);
    }
    let values = take(values, &UInt64Array::from(kept), None)?;
    let ends = OffsetBuffer::from_lengths(lengths);
    let item = Arc::new(item.as_ref().clone().with_nullable(false));
    Ok(Arc::new(ListArray::try_new(item, ends, values, array.nulls().cloned())?))
}

/// By row, the index of its element's first occurrence among the row's items.
pub fn places_of(
    offsets: &OffsetBuffer<i32>,
    items: &ArrayRef,
    element: &ArrayRef,
) -> Result<Vec<Option<usize>>> {
    let element = cast(element, items.data_type())?;
    let ends: Vec<usize> = offsets.iter().map(|&end| end as usize).collect();
    let row_of_item = ends
        .windows(2)
        .enumerate()
        .flat_map(|(row, range)| std::iter::repeat_n(row as i64, range[1] - range[0]));
    let rows = Int64Array::from_iter_values(row_of_item);
    let start = ends[0];
    let same: BooleanArray = not_distinct(&items.slice(start, rows.len()), &take(&element, &rows, None)?)?;
    Ok(ends.windows(2).map(|range| (range[0]..range[1]).find(|i| same.value(i - start))).collect())
}
