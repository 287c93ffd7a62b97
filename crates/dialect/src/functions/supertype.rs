//! The common type of several types by ClickHouse's rules: the smallest that holds all values.

use datafusion::arrow::datatypes::{DataType, Field, Fields};
use granary_dict::{DataType as ClickHouseType, Element};

use crate::types::type_name;

/// ClickHouse's type of a field without Nullable; `None` for NULL and FixedString.
pub fn type_of(field: &Field) -> Option<ClickHouseType> {
    let parsed = ClickHouseType::parse_column(&type_name(field)).ok()?;
    Some(parsed.inner().clone())
}

/// The common type of these types; `None`: there is none.
pub fn supertype(types: &[ClickHouseType]) -> Option<ClickHouseType> {
    let fields: Vec<Field> = types.iter().map(|data_type| data_type.to_field("")).collect();
    common_type(&fields.iter().collect::<Vec<_>>())
}

/// The common type of all fields, without Nullable; `None`: there is none. NULL, and the items of an empty array, fit
/// any type. All types are considered together: two of three could have a wider one in common.
pub fn common_type(fields: &[&Field]) -> Option<ClickHouseType> {
    let known: Vec<&Field> = fields.iter().copied().filter(|field| !field.data_type().is_null()).collect();
    let types = known.iter().map(|field| type_of(field)).collect::<Option<Vec<_>>>();
    if let Some([first, others @ ..]) = types.as_deref()
        && others.iter().all(|other| other == first)
    {
        return Some(first.clone());
    }
    match known.first()?.data_type() {
        DataType::List(_) => {
            let items = known.iter().map(|field| item(field)).collect::<Option<Vec<_>>>()?;
            Some(ClickHouseType::Array(Box::new(of_items(&items)?)))
        }
        DataType::Map(..) => {
            let entries = known.iter().map(|field| entry(field)).collect::<Option<Vec<_>>>()?;
            let part =
                |at: usize| of_items(&entries.iter().map(|entry| entry[at].as_ref()).collect::<Vec<_>>());
            Some(ClickHouseType::map(part(0)?, part(1)?))
        }
        DataType::Struct(_) => of_tuples(&known),
        _ => of_plain(&types?),
    }
}

fn item(field: &Field) -> Option<&Field> {
    match field.data_type() {
        DataType::List(item) => Some(item),
        _ => None,
    }
}

/// A map's key and value.
fn entry(field: &Field) -> Option<&Fields> {
    match field.data_type() {
        DataType::Map(entry, _) => elements(entry),
        _ => None,
    }
}

fn elements(field: &Field) -> Option<&Fields> {
    match field.data_type() {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    }
}

/// Elements keep their names if all tuples have the same.
fn of_tuples(known: &[&Field]) -> Option<ClickHouseType> {
    let tuples = known.iter().map(|field| elements(field)).collect::<Option<Vec<_>>>()?;
    let (first, others) = tuples.split_first()?;
    if others.iter().any(|other| other.len() != first.len()) {
        return None;
    }
    let names = |fields: &Fields| fields.iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let is_place = |(at, name): (usize, &String)| *name == (at + 1).to_string();
    let is_named = !names(first).iter().enumerate().any(is_place)
        && others.iter().all(|other| names(other) == names(first));
    let element = |at: usize| {
        let name = is_named.then(|| first[at].name().clone());
        let parts: Vec<&Field> = tuples.iter().map(|tuple| tuple[at].as_ref()).collect();
        Some(Element { name, data_type: of_items(&parts)? })
    };
    Some(ClickHouseType::Tuple((0..first.len()).map(element).collect::<Option<_>>()?))
}

/// The common type of items of arrays, maps or tuples, which may be Nullable.
fn of_items(fields: &[&Field]) -> Option<ClickHouseType> {
    let common = common_type(fields)?;
    match fields.iter().any(|field| field.is_nullable() && !field.data_type().is_nested()) {
        false => Some(common),
        true if common.to_arrow().is_nested() => None,
        true => Some(ClickHouseType::Nullable(Box::new(common))),
    }
}

/// The common type of several types that are not nested.
fn of_plain(types: &[ClickHouseType]) -> Option<ClickHouseType> {
    use ClickHouseType::{Date, Date32, DateTime, DateTime64, Decimal};
    let all = |is_one: fn(&ClickHouseType) -> bool| types.iter().all(is_one);
    if types.iter().any(|other| matches!(other, Decimal { .. })) {
        return of_decimals(types);
    }
    if all(|other| matches!(other, Date | Date32)) {
        return Some(Date32);
    }
    // The first zone is taken.
    if all(|other| matches!(other, Date | DateTime { .. })) {
        return types.iter().find(|other| matches!(other, DateTime { .. })).cloned();
    }
    match all(|other| matches!(other, Date | DateTime { .. } | DateTime64 { .. })) {
        true => finest(types),
        false => of_numbers(types),
    }
}

