//! Variances, covariances and correlations, computed from sums as ClickHouse computes them: the sums of a block are
//! made in as many lanes as there, so that the digits are the same ones.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature,
};

/// A statistic of one column or of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statistic {
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    CovarPop,
    CovarSamp,
    Corr,
}

/// Each statistic, by DataFusion's name.
pub const STATISTICS: [(&str, Statistic); 7] = [
    ("var_pop", Statistic::VarPop),
    ("var", Statistic::VarSamp),
    ("stddev_pop", Statistic::StddevPop),
    ("stddev", Statistic::StddevSamp),
    ("covar_pop", Statistic::CovarPop),
    ("covar_samp", Statistic::CovarSamp),
    ("corr", Statistic::Corr),
];

/// Names of the sums, in their order; those of one column come first.
const SUMS: [&str; 6] = ["count", "x", "xx", "y", "xy", "yy"];

/// The sums of some rows, or what one row adds to them.
type Sums = [f64; SUMS.len()];

/// Rows of a block that ClickHouse adds side by side.
const LANES: usize = 16;

impl Statistic {
    /// How many of the sums are kept.
    fn kept(self) -> usize {
        match self {
            Statistic::VarPop | Statistic::VarSamp | Statistic::StddevPop | Statistic::StddevSamp => 3,
            Statistic::CovarPop | Statistic::CovarSamp | Statistic::Corr => SUMS.len(),
        }
    }

    /// The answer; `None`: there are no rows.
    fn answer(self, sums: &Sums) -> Option<f64> {
        let [count, x, xx, y, xy, yy] = *sums;
        if count == 0.0 {
            return None;
        }
        // Neither less than 0 nor NaN.
        let variance = |divisor: f64| {
            let variance = (xx - x * x / count) / divisor;
            if variance > 0.0 { variance } else { 0.0 }
        };
        let sample = || if count > 1.0 { variance(count - 1.0) } else { f64::NAN };
        let covariance = |divisor: f64| (xy - x * y / count) / divisor;
        let answer = match self {
            Statistic::VarPop => variance(count),
            Statistic::VarSamp => sample(),
            Statistic::StddevPop => variance(count).sqrt(),
            Statistic::StddevSamp => sample().sqrt(),
            Statistic::CovarPop => covariance(count),
            Statistic::CovarSamp => covariance(count - 1.0),
            Statistic::Corr => (count * xy - x * y) / ((count * xx - x * x) * (count * yy - y * y)).sqrt(),
        };
        Some(if answer.is_nan() { f64::NAN } else { answer })
    }
}

fn add(sums: &mut Sums, others: &Sums) {
    sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
}

/// The rows of a block.
struct BlockRows<'a> {
    x: &'a Float64Array,
    y: Option<&'a Float64Array>,
    nulls: Option<NullBuffer>,
}

impl<'a> BlockRows<'a> {
    fn of(values: &'a [ArrayRef]) -> Self {
        let x = values[0].as_primitive::<Float64Type>();
        let y = values.get(1).map(|y| y.as_primitive::<Float64Type>());
        let nulls = NullBuffer::union(x.nulls(), y.and_then(|y| y.nulls()));
        Self { x, y, nulls }
    }

    fn len(&self) -> usize {
        self.x.len()
    }

    /// What a row adds; `None`: one of its values is NULL.
    fn row(&self, row: usize) -> Option<Sums> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        let x = self.x.value(row);
        let y = self.y.map_or(0.0, |y| y.value(row));
        Some([1.0, x, x * x, y, x * y, y * y])
    }

    /// Adds all rows of the block, in the order in which ClickHouse adds them.
    fn add_to(&self, sums: &mut Sums) {
        let in_lanes = self.len() / LANES * LANES;
        let mut lanes: [Sums; LANES] = [[0.0; SUMS.len()]; LANES];
        for row in 0..in_lanes {
            if let Some(more) = self.row(row) {
                add(&mut lanes[row % LANES], &more);
            }
        }
        lanes.iter().for_each(|lane| add(sums, lane));
        (in_lanes..self.len()).filter_map(|row| self.row(row)).for_each(|more| add(sums, &more));
    }
}

/// The aggregate. DataFusion's has its name and its types, and computes it of DISTINCT values.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct StatisticFunction {
    statistic: Statistic,
    inner: Arc<AggregateUDF>,
}

impl StatisticFunction {
    pub fn new(statistic: Statistic, inner: Arc<AggregateUDF>) -> Self {
        Self { statistic, inner }
    }
}

