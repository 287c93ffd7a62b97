//! `quantile(level)(x)` and `quantiles(level, ...)(x)`: interpolated between the two values nearest to a level, over
//! all values (ClickHouse samples if there are many); `quantileExactInclusive` and `quantilesExactInclusive`, which
//! ClickHouse computes by another formula.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Float64Type, Int64Type, UInt64Type,
};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, ColumnarValue, Signature, Volatility};

/// The aggregates: one level gives a number, several an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantileKind {
    Number,
    Array,
    InclusiveNumber,
    InclusiveArray,
}

pub const ANSWERS: [QuantileKind; 4] =
    [QuantileKind::Number, QuantileKind::Array, QuantileKind::InclusiveNumber, QuantileKind::InclusiveArray];

impl QuantileKind {
    /// Name of the rewritten call; its levels are arguments after the value.
    pub const fn name(self) -> &'static str {
        match self {
            QuantileKind::Number => "quantileOf",
            QuantileKind::Array => "quantilesOf",
            QuantileKind::InclusiveNumber => "quantileInclusiveOf",
            QuantileKind::InclusiveArray => "quantilesInclusiveOf",
        }
    }

    /// The kind that ClickHouse calls so.
    pub fn called(name: &str) -> Self {
        match name {
            "quantiles" => QuantileKind::Array,
            "quantileExactInclusive" => QuantileKind::InclusiveNumber,
            "quantilesExactInclusive" => QuantileKind::InclusiveArray,
            _ => QuantileKind::Number,
        }
    }

    pub const fn is_array(self) -> bool {
        matches!(self, QuantileKind::Array | QuantileKind::InclusiveArray)
    }

    pub const fn is_inclusive(self) -> bool {
        matches!(self, QuantileKind::InclusiveNumber | QuantileKind::InclusiveArray)
    }
}

/// One of these aggregates.
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

fn list_of(item: DataType, nullable: bool) -> DataType {
    DataType::List(Arc::new(Field::new("item", item, nullable)))
}

/// How integers are kept whose differences a float may not hold.
const WHOLE: DataType = DataType::Decimal128(38, 0);

/// The type in which values are kept.
fn kept(given: Option<&FieldRef>) -> DataType {
    match given.map(|field| field.data_type()) {
        Some(DataType::Int64 | DataType::UInt64) => WHOLE,
        _ => DataType::Float64,
    }
}

