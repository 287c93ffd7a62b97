//! Aggregates over no rows: ClickHouse answers the type's default (avg: nan, groupArray: an empty array), SQL answers
//! NULL. These wrappers answer as ClickHouse does unless the argument is Nullable, which does not matter to groupArray.

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal256Array, Scalar};
use datafusion::arrow::compute::{cast, is_not_null, kernels::zip::zip};
use datafusion::arrow::datatypes::{DataType, Decimal256Type, FieldRef, i256};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};
use datafusion_functions_aggregate_common::utils::ordering_fields;
use granary_dict::DataType as ClickHouseType;

use super::default_value::default_value;
use super::float_extremes;
use super::frame_sum::{FrameAggregate, FrameSum};
use super::moments::{self, StatisticFunction};
use super::numbers::{from_bits, scalar_of};
use super::quantile::{ANSWERS, QuantileKind, Quantiles};
use crate::error::Error;
use crate::types::{declared, is_wide};

/// Replaces DataFusion's functions by wrapped ones under the same names.
pub(super) fn register(context: &SessionContext) -> Result<()> {
    for answer in ANSWERS {
        context.register_udaf(AggregateUDF::from(Quantiles::new(answer)));
    }
    for (name, statistic) in moments::STATISTICS {
        let inner = context.udaf(name)?;
        context.register_udaf(AggregateUDF::from(StatisticFunction::new(statistic, inner)));
    }
    let others = ["sum", "min", "max", "first_value", "last_value", "bit_or", "bit_xor", ALL_BITS, GATHERING];
    for name in others.into_iter().chain(STATISTICS) {
        let inner = context.udaf(name)?;
        context.register_udaf(AggregateUDF::from(NeverEmpty { inner, over_nullable: false }));
    }
    Ok(())
}

/// Wraps one of DataFusion's aggregates, so that it has a value for no rows.
pub(crate) fn with_empty_value(inner: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(NeverEmpty { inner, over_nullable: false }))
}

/// Returns the aggregate over a Nullable argument: for no rows it is NULL, also where the optimiser replaces the
/// argument by a constant. `None` if it has no value for no rows.
pub(crate) fn over_nullable(function: &AggregateUDF) -> Option<Arc<AggregateUDF>> {
    let NeverEmpty { inner, .. } = function.inner().downcast_ref()?;
    Some(Arc::new(AggregateUDF::from(NeverEmpty { inner: Arc::clone(inner), over_nullable: true })))
}

/// Returns the aggregate over an argument that is not Nullable after all; `None` if it is that already.
pub(crate) fn over_non_null(function: &AggregateUDF) -> Option<Arc<AggregateUDF>> {
    let NeverEmpty { inner, over_nullable: true } = function.inner().downcast_ref()? else { return None };
    Some(with_empty_value(Arc::clone(inner)))
}

/// Aggregates that need some rows; for fewer they are nan.
const STATISTICS: [&str; 10] = [
    "avg",
    QuantileKind::Number.name(),
    QuantileKind::InclusiveNumber.name(),
    "stddev",
    "stddev_pop",
    "var",
    "var_pop",
    "corr",
    "covar_samp",
    "covar_pop",
];

/// ClickHouse's groupBitAnd: over no rows, all bits are set.
const ALL_BITS: &str = "bit_and";

/// Aggregates that return one of their arguments' values, in its type.
const CHOOSING: [&str; 4] = ["min", "max", "first_value", "last_value"];

/// ClickHouse's groupArray: an array of the values that are not NULL.
const GATHERING: &str = "array_agg";

/// An aggregate with a value for no rows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NeverEmpty {
    inner: Arc<AggregateUDF>,
    /// Whether its argument counts as Nullable, whatever its field says.
    over_nullable: bool,
}

