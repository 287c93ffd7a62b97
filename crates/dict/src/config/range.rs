//! The settings of RANGE_HASHED.

use super::node::{Node, Settings};
use crate::error::DictError;

/// Settings of RANGE_HASHED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSettings {
    /// RANGE_LOOKUP_STRATEGY.
    pub overlap: Overlap,
    /// CONVERT_NULL_RANGE_BOUND_TO_OPEN.
    pub null_bounds: NullBounds,
}

/// Which of several ranges that contain the value counts. Ranges are ordered by their lower bounds, then by their upper
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// The first, `'min'`.
    First,
    /// The last, `'max'`.
    Last,
}

/// What NULL means as a range's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullBounds {
    /// The range has no such bound.
    Open,
    /// The row is dropped.
    Dropped,
}

pub(super) const RANGE_PARAMETERS: &[&str] = &[STRATEGY, NULL_IS_OPEN];
const STRATEGY: &str = "RANGE_LOOKUP_STRATEGY";
const NULL_IS_OPEN: &str = "CONVERT_NULL_RANGE_BOUND_TO_OPEN";

impl RangeSettings {
    pub(super) fn take(settings: &Settings<'_>) -> Result<Self, DictError> {
        let overlap = match settings.text(STRATEGY)? {
            None | Some("min") => Overlap::First,
            Some("max") => Overlap::Last,
            Some(other) => {
                return Err(settings.error(STRATEGY, &format!("must be min or max, not '{other}'")));
            }
        };
        let is_open = settings.text(NULL_IS_OPEN)?.is_none() || settings.flag(NULL_IS_OPEN)?;
        let null_bounds = if is_open { NullBounds::Open } else { NullBounds::Dropped };
        Ok(RangeSettings { overlap, null_bounds })
    }

    pub(super) fn put(self, nodes: &mut Vec<Node>) {
        if self.overlap == Overlap::Last {
            nodes.push(Node::text(STRATEGY, "max"));
        }
        if self.null_bounds == NullBounds::Dropped {
            nodes.push(Node::text(NULL_IS_OPEN, "0"));
        }
    }
}
