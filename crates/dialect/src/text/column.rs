//! A column prepared for writing, once per batch, so that a cell costs one `match`.

use std::str::FromStr;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::*;
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit, *};

use granary_dict::digits_of;

use crate::error::{Error, Result};
use crate::types::{declared, fixed_bytes, said};

/// One column of a batch, by the kind of its cells.
pub struct Column {
    /// Which cells are NULL.
    pub nulls: Option<NullBuffer>,
    /// The values.
    pub cells: Cells,
}

/// The kinds of cells that the formats distinguish.
pub enum Cells {
    /// Only NULLs.
    Null,
    /// UInt8.
    UInt8(UInt8Array),
    /// UInt16.
    UInt16(UInt16Array),
    /// UInt32.
    UInt32(UInt32Array),
    /// UInt64.
    UInt64(UInt64Array),
    /// Int8.
    Int8(Int8Array),
    /// Int16.
    Int16(Int16Array),
    /// Int32.
    Int32(Int32Array),
    /// Int64.
    Int64(Int64Array),
    /// Float32.
    Float32(Float32Array),
    /// Float64.
    Float64(Float64Array),
    /// A Decimal of up to 38 digits.
    Decimal(Decimal128Array),
    /// A decimal of more than 128 bits, or an integer of more than 64 bits.
    Wide {
        /// The numbers.
        values: Decimal256Array,
        /// Bytes written of each.
        bytes: usize,
    },
    /// A comparison: ClickHouse's UInt8, written 0 or 1.
    Truth(BooleanArray),
    /// ClickHouse's Bool, written true or false.
    Bool(BooleanArray),
    /// A String.
    Text(StringArray),
    /// A FixedString.
    Fixed {
        /// The texts with their padding.
        texts: StringArray,
        /// The width of each.
        bytes: usize,
    },
    /// A String of bytes that may be invalid UTF-8.
    Bytes(BinaryArray),
    /// A UUID.
    Uuid(FixedSizeBinaryArray),
    /// An IPv4.
    Ipv4(UInt32Array),
    /// An IPv6.
    Ipv6(FixedSizeBinaryArray),
    /// A Date.
    Date(Date32Array),
    /// A Date32: four bytes where a Date has two.
    Date32(Date32Array),
    /// A DateTime.
    DateTime {
        /// Seconds since the epoch.
        seconds: TimestampSecondArray,
        /// The zone to show them in; `None`: UTC.
        zone: Option<Tz>,
    },
    /// A DateTime64: ticks since the epoch.
    DateTime64 {
        /// Ticks since the epoch.
        ticks: Int64Array,
        /// Decimal places of a tick.
        places: u32,
        /// Decimal places written.
        digits: u32,
        /// The zone to show them in; `None`: UTC.
        zone: Option<Tz>,
    },
    /// An array.
    Array {
        /// Offsets of each array's items, and their end.
        offsets: Vec<usize>,
        /// The items of all arrays.
        items: Box<Column>,
    },
    /// A map.
    Map {
        /// Offsets of each map's entries, and their end.
        offsets: Vec<usize>,
        /// The keys of all maps.
        keys: Box<Column>,
        /// The values of all maps.
        values: Box<Column>,
    },
    /// A tuple.
    Tuple {
        /// The elements' names, if they have some.
        names: Option<Vec<String>>,
        /// A column for each element.
        items: Vec<Column>,
    },
}

impl Column {
    /// Reads an array through its field, whose metadata tells UUID and Bool apart.
    pub fn new(field: &Field, array: &ArrayRef) -> Result<Column> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        Ok(Column { nulls, cells: cells(field, array)? })
    }

    /// Whether the cell is NULL.
    pub fn is_null(&self, row: usize) -> bool {
        matches!(self.cells, Cells::Null) || self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Whether Pretty aligns the cells to the right.
    pub fn is_numeric(&self) -> bool {
        !matches!(
            self.cells,
            Cells::Null
                | Cells::Bool(_)
                | Cells::Text(_)
                | Cells::Fixed { .. }
                | Cells::Bytes(_)
                | Cells::Uuid(_)
                | Cells::Ipv4(_)
                | Cells::Ipv6(_)
                | Cells::Array { .. }
                | Cells::Map { .. }
                | Cells::Tuple { .. }
        )
    }
}