/// Of times with a DateTime64 among them: the one with the most digits, the last of several such; the first, if all
/// have as many.
fn finest(types: &[ClickHouseType]) -> Option<ClickHouseType> {
    let digits = |time: &ClickHouseType| match time {
        ClickHouseType::DateTime64 { precision, .. } => Some(*precision),
        _ => None,
    };
    let last = types.iter().max_by_key(|time| digits(time))?;
    let is_same = types.iter().all(|time| digits(time) == digits(last));
    if is_same { types.first().cloned() } else { Some(last.clone()) }
}

/// A Decimal with the most fraction digits, and room for the widest integer part.
fn of_decimals(types: &[ClickHouseType]) -> Option<ClickHouseType> {
    let (mut width, mut scale, mut digits, mut bits) = (1, 0, 0, 0);
    for data_type in types {
        match data_type {
            ClickHouseType::Decimal { precision, scale: places } => {
                (width, scale) = (width.max(*precision), scale.max(*places));
            }
            whole => {
                let whole = Whole::of(whole)?;
                (digits, bits) = (digits.max(whole.digits()?), bits.max(whole.bits));
            }
        }
    }
    let is_alike = |other: &ClickHouseType| {
        matches!(other, ClickHouseType::Decimal { precision, scale: places }
            if *places == scale && decimal_width(*precision) == decimal_width(width))
    };
    if types.iter().all(is_alike) {
        // ClickHouse takes the first one, whose width holds the digits of all.
        return Some(ClickHouseType::Decimal { precision: width, scale });
    }
    let is_signed =
        |whole: &ClickHouseType| Whole::of(whole).is_some_and(|whole| whole.signed && whole.bits == bits);
    let are_signed =
        types.iter().filter(|other| Whole::of(other).is_some_and(|whole| whole.bits == bits)).all(is_signed);
    // ClickHouse takes a Decimal of the same width for Int32 and Int64, though it has a digit less.
    let needed = match (scale, bits) {
        (0, 32) if are_signed => 9,
        (0, 64) if are_signed => 18,
        _ => digits + scale,
    };
    let precision = decimal_width(width.max(needed))?;
    Some(ClickHouseType::Decimal { precision, scale })
}

/// The precision of the narrowest Decimal with `precision` digits.
fn decimal_width(precision: u8) -> Option<u8> {
    [9, 18, 38, 76].into_iter().find(|width| *width >= precision)
}

/// The narrowest type with all bits of the integers, a sign if one has it, and the floats' mantissas.
fn of_numbers(types: &[ClickHouseType]) -> Option<ClickHouseType> {
    use ClickHouseType::{
        Float32, Float64, Int8, Int16, Int32, Int64, Int128, Int256, UInt8, UInt16, UInt32, UInt64, UInt128,
    };
    let (mut signed, mut unsigned, mut mantissa) = (0, 0, 0);
    for data_type in types {
        match data_type {
            Float32 => mantissa = mantissa.max(f32::MANTISSA_DIGITS),
            Float64 => mantissa = mantissa.max(f64::MANTISSA_DIGITS),
            whole => match Whole::of(whole)? {
                Whole { bits, signed: true } => signed = signed.max(bits),
                Whole { bits, signed: false } => unsigned = unsigned.max(bits),
            },
        }
    }
    let widest = signed.max(unsigned);
    // A sign takes a bit.
    let needed = if signed > 0 && signed <= unsigned { widest + 1 } else { widest };
    if mantissa > 0 {
        return match needed.max(mantissa) {
            ..=24 => Some(Float32),
            25..=53 => Some(Float64),
            _ => None,
        };
    }
    Some(match (needed, signed > 0) {
        (..=8, false) => UInt8,
        (..=16, false) => UInt16,
        (..=32, false) => UInt32,
        (..=64, false) => UInt64,
        (..=128, false) => UInt128,
        (..=8, true) => Int8,
        (..=16, true) => Int16,
        (..=32, true) => Int32,
        (..=64, true) => Int64,
        (65..=128, true) if widest == 128 => Int128,
        (129..=256, true) => Int256,
        _ => return None,
    })
}

/// An integer.
#[derive(Clone, Copy)]
struct Whole {
    bits: u32,
    signed: bool,
}

