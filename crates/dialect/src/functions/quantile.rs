//! `quantile(level)(x)` and `quantiles(level, ...)(x)`: interpolated between the two values nearest to a level, over
//! all values (ClickHouse samples if there are many).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, ColumnarValue, Signature, Volatility};

/// The two aggregates: one level gives a number, several an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantileKind {
    Number,
    Array,
}

pub const ANSWERS: [QuantileKind; 2] = [QuantileKind::Number, QuantileKind::Array];

impl QuantileKind {
    /// Name of the rewritten call; its levels are arguments after the value.
    pub const fn name(self) -> &'static str {
        match self {
            QuantileKind::Number => "quantileOf",
            QuantileKind::Array => "quantilesOf",
        }
    }
}

/// `quantile` or `quantiles`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Quantiles {
    answer: QuantileKind,
    signature: Signature,
}

impl Quantiles {
    pub fn new(answer: QuantileKind) -> Self {
        Self { answer, signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

fn numbers(nullable: bool) -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Float64, nullable)))
}

impl AggregateUDFImpl for Quantiles {
    fn name(&self) -> &str {
        self.answer.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.answer {
            QuantileKind::Number => DataType::Float64,
            QuantileKind::Array => numbers(false),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[values]", args.name), numbers(true), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let nothing = RecordBatch::new_empty(Arc::new(args.schema.clone()));
        let level =
            |level: &Arc<dyn datafusion::physical_plan::PhysicalExpr>| match level.evaluate(&nothing)? {
                ColumnarValue::Scalar(ScalarValue::Float64(Some(level))) => Ok(level),
                other => Err(DataFusionError::Internal(format!("{other} is no level"))),
            };
        let levels = args.exprs[1..].iter().map(level).collect::<Result<Vec<f64>>>()?;
        Ok(Box::new(Values { answer: self.answer, levels, values: Vec::new() }))
    }
}

#[derive(Debug)]
struct Values {
    answer: QuantileKind,
    levels: Vec<f64>,
    values: Vec<f64>,
}

impl Values {
    fn add(&mut self, values: &ArrayRef) {
        self.values
            .extend(values.as_primitive::<Float64Type>().iter().flatten().filter(|value| !value.is_nan()));
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0]);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        (0..lists.len()).filter(|row| lists.is_valid(*row)).for_each(|row| self.add(&lists.value(row)));
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self.values.drain(..).map(ScalarValue::from).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list(&values, &DataType::Float64, true))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.values.sort_unstable_by(f64::total_cmp);
        let found: Vec<Option<f64>> = self.levels.iter().map(|level| between(&self.values, *level)).collect();
        Ok(match self.answer {
            QuantileKind::Number => ScalarValue::Float64(found.into_iter().next().flatten()),
            QuantileKind::Array => {
                let all: Vec<ScalarValue> =
                    found.into_iter().map(|number| ScalarValue::from(number.unwrap_or(f64::NAN))).collect();
                ScalarValue::List(ScalarValue::new_list(&all, &DataType::Float64, false))
            }
        })
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }
}

/// The quantile of sorted values; `None`: there are no values.
fn between(sorted: &[f64], level: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = level * last as f64;
    let left = (place as usize).min(last);
    let Some(right) = sorted.get(left + 1) else { return Some(sorted[left]) };
    let part = place - left as f64;
    Some(sorted[left] * (1.0 - part) + right * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let of = |level| between(&values, level);
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(of), [Some(0.0), Some(4.5), Some(8.1), Some(9.0)]);
        assert_eq!((between(&[], 0.5), between(&[3.0], 0.3)), (None, Some(3.0)));
    }
}
