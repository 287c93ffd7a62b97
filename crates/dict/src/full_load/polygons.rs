//! POLYGON: rows whose keys are polygons, found by a point.

use super::intervals::{self, Interval};
use super::outline::{Drawing, Segment, coordinates};
use crate::row::Raw;
use crate::types::DataType;
use std::ops::Range;

/// All polygons, the one with the smallest area first.
pub(super) struct Polygons {
    shapes: Vec<PolygonShape>,
    /// A tree of the intervals from the lowest to the highest point of each shape; items are places in `shapes`.
    heights: Vec<Interval>,
    /// The same intervals of their sides: a tree for each shape.
    sides: Vec<Interval>,
    segments: Vec<Segment>,
}

/// A polygon's width, its sides, and the place of its row.
#[derive(Clone, Debug)]
struct PolygonShape {
    left: f64,
    right: f64,
    sides: Range<u32>,
    place: u32,
}

/// Where a point is, seen from a segment.
#[derive(PartialEq)]
enum Side {
    On,
    /// A ray from it to the right crosses the segment.
    Left,
    Elsewhere,
}

impl Polygons {
    pub fn of(drawing: Drawing) -> Polygons {
        let Drawing { mut polygons, segments } = drawing;
        polygons.retain(|polygon| !polygon.segments.is_empty());
        polygons.sort_by(|a, b| a.area.total_cmp(&b.area));
        let (mut shapes, mut heights, mut sides) = (Vec::new(), Vec::new(), Vec::new());
        for polygon in polygons {
            let of_x = segments[polygon.segments.clone()].iter().map(|Segment([x, _], _)| *x);
            let (left, right) =
                of_x.fold((f64::INFINITY, f64::NEG_INFINITY), |(left, right), x| (left.min(x), right.max(x)));
            let first = sides.len();
            sides.extend(polygon.segments.filter_map(|at| segments[at].height(at as u32)));
            let own = &mut sides[first..];
            intervals::make_tree_of(own);
            let (low, high) = own
                .iter()
                .fold((u64::MAX, 0), |(low, high), side: &Interval| (low.min(side.low), high.max(side.high)));
            heights.extend(Interval::new(low, high, shapes.len() as u32));
            shapes.push(PolygonShape {
                left,
                right,
                sides: first as u32..sides.len() as u32,
                place: polygon.place,
            });
        }
        intervals::make_tree_of(&mut heights);
        Polygons { shapes, heights, sides, segments }
    }

    /// The place of the row with the smallest polygon that contains a point (x, y), its border included.
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        let point = coordinates(Raw::Items(key)).ok()?;
        let height = rank(point[1])?;
        let mut smallest: Option<u32> = None;
        intervals::each_with(&self.heights, height, &mut |at| {
            let shape = &self.shapes[at as usize];
            let is_beside = point[0] < shape.left || point[0] > shape.right;
            if !is_beside && smallest.is_none_or(|found| at < found) && self.covers(shape, point, height) {
                smallest = Some(at);
            }
        });
        smallest.map(|at| self.shapes[at as usize].place)
    }

    /// Whether a point is on a side, or a ray from it crosses an odd number of sides.
    fn covers(&self, shape: &PolygonShape, point: [f64; 2], height: u64) -> bool {
        let (mut is_on, mut is_inside) = (false, false);
        let sides = &self.sides[shape.sides.start as usize..shape.sides.end as usize];
        intervals::each_with(sides, height, &mut |at| match self.segments[at as usize].side(point) {
            Side::On => is_on = true,
            Side::Left => is_inside = !is_inside,
            Side::Elsewhere => {}
        });
        is_on || is_inside
    }

    pub fn bytes_allocated(&self) -> usize {
        self.shapes.capacity() * size_of::<PolygonShape>()
            + (self.heights.capacity() + self.sides.capacity()) * size_of::<Interval>()
            + self.segments.capacity() * size_of::<Segment>()
    }

    /// The number of polygons, which is also the capacity.
    pub fn filled(&self) -> (usize, usize) {
        (self.shapes.len(), self.shapes.len())
    }
}

impl Segment {
    /// The interval from its lower to its higher end.
    fn height(&self, item: u32) -> Option<Interval> {
        let (y, to_y) = (rank(self.0[1])?, rank(self.1[1])?);
        Interval::new(y.min(to_y), y.max(to_y), item)
    }