impl AggregateUDFImpl for Quantiles {
    fn name(&self) -> &str {
        self.answer.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(if self.answer.is_array() { list_of(DataType::Float64, false) } else { DataType::Float64 })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let values = list_of(kept(args.input_fields.first()), true);
        Ok(vec![Arc::new(Field::new(format!("{}[values]", args.name), values, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let nothing = RecordBatch::new_empty(Arc::new(args.schema.clone()));
        let level =
            |level: &Arc<dyn datafusion::physical_plan::PhysicalExpr>| match level.evaluate(&nothing)? {
                ColumnarValue::Scalar(ScalarValue::Float64(Some(level))) => Ok(level),
                other => Err(DataFusionError::Internal(format!("{other} is no level"))),
            };
        let levels = args.exprs[1..].iter().map(level).collect::<Result<Vec<f64>>>()?;
        let values = match kept(args.expr_fields.first()) {
            DataType::Float64 => Sorted::Floats(Vec::new()),
            _ => Sorted::Whole(Vec::new()),
        };
        Ok(Box::new(Values { answer: self.answer, levels, values }))
    }
}

/// Values, sorted once they are asked for.
#[derive(Debug)]
enum Sorted {
    Floats(Vec<f64>),
    Whole(Vec<i128>),
}

impl Sorted {
    fn add(&mut self, values: &ArrayRef) {
        match self {
            Sorted::Floats(floats) => floats.extend(
                values.as_primitive::<Float64Type>().iter().flatten().filter(|value| !value.is_nan()),
            ),
            Sorted::Whole(whole) => match values.data_type() {
                DataType::Int64 => {
                    whole.extend(values.as_primitive::<Int64Type>().iter().flatten().map(i128::from));
                }
                DataType::UInt64 => {
                    whole.extend(values.as_primitive::<UInt64Type>().iter().flatten().map(i128::from));
                }
                _ => whole.extend(values.as_primitive::<Decimal128Type>().iter().flatten()),
            },
        }
    }

    fn sort(&mut self) {
        match self {
            Sorted::Floats(floats) => floats.sort_unstable_by(f64::total_cmp),
            Sorted::Whole(whole) => whole.sort_unstable(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Sorted::Floats(floats) => floats.len(),
            Sorted::Whole(whole) => whole.len(),
        }
    }

    fn at(&self, place: usize) -> f64 {
        match self {
            Sorted::Floats(floats) => floats[place],
            Sorted::Whole(whole) => whole[place] as f64,
        }
    }

    /// By how much the value at a place is more than the one before it.
    fn step_to(&self, place: usize) -> f64 {
        match self {
            Sorted::Floats(floats) => floats[place] - floats[place - 1],
            Sorted::Whole(whole) => (whole[place] - whole[place - 1]) as f64,
        }
    }

    /// The quantile; `None`: there are no values.
    fn between(&self, level: f64) -> Option<f64> {
        let last = self.len().checked_sub(1)?;
        let place = level * last as f64;
        let left = (place as usize).min(last);
        if left == last {
            return Some(self.at(last));
        }
        let part = place - left as f64;
        Some(self.at(left) * (1.0 - part) + self.at(left + 1) * part)
    }

    /// The quantile as ClickHouse's `quantileExactInclusive` computes it, with places that begin at 1.
    fn inclusive(&self, level: f64) -> Option<f64> {
        let count = self.len();
        let last = count.checked_sub(1)?;
        let place = level * last as f64 + 1.0;
        let left = (place as usize).max(1);
        if left >= count {
            return Some(self.at(last));
        }
        Some(self.at(left - 1) + (place - left as f64) * self.step_to(left))
    }
}

#[derive(Debug)]
struct Values {
    answer: QuantileKind,
    levels: Vec<f64>,
    values: Sorted,
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.add(&values[0]);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        let rows = (0..lists.len()).filter(|row| lists.is_valid(*row));
        rows.for_each(|row| self.values.add(&lists.value(row)));
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, item): (Vec<ScalarValue>, DataType) = match &mut self.values {
            Sorted::Floats(floats) => (floats.drain(..).map(ScalarValue::from).collect(), DataType::Float64),
            Sorted::Whole(whole) => {
                let number = |whole| ScalarValue::Decimal128(Some(whole), 38, 0);
                (whole.drain(..).map(number).collect(), WHOLE)
            }
        };
        Ok(vec![ScalarValue::List(ScalarValue::new_list(&values, &item, true))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.values.sort();
        let of = |level: &f64| match self.answer.is_inclusive() {
            true => self.values.inclusive(*level),
            false => self.values.between(*level),
        };
        if !self.answer.is_array() {
            return Ok(ScalarValue::Float64(self.levels.first().and_then(of)));
        }
        let all: Vec<ScalarValue> =
            self.levels.iter().map(|level| ScalarValue::from(of(level).unwrap_or(f64::NAN))).collect();
        Ok(ScalarValue::List(ScalarValue::new_list(&all, &DataType::Float64, false)))
    }

    fn size(&self) -> usize {
        let values = match &self.values {
            Sorted::Floats(floats) => floats.capacity() * size_of::<f64>(),
            Sorted::Whole(whole) => whole.capacity() * size_of::<i128>(),
        };
        size_of_val(self) + values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let values = Sorted::Floats((0..10).map(f64::from).collect());
        let of = |level| values.between(level);
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(of), [Some(0.0), Some(4.5), Some(8.1), Some(9.0)]);
        let (none, one) = (Sorted::Floats(vec![]), Sorted::Floats(vec![3.0]));
        assert_eq!((none.between(0.5), one.between(0.3)), (None, Some(3.0)));
        assert_eq!((none.inclusive(0.5), one.inclusive(0.3)), (None, Some(3.0)));
    }

    /// ClickHouse's answers.
    #[test]
    fn inclusive_quantiles_step_from_the_left_neighbour() {
        let values = Sorted::Whole(vec![18446744073709540000, 18446744073709551610, 18446744073709551615]);
        assert_eq!(values.inclusive(0.3), Some(18446744073709545000.0));
        let values = Sorted::Whole(vec![i64::MIN.into(), i64::MAX.into()]);
        assert_eq!(values.inclusive(0.3), Some(-3689348814741909500.0));
    }
}
