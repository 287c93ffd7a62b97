//! Functions whose result in a row depends on its arguments alone, and is NULL if one of them is: a table for each
//! kind.

mod bits;
mod calendar;
mod dates;
mod filter_sort;
mod intervals;
mod lists;
mod local;
mod math;
mod patterns;
mod sets;
mod shift;
mod substrings;
mod sums;
mod texts;

use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, new_null_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::nullif;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::{self, check_count};
use super::numbers::{by_slices, expanded, rows, shaped};
use crate::error::Error;
use crate::types::type_name;

pub use intervals::units;
pub use lists::nans;

/// One function.
pub struct Function {
    name: &'static str,
    /// The number of arguments.
    arguments: RangeInclusive<usize>,
    /// The result's field, given those of the arguments, none of which is the NULL type; `None`: such arguments are
    /// refused. Its name does not matter, and it becomes Nullable if an argument is.
    field: fn(&[FieldRef]) -> Option<Field>,
    /// Computes the results. They may be anything where an argument is NULL.
    answer: fn(&[ArrayRef], &Field) -> Result<ArrayRef>,
}

/// All functions.
pub fn all() -> impl Iterator<Item = &'static Function> {
    let tables: [&'static [Function]; 13] = [
        bits::FUNCTIONS,
        calendar::FUNCTIONS,
        filter_sort::FUNCTIONS,
        dates::FUNCTIONS,
        intervals::FUNCTIONS,
        lists::FUNCTIONS,
        math::FUNCTIONS,
        patterns::FUNCTIONS,
        sets::FUNCTIONS,
        shift::FUNCTIONS,
        substrings::FUNCTIONS,
        sums::FUNCTIONS,
        texts::FUNCTIONS,
    ];
    tables.into_iter().flatten()
}

/// The functions of a time alone that show a local date or time.
pub fn in_calendars() -> impl Iterator<Item = &'static Function> {
    calendar::FUNCTIONS
        .iter()
        .filter(|function| function.arguments == (1..=1) && function.name.starts_with("to"))
}

impl Function {
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// A field of this type, whose name does not matter.
fn of(data_type: DataType) -> Field {
    Field::new("", data_type, false)
}

/// Functions whose result in ClickHouse is not NULL for a NULL argument.
const TAKE_NO_NULL: &[&str] = &["arrayPushBack", "arrayPushFront", "countEqual", "indexOf"];

/// A function whose result is NULL for NULL in the first place alone.
const TAKES_NO_NULL_BEHIND: &str = "arraySlice";

/// A function that handles NULL itself.
const TAKES_NULL: &str = "ifNotFinite";

/// A function, as DataFusion knows it.
pub struct ValueFunction {
    function: &'static Function,
    signature: Signature,
}

impl ValueFunction {
    pub fn new(function: &'static Function) -> Self {
        Self { function, signature: arguments::any(Volatility::Immutable) }
    }
}

impl std::fmt::Debug for ValueFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ValueFunction").field(&self.function.name).finish()
    }
}

impl PartialEq for ValueFunction {
    fn eq(&self, other: &Self) -> bool {
        self.function.name == other.function.name
    }
}

impl Eq for ValueFunction {}

impl Hash for ValueFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.name.hash(state);
    }
}

impl ScalarUDFImpl for ValueFunction {
    fn name(&self) -> &str {
        self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("the type of {} needs its arguments' fields", self.name())))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let (name, given) = (self.name(), args.arg_fields);
        check_count(name, given.len(), self.function.arguments.clone())?;
        let wants_values = match name {
            TAKES_NO_NULL_BEHIND => given.get(1..).unwrap_or_default(),
            _ if TAKE_NO_NULL.contains(&name) => given,
            _ => &[],
        };
        if wants_values.iter().any(|field| field.data_type().is_null()) {
            return Err(Error::illegal_type(format!("Function {name} does not take NULL here")).into());
        }
        let known = given.iter().find(|field| !field.data_type().is_null());
        let given = match known.filter(|_| name == TAKES_NULL) {
            Some(known) => &given.iter().map(|field| typed(field, known)).collect::<Vec<_>>(),
            None => given,
        };
        if given.iter().any(|field| field.data_type().is_null()) {
            return Ok(Arc::new(Field::new(name, DataType::Null, true)));
        }
        let Some(field) = (self.function.field)(given) else {
            let types: Vec<String> = given.iter().map(|field| type_name(field)).collect();
            let (types, plural) = (types.join(", "), if given.len() == 1 { "" } else { "s" });
            let what = format!("Illegal type{plural} {types} of argument{plural} of function {name}");
            return Err(Error::illegal_type(what).into());
        };
        let nullable = field.is_nullable()
            || !field.data_type().is_nested() && given.iter().any(|field| field.is_nullable());
        Ok(Arc::new(field.with_name(name).with_nullable(nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_slices(args, |args| self.answer(args))
    }
}

impl ValueFunction {
    fn answer(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = rows(&args.args, args.number_rows);
        if args.return_field.data_type().is_null() {
            return shaped(new_null_array(&DataType::Null, rows), &args.args);
        }
        let arrays = args.args.iter().map(|given| expanded(given, rows)).collect::<Result<Vec<_>>>()?;
        let answer = (self.function.answer)(&arrays, &args.return_field)?;
        if self.name() == TAKES_NULL {
            return shaped(answer, &args.args);
        }
        let nulls = arrays
            .iter()
            .fold(None, |nulls, array| NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref()));
        let answer = match nulls {
            // ClickHouse has no NULL in place of an array; what it returns differs from function to function.
            Some(nulls) if nulls.null_count() > 0 && answer.data_type().is_nested() => {
                return Err(Error::bad_arguments(format!(
                    "Illegal (null) value of an argument of function {}: an array cannot be NULL; give the argument \
                     another value, as with ifNull",
                    self.name()
                ))
                .into());
            }
            Some(nulls) if nulls.null_count() > 0 => {
                nullif(&answer, &BooleanArray::new(!nulls.inner(), None))?
            }
            _ => answer,
        };
        shaped(answer, &args.args)
    }
}

/// An argument of the NULL type gets the Nullable type of another one.
fn typed(field: &FieldRef, known: &FieldRef) -> FieldRef {
    match field.data_type().is_null() {
        true => Arc::new(known.as_ref().clone().with_nullable(true)),
        false => Arc::clone(field),
    }
}