impl AggregateUDFImpl for StatisticFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            return self.inner.state_fields(args);
        }
        let field =
            |sum: &&str| Arc::new(Field::new(format!("{}[{sum}]", args.name), DataType::Float64, true));
        Ok(SUMS[..self.statistic.kept()].iter().map(field).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return self.inner.accumulator(args);
        }
        Ok(Box::new(OfAll { statistic: self.statistic, sums: [0.0; SUMS.len()] }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct || self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        if args.is_distinct {
            return self.inner.create_groups_accumulator(args);
        }
        let sums = vec![Vec::new(); self.statistic.kept()];
        Ok(Box::new(OfGroups { statistic: self.statistic, sums }))
    }
}

#[derive(Debug)]
struct OfAll {
    statistic: Statistic,
    sums: Sums,
}

impl Accumulator for OfAll {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        BlockRows::of(values).add_to(&mut self.sums);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (sum, column) in self.sums.iter_mut().zip(states) {
            column.as_primitive::<Float64Type>().iter().flatten().for_each(|more| *sum += more);
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.sums[..self.statistic.kept()].iter().map(|sum| ScalarValue::from(*sum)).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.statistic.answer(&self.sums)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// By sum, that of each group.
#[derive(Debug)]
struct OfGroups {
    statistic: Statistic,
    sums: Vec<Vec<f64>>,
}

impl OfGroups {
    fn resize(&mut self, groups: usize) {
        self.sums.iter_mut().for_each(|column| column.resize(groups, 0.0));
    }

    fn take(&mut self, emit_to: EmitTo) -> Vec<Vec<f64>> {
        self.sums.iter_mut().map(|column| emit_to.take_needed(column)).collect()
    }
}

fn arrays(columns: Vec<Vec<f64>>) -> Vec<ArrayRef> {
    columns.into_iter().map(|column| Arc::new(Float64Array::from(column)) as ArrayRef).collect()
}

/// Whether a row is wanted.
fn is_wanted(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for OfGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.resize(total);
        let rows = BlockRows::of(values);
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| is_wanted(filter, *row)) {
            if let Some(more) = rows.row(row) {
                self.sums.iter_mut().zip(more).for_each(|(column, more)| column[*group] += more);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.resize(total);
        for (column, state) in self.sums.iter_mut().zip(states) {
            let state = state.as_primitive::<Float64Type>();
            for (group, more) in groups.iter().zip(state) {
                column[*group] += more.unwrap_or(0.0);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let columns = self.take(emit_to);
        let answer = |group: usize| {
            let mut sums: Sums = [0.0; SUMS.len()];
            sums.iter_mut().zip(&columns).for_each(|(sum, column)| *sum = column[group]);
            self.statistic.answer(&sums)
        };
        let groups = columns.first().map_or(0, Vec::len);
        Ok(Arc::new((0..groups).map(answer).collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(arrays(self.take(emit_to)))
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = BlockRows::of(values);
        let mut columns = vec![vec![0.0; rows.len()]; self.sums.len()];
        for row in (0..rows.len()).filter(|row| is_wanted(filter, *row)) {
            if let Some(more) = rows.row(row) {
                columns.iter_mut().zip(more).for_each(|(column, more)| column[row] = more);
            }
        }
        Ok(arrays(columns))
    }

    fn size(&self) -> usize {
        let columns = self.sums.iter().map(|column| column.capacity() * size_of::<f64>());
        size_of_val(self) + columns.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(statistic: Statistic, numbers: &[f64]) -> Option<f64> {
        let values: ArrayRef = Arc::new(Float64Array::from(numbers.to_vec()));
        let mut sums = [0.0; SUMS.len()];
        BlockRows::of(&[Arc::clone(&values), values]).add_to(&mut sums);
        statistic.answer(&sums)
    }

    /// ClickHouse's answers.
    #[test]
    fn what_is_not_defined_is_nan_and_no_variance_is_less_than_nothing() {
        assert_eq!(of(Statistic::VarPop, &[]), None);
        assert_eq!(of(Statistic::VarPop, &[f64::INFINITY, 1.0]), Some(0.0));
        assert_eq!(of(Statistic::StddevSamp, &[f64::NAN, 1.0]), Some(0.0));
        assert_eq!(of(Statistic::VarPop, &[0.1, 0.1, 0.1]), Some(0.0));
        for statistic in [Statistic::VarSamp, Statistic::StddevSamp, Statistic::CovarSamp, Statistic::Corr] {
            assert!(of(statistic, &[1.0]).is_some_and(f64::is_nan), "{statistic:?}");
        }
    }
}
