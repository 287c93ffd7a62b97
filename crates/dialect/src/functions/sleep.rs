//! `sleep(seconds)` and `sleepEachRow(seconds)`, for tests of concurrency.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dict::WaitLimit;

use super::arguments::{self, check_count};
use crate::error::Error;
use crate::limits::SLEEPERS_MAX;
use crate::plan::QuerySettings;
use crate::types::plain_name;

/// Whether a function sleeps for each block or each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sleeper {
    Block,
    Row,
}

/// Both functions.
pub const SLEEPERS: [Sleeper; 2] = [Sleeper::Block, Sleeper::Row];

impl Sleeper {
    pub fn name(self) -> &'static str {
        match self {
            Sleeper::Block => "sleep",
            Sleeper::Row => "sleepEachRow",
        }
    }
}

/// `sleep` or `sleepEachRow`. It is volatile, so that it does not sleep during planning.
#[derive(Debug)]
pub struct Sleep {
    sleeper: Sleeper,
    waiting: WaitLimit,
    signature: Signature,
}

impl PartialEq for Sleep {
    fn eq(&self, other: &Self) -> bool {
        self.sleeper == other.sleeper
    }
}

impl Eq for Sleep {}

impl Hash for Sleep {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sleeper.hash(state);
    }
}

impl Sleep {
    /// A function that sleeps by `waiting`.
    pub fn new(sleeper: Sleeper, waiting: WaitLimit) -> Self {
        Self { sleeper, waiting, signature: arguments::any(Volatility::Volatile) }
    }

    /// The time to sleep for a block, if it is allowed.
    fn length(&self, seconds: f64, rows: usize, most: u64) -> Result<Duration, Error> {
        let microseconds = seconds * 1e6;
        if !(0.0..=f64::from(u32::MAX)).contains(&microseconds) {
            return Err(Error::bad_arguments(
                "Cannot sleep infinite, very large or negative amount of time (not implemented)",
            ));
        }
        let once = Duration::from_micros(microseconds as u64);
        let (all, of_rows) = match self.sleeper {
            Sleeper::Block => (once, String::new()),
            Sleeper::Row => {
                let rows = u32::try_from(rows).unwrap_or(u32::MAX);
                (once.saturating_mul(rows), format!(" per block (of size {rows})"))
            }
        };
        if most > 0 && all > Duration::from_micros(most) {
            return Err(Error::too_slow(format!(
                "The maximum sleep time is {most} microseconds. Requested: {} microseconds{of_rows}",
                all.as_micros()
            )));
        }
        Ok(all)
    }
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &str {
        self.sleeper.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(if arguments[0].is_null() { DataType::Null } else { DataType::UInt8 })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 1..=1)?;
        let given = args.arg_fields[0].data_type();
        let of_time = given.is_unsigned_integer() || given.is_floating() || given.is_null();
        if !of_time {
            let message = format!(
                "A value of illegal type was provided as 1st argument 'seconds' to function '{}'. Expected: UInt* or \
                 Float*, got: {}",
                self.name(),
                plain_name(given)
            );
            return Err(Error::illegal_type(message).into());
        }
        let data_type = self.return_type(std::slice::from_ref(given))?;
        let nullable = data_type.is_null();
        Ok(Field::new(self.name(), data_type, nullable).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ColumnarValue::Scalar(seconds) = &args.args[0] else {
            let message = format!("The argument of function {} must be constant", self.name());
            return Err(Error::illegal_column(message).into());
        };
        if seconds.data_type().is_null() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Null));
        }
        let settings = args.config_options.extensions.get::<QuerySettings>();
        let most = settings.map_or(0, |settings| settings.function_sleep_max_microseconds_per_block);
        if let ScalarValue::Float64(Some(seconds)) = seconds.cast_to(&DataType::Float64)?
            && args.number_rows > 0
        {
            let length = self.length(seconds, args.number_rows, most)?;
            if self.waiting.wait(|| std::thread::sleep(length)).is_none() {
                let message = format!("{SLEEPERS_MAX} blocks of queries sleep already");
                return Err(Error::too_many_queries(message).into());
            }
        }
        Ok(ColumnarValue::Scalar(ScalarValue::UInt8(Some(0))))
    }
}
