//! Types of keys that are polygons.

use crate::types::DataType;

/// How the type of a key describes polygons; a point is a tuple or an array of two Float64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outline {
    /// The points around one polygon: Array(point).
    Ring,
    /// Polygons, each of which has rings: one around it, and those around its holes: Array(Array(Array(point))).
    Polygons,
}

impl Outline {
    /// The types that describe polygons.
    pub const TYPES: [&str; 4] = [
        "Array(Array(Array(Array(Float64))))",
        "Array(Array(Array(Tuple(Float64, Float64))))",
        "Array(Array(Float64))",
        "Array(Tuple(Float64, Float64))",
    ];

    /// The outline of a type; `None`: it describes no polygons.
    pub fn of(data_type: &DataType) -> Option<Outline> {
        let is_number = |data_type: &DataType| *data_type == DataType::Float64;
        let is_point = |data_type: &DataType| match data_type {
            DataType::Array(number) => is_number(number),
            DataType::Tuple(elements) => {
                elements.len() == 2 && elements.iter().all(|element| is_number(&element.data_type))
            }
            _ => false,
        };
        let DataType::Array(item) = data_type else { return None };
        match &**item {
            point if is_point(point) => Some(Outline::Ring),
            DataType::Array(ring) => match &**ring {
                DataType::Array(point) if is_point(point) => Some(Outline::Polygons),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_types_say_where_polygons_are() {
        let of = |name: &str| Outline::of(&DataType::parse(name).unwrap());
        let [many, ring] = [Some(Outline::Polygons), Some(Outline::Ring)];
        assert_eq!(Outline::TYPES.map(of), [many, many, ring, ring]);
        for name in [
            "Array(Float64)",
            "Array(Array(Array(Float64)))",
            "Array(Array(Tuple(Float64, Float64)))",
            "Array(Tuple(Float64, Float32))",
            "Array(Tuple(Float64, Float64, Float64))",
            "String",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