impl Whole {
    fn of(data_type: &ClickHouseType) -> Option<Whole> {
        use ClickHouseType::{
            Int8, Int16, Int32, Int64, Int128, Int256, UInt8, UInt16, UInt32, UInt64, UInt128,
        };
        let (bits, signed) = match data_type {
            UInt8 => (8, false),
            UInt16 => (16, false),
            UInt32 => (32, false),
            UInt64 => (64, false),
            Int8 => (8, true),
            Int16 => (16, true),
            Int32 => (32, true),
            Int64 => (64, true),
            UInt128 => (128, false),
            Int128 => (128, true),
            Int256 => (256, true),
            _ => return None,
        };
        Some(Whole { bits, signed })
    }

    /// Digits that a Decimal needs for it; `None` for more than 64 bits.
    fn digits(self) -> Option<u8> {
        Some(match self.bits {
            8 => 3,
            16 => 5,
            32 => 10,
            64 if self.signed => 19,
            64 => 20,
            _ => return None,
        })
    }
}

/// Whether Arrow's casts widen to this type as ClickHouse does.
pub fn is_plain(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types that ClickHouse 26.9 gives `if(c, a, b)`.
    #[test]
    fn the_smallest_type_that_holds_all() {
        for (types, common) in [
            (&["UInt8", "Int8"][..], Some("Int16")),
            (&["UInt8", "Int8", "UInt16"], Some("Int32")),
            (&["UInt64", "Int8"], None),
            (&["UInt64", "Int128"], Some("Int128")),
            (&["UInt128", "Int8"], Some("Int256")),
            (&["Int128", "UInt128"], Some("Int256")),
            (&["Int128", "Float64"], None),
            (&["UInt16", "Float32"], Some("Float32")),
            (&["Int32", "Float32"], Some("Float64")),
            (&["Int64", "Float64"], None),
            (&["UInt16", "Int8", "Float32"], Some("Float32")),
            (&["UInt32", "Int8", "Float64"], Some("Float64")),
            (&["UInt32", "Int8"], Some("Int64")),
            (&["Bool", "UInt8"], None),
            (&["Date", "DateTime"], Some("DateTime")),
            (&["DateTime", "DateTime('Asia/Tokyo')"], Some("DateTime")),
            (&["DateTime('Asia/Tokyo')", "DateTime64(3)"], Some("DateTime64(3)")),
            (&["DateTime64(3)", "DateTime64(6, 'Asia/Tokyo')"], Some("DateTime64(6, 'Asia/Tokyo')")),
            (&["Map(String, UInt8)", "Map(String, UInt16)"], Some("Map(String, UInt16)")),
            (&["Decimal(9, 2)", "UInt8"], Some("Decimal(9, 2)")),
            (&["Decimal(9, 7)", "UInt8"], Some("Decimal(18, 7)")),
            (&["UInt32", "Decimal(9, 2)", "Decimal(9, 9)"], Some("Decimal(38, 9)")),
            (&["Decimal(9, 2)", "Decimal(9, 5)"], Some("Decimal(9, 5)")),
            (&["Decimal(5, 2)", "Decimal(9, 2)"], Some("Decimal(9, 2)")),
            (&["Decimal(9, 0)", "Int32"], Some("Decimal(9, 0)")),
            (&["Decimal(9, 0)", "UInt32"], Some("Decimal(18, 0)")),
            (&["Decimal(18, 0)", "Int64"], Some("Decimal(18, 0)")),
            (&["Decimal(9, 0)", "Int64", "UInt64"], Some("Decimal(38, 0)")),
            (&["Decimal(9, 2)", "Float64"], None),
            (&["Decimal(9, 2)", "Int128"], None),
            (&["String", "UInt8"], None),
            (
                &[
                    "Array(DateTime64(3, 'UTC'))",
                    "Array(DateTime('Asia/Tokyo'))",
                    "Array(DateTime64(3, 'Asia/Kolkata'))",
                ],
                Some("Array(DateTime64(3, 'Asia/Kolkata'))"),
            ),
            (&["Array(UInt8)", "Array(Int8)"], Some("Array(Int16)")),
            (
                &["Tuple(v UInt64, n Nullable(String))", "Tuple(UInt8, String)"],
                Some("Tuple(UInt64, Nullable(String))"),
            ),
        ] {
            let types: Vec<ClickHouseType> =
                types.iter().map(|name| ClickHouseType::parse_column(name).unwrap()).collect();
            assert_eq!(supertype(&types).map(|common| common.to_string()).as_deref(), common, "{types:?}");
        }
    }
}
