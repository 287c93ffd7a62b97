//! `greatest(a, b, ..)` and `least(a, b, ..)`: NULL is skipped, and of values that are neither less nor greater than
//! each other (NaN, or 0 and -0) the later one is taken.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::cmp::{gt, lt};
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dict::DataType as ClickHouseType;

use super::arguments::{self, check_count};
use super::convert::{between_times, check_range};
use super::numbers::{rows, shaped};
use super::supertype::{is_plain, supertype, type_of};
use super::values::nans;
use crate::error::Error;
use crate::types::type_name;

/// Which value is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extreme {
    Greatest,
    Least,
}

/// `greatest` or `least`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Extremes {
    extreme: Extreme,
    signature: Signature,
}

impl Extremes {
    pub fn new(extreme: Extreme) -> Self {
        Self { extreme, signature: arguments::any(Volatility::Immutable) }
    }

    fn common(&self, given: &[FieldRef]) -> Result<ClickHouseType> {
        let known = given.iter().filter(|field| !field.data_type().is_null());
        let types = known.map(|field| type_of(field)).collect::<Option<Vec<_>>>();
        let is_ordered = |common: &ClickHouseType| {
            use ClickHouseType::{Date, Date32, DateTime, String};
            is_plain(&common.to_arrow()) || matches!(common, Date | Date32 | DateTime { .. } | String)
        };
        // Of these types, only values of one and the same are compared.
        let is_one = |types: &[ClickHouseType]| {
            use ClickHouseType::{DateTime64, Decimal, Ipv4};
            let comparable =
                |first: &ClickHouseType| matches!(first, DateTime64 { .. } | Decimal { .. } | Ipv4);
            types.first().is_some_and(|first| comparable(first) && types.iter().all(|other| other == first))
        };
        let common = types.and_then(|types| match is_one(&types) {
            true => types.first().cloned(),
            false => supertype(&types).filter(is_ordered),
        });
        common.ok_or_else(|| {
            let types: Vec<String> = given.iter().map(|field| type_name(field)).collect();
            let what =
                format!("There is no supertype for types {} of function {}", types.join(", "), self.name());
            Error::no_common_type(what).into()
        })
    }

    /// By row, whether `one` is taken rather than `other`.
    fn wins(&self, one: &ArrayRef, other: &ArrayRef) -> Result<BooleanArray> {
        if one.data_type().is_floating() {
            let floats = |array: &ArrayRef| -> Result<_> {
                Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
            };
            let (one, other) = (floats(one)?, floats(other)?);
            let wins = |row: usize| match self.extreme {
                Extreme::Greatest => one.value(row) > other.value(row),
                Extreme::Least => one.value(row) < other.value(row),
            };
            return Ok(BooleanArray::new(BooleanBuffer::collect_bool(one.len(), wins), None));
        }
        Ok(match self.extreme {
            Extreme::Greatest => gt(one, other)?,
            Extreme::Least => lt(one, other)?,
        })
    }
}

impl ScalarUDFImpl for Extremes {
    fn name(&self) -> &str {
        match self.extreme {
            Extreme::Greatest => "greatest",
            Extreme::Least => "least",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("the type of {} needs its arguments' fields", self.name())))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 1..=usize::MAX)?;
        let given = args.arg_fields;
        if given.iter().all(|field| field.data_type().is_null()) {
            return Ok(Arc::new(Field::new(self.name(), DataType::Null, true)));
        }
        let nullable = given.iter().any(|field| field.is_nullable() || field.data_type().is_null());
        Ok(Arc::new(self.common(given)?.to_field(self.name()).with_nullable(nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = rows(&args.args, args.number_rows);
        let common = args.return_field.data_type();
        let mut columns = args.args.iter().map(|given| {
            let given = given.to_array(rows)?;
            match between_times(&given, common)? {
                Some(moments) => Ok(moments),
                None => Ok(cast(&given, common)?),
            }
        });
        let mut best: ArrayRef =
            columns.next().unwrap_or_else(|| Err(DataFusionError::Internal("greatest of nothing".into())))?;
        for next in columns {
            let next = next?;
            let wins = self.wins(&best, &next)?;
            // If no argument is Nullable, the later of two equal values is taken; otherwise NaN is skipped, too.
            let nullable = args.return_field.is_nullable();
            let (best_nan, next_nan) = (nans(&best)?, nans(&next)?);
            let stays = (0..rows).map(|row| match next.is_null(row) || best.is_null(row) {
                true => next.is_null(row),
                false if nullable && (best_nan[row] || next_nan[row]) => next_nan[row],
                false => wins.value(row),
            });
            best = zip(&BooleanArray::from(stays.collect::<Vec<bool>>()), &best, &next)?;
        }
        let date = args.arg_fields.iter().find(|field| field.data_type() == &DataType::Date32);
        if let (Some(date), DataType::Timestamp(..)) = (date, common) {
            check_range(date, &best, common)?;
        }
        shaped(best, &args.args)
    }
}
