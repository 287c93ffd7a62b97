//! Polygons read from keys.

use crate::error::{Code, DictError};
use crate::lookup_key::Outline;
use crate::row::{Raw, items, text_span};
use crate::types::DataType;
use std::ops::Range;

/// Polygons that are being loaded.
#[derive(Default)]
pub(super) struct Drawing {
    pub polygons: Vec<Polygon>,
    pub segments: Vec<Segment>,
}

/// One polygon, whose sides are `segments`, of the row at `place`.
#[derive(Clone, Debug)]
pub(super) struct Polygon {
    pub area: f64,
    pub segments: Range<usize>,
    pub place: u32,
}

/// From one point to another; each is x and y.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment(pub [f64; 2], pub [f64; 2]);

impl Drawing {
    pub fn bytes_allocated(&self) -> usize {
        self.polygons.capacity() * size_of::<Polygon>() + self.segments.capacity() * size_of::<Segment>()
    }

    /// Adds the polygons of a row.
    ///
    /// # Errors
    /// `BAD_ARGUMENTS` if a point has not two finite coordinates.
    pub fn add(&mut self, data_type: &DataType, key: &[u8], place: u32) -> Result<(), DictError> {
        let Some((start, end)) = text_span(key, 0) else { return Ok(()) };
        let key = &key[start..end];
        if Outline::of(data_type) == Some(Outline::Ring) {
            return self.polygon(data_type.item(), [Raw::Items(key)].into_iter(), place);
        }
        let polygon = data_type.item();
        let ring = polygon.item();
        for rings in items(polygon, key) {
            if let Raw::Items(rings) = rings {
                self.polygon(ring.item(), items(ring, rings), place)?;
            }
        }
        Ok(())
    }

    fn polygon<'a>(
        &mut self,
        point: &DataType,
        rings: impl Iterator<Item = Raw<'a>>,
        place: u32,
    ) -> Result<(), DictError> {
        let first = self.segments.len();
        let mut area = 0.0;
        for (at, ring) in rings.enumerate() {
            let Raw::Items(ring) = ring else { continue };
            let points = items(point, ring).map(coordinates).collect::<Result<Vec<_>, _>>()?;
            let next = points.iter().cycle().skip(1);
            let sides = points.iter().zip(next).map(|(from, to)| Segment(*from, *to));
            let enclosed =
                sides.clone().map(|Segment([x, y], [to_x, to_y])| x * to_y - to_x * y).sum::<f64>();
            area += if at == 0 { enclosed.abs() } else { -enclosed.abs() };
            self.segments.extend(sides);
        }
        if u32::try_from(self.segments.len()).is_err() {
            let what = "The polygons of a dictionary have more sides than 32 bits can count";
            return Err(DictError::new(Code::LimitExceeded, what));
        }
        self.polygons.push(Polygon { area, segments: first..self.segments.len(), place });
        Ok(())
    }
}

/// The x and the y of a point.
pub(super) fn coordinates(point: Raw<'_>) -> Result<[f64; 2], DictError> {
    let Raw::Items(bytes) = point else { return Err(no_point("All points should be two-dimensional")) };
    let (numbers, rest) = bytes.as_chunks::<8>();
    let (&[x, y], []) = (numbers, rest) else { return Err(no_point("All points should be two-dimensional")) };
    let point = [x, y].map(f64::from_le_bytes);
    match point.iter().all(|coordinate| coordinate.is_finite()) {
        true => Ok(point),
        false => Err(no_point("A polygon has a coordinate that is not finite")),
    }
}

fn no_point(what: &str) -> DictError {
    DictError::new(Code::BadArguments, what)
}
