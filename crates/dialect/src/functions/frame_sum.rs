//! Sums and means of floats in a moving frame: numbers that leave are not subtracted, as a large one would take the
//! digits of small ones with it, and infinity all of them.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

/// The aggregate that is computed over a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameAggregate {
    Sum,
    Mean,
}

/// The numbers of a frame, in two stacks: each number is added at most twice, however wide the frame is.
#[derive(Debug)]
pub struct FrameSum {
    of: FrameAggregate,
    /// The newer numbers, and their sum.
    newer: Vec<f64>,
    newer_sum: f64,
    /// By older number, newest first: the sum of it and all before it in this list.
    older: Vec<f64>,
}

impl FrameSum {
    pub fn new(of: FrameAggregate) -> Self {
        Self { of, newer: Vec::new(), newer_sum: 0.0, older: Vec::new() }
    }

    fn leave(&mut self) {
        if self.older.is_empty() {
            let mut sum = 0.0;
            self.older.extend(self.newer.drain(..).rev().map(|number| {
                sum += number;
                sum
            }));
            self.newer_sum = 0.0;
        }
        self.older.pop();
    }
}

impl Accumulator for FrameSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for number in values[0].as_primitive::<Float64Type>().iter().flatten() {
            self.newer.push(number);
            self.newer_sum += number;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        (0..values[0].len() - values[0].null_count()).for_each(|_| self.leave());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let count = self.newer.len() + self.older.len();
        let sum = self.older.last().copied().unwrap_or(0.0) + self.newer_sum;
        Ok(ScalarValue::Float64(match self.of {
            _ if count == 0 => None,
            FrameAggregate::Sum => Some(sum),
            FrameAggregate::Mean => Some(sum / count as f64),
        }))
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.newer.capacity() + self.older.capacity()) * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(DataFusionError::Internal("a frame is of one thread".into()))
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(DataFusionError::Internal("a frame is of one thread".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Float64Array;
    use std::sync::Arc;

    #[test]
    fn what_has_left_leaves_nothing_behind() {
        let one = |number: Option<f64>| vec![Arc::new(Float64Array::from(vec![number])) as ArrayRef];
        let numbers = [Some(1e16), Some(1.0), None, Some(f64::INFINITY), Some(2.0), Some(3.0), Some(4.0)];
        for width in 1..=3 {
            let mut frame = FrameSum::new(FrameAggregate::Sum);
            for (last, number) in numbers.iter().enumerate() {
                frame.update_batch(&one(*number)).unwrap();
                if let Some(left) = last.checked_sub(width) {
                    frame.retract_batch(&one(numbers[left])).unwrap();
                }
                let within = &numbers[(last + 1).saturating_sub(width)..=last];
                let expected = within.iter().flatten().copied().reduce(|sum, number| sum + number);
                assert_eq!(frame.evaluate().unwrap(), ScalarValue::Float64(expected), "{within:?}");
            }
        }
    }
}
