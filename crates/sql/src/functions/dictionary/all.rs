//! `dictGetAll`: all values that a text gets from the regular expressions that match it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dialect::Error;
use granary_dialect::functions::arguments::{self, constants, wrong_count};
use granary_dialect::functions::{rows, shaped};

use super::call::{Call, Shape};
use super::function::{call_of, replaced};
use super::keys::keys;
use crate::catalogue::Catalogue;

pub const NAME: &str = "dictGetAll";
/// Places of the text among the arguments, and of the number of values wanted.
const KEY: usize = 2;
const MOST: usize = 3;

/// The function.
#[derive(Debug)]
pub struct GetAllFunction {
    name: String,
    catalogue: Arc<Catalogue>,
    signature: Signature,
}

impl PartialEq for GetAllFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.catalogue, &other.catalogue)
    }
}

impl Eq for GetAllFunction {}

impl Hash for GetAllFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl GetAllFunction {
    pub fn new(name: String, volatility: Volatility, catalogue: Arc<Catalogue>) -> Self {
        Self { name, catalogue, signature: arguments::any(volatility) }
    }

    /// Checks a call's arguments against the dictionary.
    fn resolve(&self, constants: &[Option<&ScalarValue>]) -> Result<Call> {
        if !(KEY + 1..=MOST + 1).contains(&constants.len()) {
            let wanted = constants.len().clamp(KEY + 1, MOST + 1);
            return Err(wrong_count(NAME, constants.len(), wanted).into());
        }
        let call = call_of(&self.catalogue, constants, NAME)?;
        if !call.is_of_texts() {
            let name = call.dictionary.definition().full_name();
            let what = format!("Method getColumnAllValues is not supported for {name} dictionary");
            return Err(Error::not_implemented(what).into());
        }
        Ok(call)
    }
}

/// The number of values wanted, known only when the call is made: a negative number is a large one, as in ClickHouse.
fn most(constants: &[Option<&ScalarValue>]) -> Result<usize> {
    let Some(given) = constants.get(MOST) else { return Ok(usize::MAX) };
    let Some(scalar) = given else {
        let what = format!("Argument at index {MOST} for function {NAME} must be constant");
        return Err(Error::illegal_column(what).into());
    };
    if scalar.is_null() {
        return Err(Error::bad_arguments(format!("The limit of function {NAME} is NULL")).into());
    }
    let wide = if scalar.data_type().is_unsigned_integer() { DataType::UInt64 } else { DataType::Int64 };
    if !scalar.data_type().is_integer() {
        let what = format!("The limit of function {NAME} must be an unsigned integer");
        return Err(Error::illegal_type(what).into());
    }
    Ok(match scalar.cast_to(&wide)? {
        ScalarValue::UInt64(Some(most)) => usize::try_from(most).unwrap_or(usize::MAX),
        ScalarValue::Int64(Some(most)) => usize::try_from(most).unwrap_or(usize::MAX),
        other => return Err(DataFusionError::Internal(format!("{other} is no limit"))),
    })
}

/// The field of an attribute's values.
fn values_field(call: &Call, place: usize) -> Field {
    let attribute = call.dictionary.definition().attribute(call.attributes[place]);
    granary_dict::DataType::Array(Box::new(attribute.data_type)).to_field(&attribute.name)
}

/// The field of the answer: a tuple if several attributes were asked for.
fn answer_field(call: &Call) -> Field {
    let mut fields = (0..call.attributes.len()).map(|place| values_field(call, place));
    match call.shape {
        Shape::Single => fields.next().unwrap_or_else(|| Field::new(NAME, DataType::Null, true)),
        Shape::Tuple => Field::new(NAME, DataType::Struct(fields.collect()), false),
    }
}

impl ScalarUDFImpl for GetAllFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("the type of {NAME} needs its constant arguments")))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(answer_field(&self.resolve(args.scalar_arguments)?)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constants = constants(&args.args);
        let (call, most) = (self.resolve(&constants)?, most(&constants)?);
        if !answer_field(&call).data_type().equals_datatype(args.return_field.data_type()) {
            return Err(replaced(&call.dictionary));
        }
        let key_arguments = KEY..KEY + 1;
        let rows = rows(&args.args[key_arguments.clone()], args.number_rows);
        let keys =
            keys(&call, &args.arg_fields[key_arguments.clone()], &args.args[key_arguments.clone()], rows)?;
        if keys.nulls.is_some() {
            let what = format!("Function {NAME} does not support nullable keys");
            return Err(Error::unsupported_method(what).into());
        }
        let found = call.dictionary.get_all(&call.attributes, &keys.columns, most);
        let mut columns = found.map_err(Error::from)?;
        let answer: ArrayRef = match (call.shape, args.return_field.data_type()) {
            (Shape::Tuple, DataType::Struct(fields)) => {
                Arc::new(StructArray::try_new(fields.clone(), columns, None)?)
            }
            _ => columns.swap_remove(0),
        };
        shaped(answer, &args.args[key_arguments])
    }
}
