//! Values as ClickHouse's binary formats write them: fixed-width ones little-endian, strings behind a varint length.

use std::ops::Range;

use datafusion::arrow::array::{Array, PrimitiveArray};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Field};
use granary_dialect::text::{Cells, Column};
use granary_dialect::{Error, Result};

/// Which values have a NULL byte: only the schema knows, not the batch.
pub struct Layout {
    nullable: bool,
    items: Vec<Layout>,
}

impl Layout {
    pub fn of(field: &Field) -> Layout {
        let (composite, items) = match field.data_type() {
            DataType::Struct(fields) => (true, fields.iter().map(|field| Layout::of(field)).collect()),
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                (true, vec![Layout::of(item)])
            }
            DataType::Map(entry, _) => match entry.data_type() {
                DataType::Struct(fields) => (true, fields.iter().map(|field| Layout::of(field)).collect()),
                _ => (true, Vec::new()),
            },
            _ => (false, Vec::new()),
        };
        Layout { nullable: field.is_nullable() && !composite, items }
    }

    /// One value, after a byte that says whether it is NULL, if it may be.
    pub fn write(&self, column: &Column, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.nullable {
            let null = column.is_null(row);
            out.push(u8::from(null));
            if null {
                return Ok(());
            }
        }
        self.write_value(column, row, out)
    }

    /// Some rows of a column, part by part: which are NULL, where arrays end, then the values.
    pub fn write_column(&self, column: &Column, rows: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        if self.nullable {
            out.extend(rows.clone().map(|row| u8::from(column.is_null(row))));
        }
        match &column.cells {
            Cells::Null => out.resize(out.len() + rows.len(), 0),
            Cells::Array { offsets, items } => {
                let first = offsets[rows.start];
                for row in rows.clone() {
                    out.extend_from_slice(&((offsets[row + 1] - first) as u64).to_le_bytes());
                }
                let end = offsets[rows.end];
                self.items[0].write_column(items, first..end, out)?;
            }
            Cells::Map { offsets, keys, values } => {
                let (first, end) = (offsets[rows.start], offsets[rows.end]);
                for row in rows.clone() {
                    out.extend_from_slice(&((offsets[row + 1] - first) as u64).to_le_bytes());
                }
                for (layout, part) in self.items.iter().zip([keys, values]) {
                    layout.write_column(part, first..end, out)?;
                }
            }
            // As ClickHouse has it: a character for each row of a tuple without items.
            Cells::Tuple { items, .. } if items.is_empty() => out.resize(out.len() + rows.len(), b'0'),
            Cells::Tuple { items, .. } => {
                for (layout, item) in self.items.iter().zip(items) {
                    layout.write_column(item, rows.clone(), out)?;
                }
            }
            // The value under a NULL is arbitrary, but has the type's width.
            Cells::UInt16(a) => packed(a, rows, out),
            Cells::UInt32(a) => packed(a, rows, out),
            Cells::UInt64(a) => packed(a, rows, out),
            Cells::Int16(a) => packed(a, rows, out),
            Cells::Int32(a) => packed(a, rows, out),
            Cells::Int64(a) => packed(a, rows, out),
            Cells::Float32(a) => packed(a, rows, out),
            Cells::Float64(a) => packed(a, rows, out),
            Cells::Text(a) => {
                let ends = &a.value_offsets()[rows.start..=rows.end];
                out.reserve((ends[rows.len()] - ends[0]) as usize + rows.len());
                rows.for_each(|row| bytes(a.value(row).as_bytes(), out));
            }
            _ => rows.into_iter().try_for_each(|row| self.write_value(column, row, out))?,
        }
        Ok(())
    }

    fn write_value(&self, column: &Column, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &column.cells {
            Cells::Null => {}
            Cells::UInt8(a) => out.push(a.value(row)),
            Cells::UInt16(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::UInt32(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::UInt64(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::Int8(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::Int16(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::Int32(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::Int64(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::Float32(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::Float64(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::Decimal(a) => {
                // ClickHouse's widths: Decimal32 to 9 digits, Decimal64 to 18, Decimal128 above.
                let width = match a.data_type() {
                    DataType::Decimal128(..=9, _) => 4,
                    DataType::Decimal128(..=18, _) => 8,
                    _ => 16,
                };
                out.extend_from_slice(&a.value(row).to_le_bytes()[..width]);
            }
            Cells::Wide { values, bytes } => {
                out.extend_from_slice(&values.value(row).to_le_bytes()[..*bytes]);
            }
            Cells::Ipv4(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::Ipv6(a) => out.extend_from_slice(a.value(row)),
            Cells::Truth(a) | Cells::Bool(a) => out.push(u8::from(a.value(row))),
            Cells::Text(a) => bytes(a.value(row).as_bytes(), out),
            Cells::Fixed { texts, bytes } => {
                let end = out.len() + bytes;
                out.extend_from_slice(texts.value(row).as_bytes());
                // A NULL has the width, too.
                out.resize(end, 0);
            }
            Cells::Bytes(a) => bytes(a.value(row), out),
            Cells::Uuid(a) => {
                // Two 64-bit halves, each little-endian.
                let text_order = a.value(row);
                out.extend(text_order[..8].iter().rev());
                out.extend(text_order[8..].iter().rev());
            }
            Cells::Date(a) => {
                let days = u16::try_from(a.value(row)).map_err(|_| out_of_range("Date"))?;
                out.extend_from_slice(&days.to_le_bytes());
            }
            Cells::Date32(a) => out.extend_from_slice(&a.value(row).to_le_bytes()),
            Cells::DateTime { seconds, .. } => {
                let seconds = u32::try_from(seconds.value(row)).map_err(|_| out_of_range("DateTime"))?;
                out.extend_from_slice(&seconds.to_le_bytes());
            }
            Cells::DateTime64 { ticks, places, digits, .. } => {
                let ticks = ticks.value(row).div_euclid(10_i64.pow(places - digits));
                out.extend_from_slice(&ticks.to_le_bytes());
            }
            Cells::Array { offsets, items } => {
                varint((offsets[row + 1] - offsets[row]) as u64, out);
                for item in offsets[row]..offsets[row + 1] {
                    self.items[0].write(items, item, out)?;
                }
            }
            Cells::Map { offsets, keys, values } => {
                varint((offsets[row + 1] - offsets[row]) as u64, out);
                for entry in offsets[row]..offsets[row + 1] {
                    for (layout, part) in self.items.iter().zip([keys, values]) {
                        layout.write(part, entry, out)?;
                    }
                }
            }
            Cells::Tuple { items, .. } => {
                for (layout, item) in self.items.iter().zip(items) {
                    layout.write(item, row, out)?;
                }
            }
        }
        Ok(())
    }
}

/// Values as they lie in memory: little-endian on every machine that Granary runs on.
fn packed<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, rows: Range<usize>, out: &mut Vec<u8>) {
    out.extend_from_slice(array.values().slice(rows.start, rows.len()).inner());
}

fn out_of_range(name: &str) -> Error {
    Error::bad_arguments(format!("A value does not fit ClickHouse's {name}"))
}

/// A string after its length.
#[inline]
pub fn bytes(value: &[u8], out: &mut Vec<u8>) {
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// A number in groups of seven bits, lowest first.
pub fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