impl NeverEmpty {
    /// The value for no rows; `None`: NULL.
    fn default(&self, args: &AccumulatorArgs) -> Result<Option<ScalarValue>> {
        match args.expr_fields.first() {
            Some(argument) if self.is_known(argument) => self.zero(args.return_field.data_type()).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether the argument's nullability does not make the value NULL.
    fn is_known(&self, argument: &FieldRef) -> bool {
        self.name() == GATHERING || !(self.over_nullable || argument.is_nullable())
    }

    /// The type of a summed argument if it is an integer of more than 64 bits.
    fn wide(&self, argument: Option<&FieldRef>) -> Option<ClickHouseType> {
        let argument = argument.filter(|argument| self.name() == "sum" && is_wide(argument))?;
        Some(declared(argument)?.inner().clone())
    }

    fn adjustments(&self, args: &AccumulatorArgs) -> Result<ResultAdjustments> {
        Ok(ResultAdjustments {
            default: self.default(args)?,
            whole: self.wide(args.expr_fields.first()),
            nested: self.nested(args)?,
        })
    }

    /// The types of the answers and of the state, if a value is an array, a map or a tuple.
    fn nested(&self, args: &AccumulatorArgs) -> Result<Option<Nested>> {
        if !args.expr_fields.iter().any(|field| field.data_type().is_nested())
            && !args.return_field.data_type().is_nested()
        {
            return Ok(None);
        }
        let types = args.order_bys.iter().map(|by| by.expr.data_type(args.schema));
        let types = types.collect::<Result<Vec<_>>>()?;
        let state = self.state_fields(StateFieldsArgs {
            name: args.name,
            input_fields: args.expr_fields,
            return_field: Arc::clone(&args.return_field),
            ordering_fields: &ordering_fields(args.order_bys, &types),
            is_distinct: args.is_distinct,
        })?;
        let state = state.iter().map(|field| field.data_type().clone()).collect();
        Ok(Some(Nested { answer: args.return_field.data_type().clone(), state }))
    }

    fn zero(&self, data_type: &DataType) -> Result<ScalarValue> {
        match data_type {
            DataType::Float64 if STATISTICS.contains(&self.name()) => {
                Ok(ScalarValue::Float64(Some(f64::NAN)))
            }
            whole if self.name() == ALL_BITS => match from_bits(vec![u64::MAX].into(), None, whole) {
                Some(bits) => ScalarValue::try_from_array(&bits, 0),
                None => default_value(whole),
            },
            other => default_value(other),
        }
    }
}

impl AggregateUDFImpl for NeverEmpty {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        if self.name() == GATHERING && arguments.iter().any(|argument| argument.data_type().is_null()) {
            return Err(Error::illegal_type(
                "An array is not made of NULL alone here: give NULL a type, as CAST does",
            )
            .into());
        }
        let field = self.inner.return_field(arguments)?.as_ref().clone();
        let field = match field.data_type() {
            // Each sum widens Arrow's decimals; these integers keep their bits.
            _ if let Some(whole) = self.wide(arguments.first()) => whole.to_field(self.name()),
            DataType::List(item) if self.name() == GATHERING => {
                let metadata = arguments.first().map(|argument| argument.metadata().clone());
                let item =
                    item.as_ref().clone().with_nullable(false).with_metadata(metadata.unwrap_or_default());
                field.with_data_type(DataType::List(Arc::new(item)))
            }
            _ => field,
        };
        let known = arguments.first().is_some_and(|argument| self.is_known(argument));
        let nullable = !known || self.zero(field.data_type()).is_err();
        let field = field.with_nullable(nullable);
        Ok(Arc::new(match arguments.first() {
            // The maximum of IPv4 addresses is an IPv4 address.
            Some(argument) if CHOOSING.contains(&self.name()) => {
                field.with_metadata(argument.metadata().clone())
            }
            _ => field,
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        // The state of a thread without rows is NULL, whatever the final answer is.
        let return_field = Arc::new(args.return_field.as_ref().clone().with_nullable(true));
        self.inner.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let adjustments = self.adjustments(&args)?;
        let inner = self.inner.accumulator(args)?;
        Ok(if adjustments.is_noop() { inner } else { Box::new(AdjustedAccumulator { inner, adjustments }) })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let adjustments = self.adjustments(&args)?;
        let of_floats = args.expr_fields.first().is_some_and(|field| field.data_type() == &DataType::Float64);
        let inner: Box<dyn Accumulator> = match self.name() {
            "sum" if of_floats => Box::new(FrameSum::new(FrameAggregate::Sum)),
            "avg" if of_floats => Box::new(FrameSum::new(FrameAggregate::Mean)),
            _ => self.inner.create_sliding_accumulator(args)?,
        };
        Ok(if adjustments.is_noop() { inner } else { Box::new(AdjustedAccumulator { inner, adjustments }) })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        // That of arrays fails if only some groups have one.
        let has_list = CHOOSING.contains(&self.name()) && has_list(args.return_field.data_type());
        !has_list && self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let adjustments = self.adjustments(&args)?;
        let inner = match float_extremes::of_groups(self.name(), args.return_field.data_type()) {
            Some(of_floats) => of_floats,
            None => self.inner.create_groups_accumulator(args)?,
        };
        Ok(if adjustments.is_noop() { inner } else { Box::new(AdjustedAccumulator { inner, adjustments }) })
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        _beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        // DataFusion also calls an order beneficial that is the reverse of what is wanted, and then takes the other
        // end, as this is not reversed. Without it, rows are compared.
        let inner = self.inner.as_ref().clone().with_beneficial_ordering(false)?;
        Ok(inner.map(|inner| {
            Arc::new(NeverEmpty { inner: Arc::new(inner), ..*self }) as Arc<dyn AggregateUDFImpl>
        }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        // The reversed inner function would not be wrapped.
        match self.inner.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            _ => ReversedUDAF::NotSupported,
        }
    }
}

/// Changes to an accumulator's answers.
#[derive(Debug)]
struct ResultAdjustments {
    /// Replaces NULL.
    default: Option<ScalarValue>,
    /// The type of integers that wrap around.
    whole: Option<ClickHouseType>,
    nested: Option<Nested>,
}

/// The types of an aggregate of nested values. DataFusion's accumulators lose the declared types of their items.
#[derive(Debug)]
struct Nested {
    answer: DataType,
    /// The types of the state's columns.
    state: Vec<DataType>,
}

fn of_type(values: ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    match values.data_type() == wanted || !wanted.is_nested() {
        true => Ok(values),
        false => Ok(cast(&values, wanted)?),
    }
}

impl ResultAdjustments {
    /// The columns of a state, in their declared types.
    fn state(&self, state: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
        let Some(nested) = &self.nested else { return Ok(state) };
        state.into_iter().zip(&nested.state).map(|(values, wanted)| of_type(values, wanted)).collect()
    }

    fn is_noop(&self) -> bool {
        self.default.is_none() && self.whole.is_none() && self.nested.is_none()
    }

    fn adjust(&self, mut values: ArrayRef) -> Result<ArrayRef> {
        if let Some(whole) = &self.whole {
            values = wrapped(&values, whole)?;
        }
        if let Some(nested) = &self.nested {
            values = of_type(values, &nested.answer)?;
        }
        let Some(default) = &self.default else { return Ok(values) };
        // The default's type: items are not Nullable, and have ClickHouse's type.
        let wanted = default.data_type();
        let values = if *values.data_type() == wanted { values } else { cast(&values, &wanted)? };
        if values.null_count() == 0 {
            return Ok(values);
        }
        let default = Scalar::new(default.to_array()?);
        Ok(zip(&is_not_null(&values)?, &values, &default)?)
    }
}

/// The low bits of sums, as wide as `whole`.
fn wrapped(sums: &ArrayRef, whole: &ClickHouseType) -> Result<ArrayRef> {
    let Some(numbers) = sums.as_primitive_opt::<Decimal256Type>() else { return Ok(Arc::clone(sums)) };
    let low = |number: i256| number.to_parts().0;
    let numbers: Decimal256Array = match whole {
        ClickHouseType::Int128 => numbers.unary(|number| i256::from_i128(low(number) as i128)),
        ClickHouseType::UInt128 => numbers.unary(|number| i256::from_parts(low(number), 0)),
        _ => numbers.clone(),
    };
    Ok(Arc::new(numbers.with_data_type(whole.to_arrow())))
}

/// An accumulator whose answers are changed.
struct AdjustedAccumulator<A: ?Sized> {
    adjustments: ResultAdjustments,
    inner: Box<A>,
}

impl<A: ?Sized> Debug for AdjustedAccumulator<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdjustedAccumulator").field("adjustments", &self.adjustments).finish_non_exhaustive()
    }
}

impl Accumulator for AdjustedAccumulator<dyn Accumulator> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.inner.evaluate()?;
        match &self.adjustments.default {
            Some(default) if value.is_null() => Ok(default.clone()),
            Some(default) if self.adjustments.whole.is_none() && value.data_type() == default.data_type() => {
                Ok(value)
            }
            _ => scalar_of(&self.adjustments.adjust(value.to_array()?)?),
        }
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = self.inner.state()?;
        if self.adjustments.nested.is_none() {
            return Ok(state);
        }
        let state = state.iter().map(ScalarValue::to_array).collect::<Result<_>>()?;
        self.adjustments.state(state)?.iter().map(scalar_of).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

impl GroupsAccumulator for AdjustedAccumulator<dyn GroupsAccumulator> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.inner.update_batch(values, groups, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let values = self.inner.evaluate(emit_to)?;
        self.adjustments.adjust(values)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.adjustments.state(self.inner.state(emit_to)?)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.inner.merge_batch(values, groups, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.adjustments.state(self.inner.convert_to_state(values, filter)?)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

/// Whether values are arrays or maps, or hold some.
pub(crate) fn has_list(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(_) | DataType::Map(..) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_list(field.data_type())),
        _ => false,
    }
}