    /// A segment includes its lower end only: a ray through a corner crosses one side, or an even number.
    fn side(&self, [x, y]: [f64; 2]) -> Side {
        let Segment([from_x, from_y], [to_x, to_y]) = *self;
        let turn = (to_x - from_x) * (y - from_y) - (to_y - from_y) * (x - from_x);
        let is_between = |at: f64, from: f64, to: f64| from.min(to) <= at && at <= from.max(to);
        if turn == 0.0 && is_between(x, from_x, to_x) && is_between(y, from_y, to_y) {
            return Side::On;
        }
        let is_crossed = (from_y > y) != (to_y > y) && (turn > 0.0) == (to_y > from_y);
        if is_crossed { Side::Left } else { Side::Elsewhere }
    }
}

fn rank(coordinate: f64) -> Option<u64> {
    DataType::Float64.rank(&coordinate.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Cell;

    fn polygons(data_type: &str, keys: &[&str]) -> Polygons {
        let data_type = DataType::parse(data_type).unwrap();
        let mut drawing = Drawing::default();
        for (place, text) in keys.iter().enumerate() {
            let mut key = Vec::new();
            Cell::parse(&data_type, text).unwrap().put(&data_type, &mut key);
            drawing.add(&data_type, &key, place as u32).unwrap();
        }
        Polygons::of(drawing)
    }

    fn find(polygons: &Polygons, x: f64, y: f64) -> Option<u32> {
        polygons.find(&[x.to_le_bytes(), y.to_le_bytes()].concat())
    }

    #[test]
    fn the_smallest_polygon_counts_with_its_border_and_without_its_holes() {
        let square = "[[[(0,0),(0,10),(10,10),(10,0)],[(4,4),(6,4),(6,6),(4,6),(4,4)]]]";
        let small = "[[[(1,1),(3,1),(3,3),(1,3)]],[[(20,0),(22,0),(21,5)]]]";
        let all = polygons(
            "Array(Array(Array(Tuple(Float64, Float64))))",
            &[square, small, "[]", "[[]]", "[[[]]]"],
        );
        for (x, y, place) in [
            (0.5, 0.5, Some(0)),
            (0.0, 0.0, Some(0)),
            (10.0, 5.0, Some(0)),
            (10.1, 5.0, None),
            (2.0, 2.0, Some(1)),
            (3.0, 3.0, Some(1)),
            (3.5, 2.0, Some(0)),
            (5.0, 5.0, None),
            (4.0, 5.0, Some(0)),
            (6.0, 6.0, Some(0)),
            (7.0, 4.0, Some(0)),
            (7.0, 6.0, Some(0)),
            (21.0, 4.9, Some(1)),
            (21.0, 5.0, Some(1)),
            (20.0, 5.0, None),
            (-1.0, 0.0, None),
            (f64::NAN, 0.0, None),
        ] {
            assert_eq!(find(&all, x, y), place, "({x}, {y})");
        }
    }

    #[test]
    fn many_sides_are_as_many_triangles_find_them() {
        // A star of many points, against the triangles from its middle.
        let corner = |at: usize, of: usize| {
            let angle = at as f64 / of as f64 * std::f64::consts::TAU;
            let radius = if at.is_multiple_of(2) { 10.0 } else { 4.0 };
            [radius * angle.cos(), radius * angle.sin()]
        };
        let count = 500;
        let corners: Vec<_> = (0..count).map(|at| corner(at, count)).collect();
        let text = |points: &[[f64; 2]]| {
            let points: Vec<_> = points.iter().map(|[x, y]| format!("[{x},{y}]")).collect();
            format!("[{}]", points.join(","))
        };
        let ring = "Array(Array(Float64))";
        let star = polygons(ring, &[&text(&corners)]);
        let triangles: Vec<_> =
            (0..count).map(|at| text(&[[0.0, 0.0], corners[at], corners[(at + 1) % count]])).collect();
        let triangles = polygons(ring, &triangles.iter().map(String::as_str).collect::<Vec<_>>());
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let [x, y] = [0, 1].map(|_| random.f64() * 22.0 - 11.0);
            assert_eq!(find(&star, x, y).is_some(), find(&triangles, x, y).is_some(), "({x}, {y})");
        }
    }
}
