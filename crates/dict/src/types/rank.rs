//! The order of numbers and times of at most 64 bits.

use super::{DataType, Fixed, moment};

/// How the bytes of a value encode a number.
enum Number {
    Unsigned,
    Signed,
    Float,
}

const SIGN: u64 = 1 << 63;

impl DataType {
    /// The least and the greatest value, as rows hold them; `None`: the type has no order that [`rank`](Self::rank)
    /// knows.
    pub(crate) fn extremes(&self) -> Option<[Fixed; 2]> {
        use DataType::*;
        let signed = |least: i64, greatest: i64| [least.to_le_bytes(), greatest.to_le_bytes()];
        let extremes = match self {
            UInt8 | UInt16 | UInt32 | UInt64 => [[0; 8], [0xff; 8]],
            Int8 => signed(i8::MIN.into(), i8::MAX.into()),
            Int16 => signed(i16::MIN.into(), i16::MAX.into()),
            Int32 => signed(i32::MIN.into(), i32::MAX.into()),
            Int64 => signed(i64::MIN, i64::MAX),
            Date => signed(0, u16::MAX.into()),
            Date32 => signed(-25_567, 120_529),
            DateTime { .. } => signed(0, u32::MAX.into()),
            DateTime64 { precision, .. } => {
                let [least, greatest] = moment::extremes(*precision);
                signed(least, greatest)
            }
            Float32 => {
                let wide = |value: f32| u64::from(value.to_bits()).to_le_bytes();
                [wide(f32::NEG_INFINITY), wide(f32::INFINITY)]
            }
            Float64 => [f64::NEG_INFINITY.to_le_bytes(), f64::INFINITY.to_le_bytes()],
            _ => return None,
        };
        Some(extremes.map(|bytes| {
            let mut fixed = Fixed::default();
            fixed[..8].copy_from_slice(&bytes);
            fixed
        }))
    }

    /// A number in the same order as the values of a type that has [`extremes`](Self::extremes); `None`: NaN, which has
    /// no place in the order.
    #[inline]
    pub(crate) fn rank(&self, raw: &[u8]) -> Option<u64> {
        let mut wide = [0; 8];
        wide[..raw.len()].copy_from_slice(raw);
        let bits = u64::from_le_bytes(wide);
        let unused = 64 - 8 * raw.len();
        match self.number()? {
            Number::Unsigned => Some(bits),
            Number::Signed => Some((((bits << unused) as i64) >> unused) as u64 ^ SIGN),
            Number::Float => {
                let value = match raw.len() {
                    4 => f64::from(f32::from_bits(bits as u32)),
                    _ => f64::from_bits(bits),
                };
                // Both zeros are one value.
                let bits = (value + 0.0).to_bits();
                (!value.is_nan()).then_some(if bits & SIGN == 0 { bits | SIGN } else { !bits })
            }
        }
    }

    fn number(&self) -> Option<Number> {
        use DataType::*;
        match self {
            UInt8 | UInt16 | UInt32 | UInt64 => Some(Number::Unsigned),
            Int8 | Int16 | Int32 | Int64 => Some(Number::Signed),
            Date | Date32 | DateTime { .. } | DateTime64 { .. } => Some(Number::Signed),
            Float32 | Float64 => Some(Number::Float),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Cell;
    use crate::types::Shape;

    fn rank(data_type: &DataType, text: &str) -> Option<u64> {
        let (Cell::Fixed(fixed), Shape::Fixed(width)) =
            (Cell::parse(data_type, text).unwrap(), data_type.shape())
        else {
            unreachable!("it is of fixed width")
        };
        data_type.rank(&fixed[..width])
    }

    #[test]
    fn ranks_are_in_the_order_of_the_values() {
        for (name, texts) in [
            ("UInt8", ["0", "1", "127", "128", "255"]),
            ("UInt64", ["0", "1", "9223372036854775807", "9223372036854775808", "18446744073709551615"]),
            ("Int8", ["-128", "-1", "0", "1", "127"]),
            ("Int64", ["-9223372036854775808", "-1", "0", "1", "9223372036854775807"]),
            ("Float32", ["-inf", "-1.5", "0", "1e-30", "inf"]),
            ("Float64", ["-1e300", "-1e-300", "0", "1.5", "1e300"]),
            ("Date", ["1970-01-01", "1970-01-02", "2000-01-01", "2024-02-29", "2149-06-06"]),
            ("Date32", ["1900-01-01", "1969-12-31", "1970-01-01", "2024-02-29", "2299-12-31"]),
            (
                "DateTime",
                [
                    "1970-01-01 00:00:00",
                    "1970-01-01 00:00:01",
                    "2000-01-01 00:00:00",
                    "2024-02-29 12:00:00",
                    "2106-02-07 06:28:15",
                ],
            ),
            (
                "DateTime64(3)",
                [
                    "1900-01-01 00:00:00",
                    "1969-12-31 23:59:59.999",
                    "1970-01-01 00:00:00",
                    "2024-02-29 12:00:00.5",
                    "2299-12-31 23:59:59.999",
                ],
            ),
        ] {
            let data_type = DataType::parse(name).unwrap();
            let ranks: Vec<_> = texts.iter().map(|text| rank(&data_type, text).unwrap()).collect();
            assert!(ranks.is_sorted_by(|a, b| a < b), "{name}: {ranks:?}");
            let Shape::Fixed(width) = data_type.shape() else { unreachable!("it is of fixed width") };
            let extremes = data_type.extremes().unwrap();
            let [least, greatest] = extremes.map(|fixed| data_type.rank(&fixed[..width]).unwrap());
            assert!(least <= ranks[0] && ranks[4] <= greatest, "{name}");
        }
        assert_eq!(rank(&DataType::Float64, "-0"), rank(&DataType::Float64, "0"));
        assert_eq!(rank(&DataType::Float64, "nan"), None);
        assert!(DataType::String.extremes().is_none() && DataType::Int128.extremes().is_none());
    }
}