fn cells(field: &Field, array: &ArrayRef) -> Result<Cells> {
    if let Some(cells) = declared_cells(field, array)? {
        return Ok(cells);
    }
    let says = |part: &str| said(field).is_some_and(|name| name.contains(part));
    Ok(match array.data_type() {
        DataType::Null => Cells::Null,
        DataType::UInt8 => Cells::UInt8(array.as_primitive::<UInt8Type>().clone()),
        DataType::UInt16 => Cells::UInt16(array.as_primitive::<UInt16Type>().clone()),
        DataType::UInt32 => Cells::UInt32(array.as_primitive::<UInt32Type>().clone()),
        DataType::UInt64 => Cells::UInt64(array.as_primitive::<UInt64Type>().clone()),
        DataType::Int8 => Cells::Int8(array.as_primitive::<Int8Type>().clone()),
        DataType::Int16 => Cells::Int16(array.as_primitive::<Int16Type>().clone()),
        DataType::Int32 => Cells::Int32(array.as_primitive::<Int32Type>().clone()),
        DataType::Int64 => Cells::Int64(array.as_primitive::<Int64Type>().clone()),
        DataType::Float32 => Cells::Float32(array.as_primitive::<Float32Type>().clone()),
        DataType::Float64 => Cells::Float64(array.as_primitive::<Float64Type>().clone()),
        DataType::Decimal128(..) => Cells::Decimal(array.as_primitive::<Decimal128Type>().clone()),
        DataType::Decimal256(..) => Cells::Wide { values: array.as_primitive().clone(), bytes: 32 },
        DataType::Boolean if says("Bool") => Cells::Bool(array.as_boolean().clone()),
        DataType::Boolean => Cells::Truth(array.as_boolean().clone()),
        DataType::Utf8 => match fixed_bytes(field) {
            Some(bytes) => Cells::Fixed { texts: array.as_string::<i32>().clone(), bytes },
            None => Cells::Text(array.as_string::<i32>().clone()),
        },
        DataType::Binary => Cells::Bytes(array.as_binary::<i32>().clone()),
        DataType::FixedSizeBinary(16) => Cells::Uuid(array.as_fixed_size_binary().clone()),
        DataType::Date32 if says("Date32") => Cells::Date32(array.as_primitive().clone()),
        DataType::Date32 => Cells::Date(array.as_primitive::<Date32Type>().clone()),
        DataType::Timestamp(TimeUnit::Second, zone) => Cells::DateTime {
            seconds: array.as_primitive::<TimestampSecondType>().clone(),
            zone: time_zone(zone.as_deref())?,
        },
        DataType::Timestamp(unit, zone) => {
            date_time_64(array, *unit, digits_of(*unit).into(), zone.as_deref())?
        }
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            Cells::Array {
                offsets: places(list.offsets()),
                items: Box::new(Column::new(item, list.values())?),
            }
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let fields = map.entries().fields();
            Cells::Map {
                offsets: places(map.offsets()),
                keys: Box::new(Column::new(&fields[0], map.keys())?),
                values: Box::new(Column::new(&fields[1], map.values())?),
            }
        }
        DataType::Struct(fields) => tuple(fields, array.as_struct())?,
        DataType::LargeUtf8 | DataType::Utf8View => recast(field, array, DataType::Utf8)?,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            recast(field, array, DataType::Binary)?
        }
        DataType::Date64 => recast(field, array, DataType::Date32)?,
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            recast(field, array, DataType::List(item.clone()))?
        }
        DataType::Dictionary(_, values) => recast(field, array, values.as_ref().clone())?,
        // Intervals, times of day and the like: Arrow's own text.
        _ => recast(field, array, DataType::Utf8)?,
    })
}

fn places(offsets: &OffsetBuffer<i32>) -> Vec<usize> {
    offsets.iter().map(|&offset| offset as usize).collect()
}

fn recast(field: &Field, array: &ArrayRef, to: DataType) -> Result<Cells> {
    cells(field, &cast(array, &to)?)
}

fn tuple(fields: &Fields, array: &StructArray) -> Result<Cells> {
    let items: Result<Vec<Column>> =
        fields.iter().zip(array.columns()).map(|(f, c)| Column::new(f, c)).collect();
    let named = fields.iter().enumerate().any(|(i, f)| f.name() != &(i + 1).to_string());
    let names = named.then(|| fields.iter().map(|f| f.name().clone()).collect());
    Ok(Cells::Tuple { names, items: items? })
}

/// The cells of a type that the field's metadata declares.
fn declared_cells(field: &Field, array: &ArrayRef) -> Result<Option<Cells>> {
    use granary_dict::DataType as Declared;
    let Some(declared) = declared(field) else { return Ok(None) };
    Ok(Some(match (declared.inner(), array.data_type()) {
        (Declared::Ipv4, DataType::UInt32) => Cells::Ipv4(array.as_primitive().clone()),
        (Declared::Ipv6, DataType::FixedSizeBinary(16)) => Cells::Ipv6(array.as_fixed_size_binary().clone()),
        (Declared::Int128 | Declared::UInt128, DataType::Decimal256(..)) => {
            Cells::Wide { values: array.as_primitive().clone(), bytes: 16 }
        }
        (Declared::DateTime64 { precision, .. }, DataType::Timestamp(unit, zone)) => {
            date_time_64(array, *unit, u32::from(*precision), zone.as_deref())?
        }
        _ => return Ok(None),
    }))
}

fn date_time_64(array: &ArrayRef, unit: TimeUnit, digits: u32, zone: Option<&str>) -> Result<Cells> {
    let ticks = cast(array, &DataType::Int64)?;
    let places = u32::from(digits_of(unit));
    Ok(Cells::DateTime64 {
        ticks: ticks.as_primitive::<Int64Type>().clone(),
        places,
        digits: digits.min(places),
        zone: time_zone(zone)?,
    })
}

fn time_zone(zone: Option<&str>) -> Result<Option<Tz>> {
    match zone {
        None | Some("UTC") => Ok(None),
        Some(zone) => match Tz::from_str(zone) {
            Ok(zone) => Ok(Some(zone)),
            Err(_) => Err(Error::bad_arguments(format!("Cannot load time zone {zone}"))),
        },
    }
}
