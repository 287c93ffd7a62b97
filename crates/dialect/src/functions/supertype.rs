//! The type that values of several types have in common, by ClickHouse's rules: the smallest that holds all of them.

use datafusion::arrow::datatypes::{DataType, Field};
use granary_dict::{DataType as ClickHouseType, Element};

use crate::types::type_name;

/// ClickHouse's type of a field without Nullable, or `None` if that is none of a column: NULL, or a FixedString.
pub fn type_of(field: &Field) -> Option<ClickHouseType> {
    let parsed = ClickHouseType::parse_column(&type_name(field)).ok()?;
    Some(parsed.inner().clone())
}

/// Returns the type of all these, or `None` if they have none in common.
pub fn supertype(types: &[ClickHouseType]) -> Option<ClickHouseType> {
    if let Some(time) = finest(types) {
        return Some(time);
    }
    let (first, rest) = types.split_first()?;
    rest.iter().try_fold(first.clone(), |common, next| of_two(&common, next))
}

/// Of times of which one is a DateTime64: that with the most digits, and of several such the last; the first, if all have
/// as many.
fn finest(types: &[ClickHouseType]) -> Option<ClickHouseType> {
    use ClickHouseType::{Date, DateTime, DateTime64};
    let digits = |time: &ClickHouseType| match time {
        DateTime64 { precision, .. } => Some(*precision),
        _ => None,
    };
    let are_times = types.iter().all(|time| matches!(time, Date | DateTime { .. } | DateTime64 { .. }));
    let last = types.iter().max_by_key(|time| digits(time)).filter(|_| are_times)?;
    let is_same = types.iter().all(|time| digits(time) == digits(last));
    let found = if is_same { types.first()? } else { last };
    digits(found).map(|_| found.clone())
}

/// The same for all but the first, which may be wider than those before it: integers of several widths and signs have to
/// be looked at together.
fn of_two(one: &ClickHouseType, other: &ClickHouseType) -> Option<ClickHouseType> {
    use ClickHouseType::{Array, Date, Date32, DateTime, DateTime64, Decimal, Float32, Float64, Map, Tuple};
    if one == other {
        return Some(one.clone());
    }
    if let (Some(one), Some(other)) = (Whole::of(one), Whole::of(other)) {
        return one.with(other);
    }
    match (one, other) {
        (Float32, Float64) | (Float64, Float32) => Some(Float64),
        (Float32 | Float64, whole) | (whole, Float32 | Float64) if Whole::of(whole).is_some() => {
            let is_single = [one, other].contains(&&Float32);
            match Whole::of(whole)?.bits {
                ..=16 if is_single => Some(Float32),
                ..=32 => Some(Float64),
                _ => None,
            }
        }
        (Decimal { precision, scale }, Decimal { precision: other_precision, scale: other_scale }) => {
            decimal(*precision.max(other_precision), *scale.max(other_scale))
        }
        (Decimal { precision, scale }, whole) | (whole, Decimal { precision, scale }) => {
            decimal((*precision).max(Whole::of(whole)?.digits()? + scale), *scale)
        }
        (Date, Date32) | (Date32, Date) => Some(Date32),
        (Date, time @ (DateTime { .. } | DateTime64 { .. }))
        | (time @ (DateTime { .. } | DateTime64 { .. }), Date) => Some(time.clone()),
        (DateTime { .. }, time @ DateTime64 { .. }) | (time @ DateTime64 { .. }, DateTime { .. }) => {
            Some(time.clone())
        }
        // The first zone counts, or that of the time with more digits.
        (DateTime { .. }, DateTime { .. }) => Some(one.clone()),
        (DateTime64 { precision, .. }, DateTime64 { precision: longer, .. }) if longer > precision => {
            Some(other.clone())
        }
        (DateTime64 { .. }, DateTime64 { .. }) => Some(one.clone()),
        (Map(one), Map(other)) => Some(Map(Box::new(of_two(one, other)?))),
        (Array(one), Array(other)) => Some(Array(Box::new(of_items(one, other)?))),
        (Tuple(one), Tuple(other)) if one.len() == other.len() => {
            let element = |(one, other): (&Element, &Element)| {
                // Elements have names where both have the same.
                let name = one.name.clone().filter(|name| other.name.as_ref() == Some(name));
                Some(Element { name, data_type: of_items(&one.data_type, &other.data_type)? })
            };
            Some(Tuple(one.iter().zip(other).map(element).collect::<Option<_>>()?))
        }
        _ => None,
    }
}

/// The same of types that may be Nullable.
fn of_items(one: &ClickHouseType, other: &ClickHouseType) -> Option<ClickHouseType> {
    let common = of_two(one.inner(), other.inner())?;
    let nullable = one.is_nullable() || other.is_nullable();
    Some(if nullable { ClickHouseType::Nullable(Box::new(common)) } else { common })
}

/// A Decimal of the width that so many digits need.
fn decimal(precision: u8, scale: u8) -> Option<ClickHouseType> {
    let precision = [9, 18, 38, 76].into_iter().find(|width| *width >= precision)?;
    Some(ClickHouseType::Decimal { precision, scale })
}

/// An integer.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Whole {
    bits: u16,
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

    /// The type that holds both: of twice the width, where one of the two has a sign and the other is as wide. There is
    /// none for 64 bits.
    fn with(self, other: Whole) -> Option<ClickHouseType> {
        use ClickHouseType::{
            Int8, Int16, Int32, Int64, Int128, Int256, UInt8, UInt16, UInt32, UInt64, UInt128,
        };
        let signed = self.signed || other.signed;
        let needed =
            |whole: Whole| if signed && !whole.signed { whole.bits.saturating_mul(2) } else { whole.bits };
        Some(match (needed(self).max(needed(other)), signed) {
            (8, false) => UInt8,
            (16, false) => UInt16,
            (32, false) => UInt32,
            (64, false) => UInt64,
            (8, true) => Int8,
            (16, true) => Int16,
            (32, true) => Int32,
            (64, true) => Int64,
            (128, false) => UInt128,
            (128, true) if self.bits.max(other.bits) == 128 => Int128,
            (256, true) => Int256,
            _ => return None,
        })
    }

    /// Digits that it may have beside those of a Decimal, which are not of more than 64 bits.
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

/// Whether Arrow's casts make such a type of a smaller one as ClickHouse does.
pub fn is_plain(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ClickHouse 26.9 makes of `if(c, a, b)`.
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
            (&["Bool", "UInt8"], None),
            (&["Date", "DateTime"], Some("DateTime")),
            (&["DateTime", "DateTime('Asia/Tokyo')"], Some("DateTime")),
            (&["DateTime('Asia/Tokyo')", "DateTime64(3)"], Some("DateTime64(3)")),
            (&["DateTime64(3)", "DateTime64(6, 'Asia/Tokyo')"], Some("DateTime64(6, 'Asia/Tokyo')")),
            (&["Map(String, UInt8)", "Map(String, UInt16)"], Some("Map(String, UInt16)")),
            (&["Decimal(9, 2)", "UInt8"], Some("Decimal(9, 2)")),
            (&["String", "UInt8"], None),
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
