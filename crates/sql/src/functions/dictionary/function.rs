//! The functions: a batch of keys in, one call of the dictionary, columns out.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, StructArray, UInt32Array, make_array, new_null_array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{filter, not, nullif, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dialect::Error;
use granary_dialect::functions::arguments::{self, constants, wrong_count};
use granary_dialect::functions::constant_text;
use granary_dialect::functions::{rows, shaped};
use granary_dialect::rewrite::CONSTANT_SUFFIX;
use granary_dict::{Answer, Dictionary};

use super::call::{Call, Shape};
use super::converted::{converted, converted_or_null};
use super::keys::{Keys, keys};
use crate::catalogue::Catalogue;

/// What to answer where the source does not have a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// The attribute's DEFAULT.
    Get,
    /// The last argument.
    GetOrDefault,
    /// NULL.
    GetOrNull,
    /// Whether the source has the key.
    Has,
}

impl FunctionKind {
    /// Place of the key among the arguments.
    fn key(self) -> usize {
        if self == FunctionKind::Has { 1 } else { 2 }
    }

    /// The number of arguments of a call.
    fn arguments(self, call: &Call) -> usize {
        self.key() + call.key_argument_count() + usize::from(self == FunctionKind::GetOrDefault)
    }

    /// Places of the arguments that are looked up.
    fn key_arguments(self, call: &Call) -> Range<usize> {
        self.key()..self.key() + call.key_argument_count()
    }
}

/// One function of the family.
#[derive(Debug)]
pub struct DictionaryFunction {
    name: String,
    kind: FunctionKind,
    demanded: Option<&'static str>,
    catalogue: Arc<Catalogue>,
    signature: Signature,
}

impl PartialEq for DictionaryFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.catalogue, &other.catalogue)
    }
}

impl Eq for DictionaryFunction {}

impl Hash for DictionaryFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl DictionaryFunction {
    pub fn new(
        name: String,
        kind: FunctionKind,
        demanded: Option<&'static str>,
        volatility: Volatility,
        catalogue: Arc<Catalogue>,
    ) -> Self {
        Self { name, kind, demanded, catalogue, signature: arguments::any(volatility) }
    }

    /// The name as written in the query.
    fn shown(&self) -> &str {
        self.name.trim_end_matches(CONSTANT_SUFFIX)
    }

    fn resolve(&self, constants: &[Option<&ScalarValue>]) -> Result<Call> {
        let shown = self.shown();
        // Whether there are further arguments depends on the dictionary.
        let least = self.kind.key() + 1;
        if constants.len() < least {
            return Err(wrong_count(shown, constants.len(), least).into());
        }
        let dictionary = constant(constants, 0, "the dictionary's name", shown)?;
        let attributes = match self.kind {
            FunctionKind::Has => None,
            _ => Some(constant(constants, 1, "the attribute's name", shown)?),
        };
        let call = Call::resolve(&self.catalogue, dictionary, attributes, self.demanded, shown)?;
        check_count(&call, self.kind, constants.len(), shown)?;
        if call.is_of_texts() && matches!(self.kind, FunctionKind::Has | FunctionKind::GetOrNull) {
            let what = "Dictionary RegExpTree does not support method `hasKeys`";
            return Err(Error::unsupported_method(what).into());
        }
        Ok(call)
    }
}

/// Refuses a number of arguments other than the dictionary's layout wants.
pub(super) fn check_count(
    call: &Call,
    kind: FunctionKind,
    given: usize,
    function: &str,
) -> Result<(), Error> {
    match kind.arguments(call) {
        wanted if wanted == given => Ok(()),
        wanted => Err(wrong_count(function, given, wanted)),
    }
}

/// The dictionary and the attributes that the first two arguments name.
pub(super) fn call_of(
    catalogue: &Catalogue,
    constants: &[Option<&ScalarValue>],
    function: &str,
) -> Result<Call> {
    let dictionary = constant(constants, 0, "the dictionary's name", function)?;
    let attributes = constant(constants, 1, "the attribute's name", function)?;
    Ok(Call::resolve(catalogue, dictionary, Some(attributes), None, function)?)
}

/// The text of an argument that must be a constant.
pub(super) fn constant<'a>(
    constants: &[Option<&'a ScalarValue>],
    place: usize,
    what: &str,
    function: &str,
) -> Result<&'a str, Error> {
    constant_text(constants[place]).ok_or_else(|| {
        Error::illegal_type(format!(
            "Argument {} of function {function} must be a constant string: {what}",
            place + 1
        ))
    })
}

impl ScalarUDFImpl for DictionaryFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("the type of {} needs its constant arguments", self.shown())))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let call = self.resolve(args.scalar_arguments)?;
        if self.kind == FunctionKind::GetOrDefault {
            let default = args.arg_fields.len() - 1;
            check_default(&call, &args.arg_fields[default])?;
            // Seen here, too: `IS NULL` of a call that is not Nullable is not computed.
            let is_null = args.scalar_arguments[default].is_some_and(ScalarValue::is_null);
            if self.demanded.is_some() && is_null {
                check_known(self.shown(), &args.arg_fields[default])?;
            }
        }
        let key_arguments = &args.arg_fields[self.kind.key_arguments(&call)];
        call.check_nullable(self.kind, key_arguments)?;
        Ok(self.field(&call, key_arguments))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = self.resolve(&constants(&args.args))?;
        let (place, key_arguments) = (self.kind.key(), self.kind.key_arguments(&call));
        if self.demanded.is_none()
            && self.kind != FunctionKind::Has
            && !call.is_as_planned(&args.return_field)
        {
            return Err(replaced(&call.dictionary));
        }
        if self.kind == FunctionKind::GetOrDefault && self.demanded.is_some() {
            check_known(self.shown(), &args.arg_fields[key_arguments.end])?;
        }
        let rows = rows(&args.args[place..], args.number_rows);
        call.check_key(self.shown(), &args.args[place])?;
        let keys =
            keys(&call, &args.arg_fields[key_arguments.clone()], &args.args[key_arguments.clone()], rows)?;
        let answer = look_up(&call, keys)?;
        let array: ArrayRef = match self.kind {
            FunctionKind::Has => with_nulls(Arc::new(answer.found), &answer.nulls)?,
            _ => {
                let default = match self.kind {
                    FunctionKind::GetOrDefault => Some((
                        &args.arg_fields[key_arguments.end],
                        args.args[key_arguments.end].to_array(rows)?,
                    )),
                    _ => None,
                };
                self.columns(&call, answer, default, &args.return_field)?
            }
        };
        shaped(of_moments(array, &args.return_field)?, &args.args[place..])
    }
}

/// The error of a query that was planned for another dictionary of this name.
pub(super) fn replaced(dictionary: &Dictionary) -> DataFusionError {
    let name = dictionary.definition().full_name();
    Error::table_is_dropped(format!("Dictionary {name} was replaced while the query ran: run it again"))
        .into()
}

/// The field of the answer of a function that names its type, such as `dictGetDateTime`: times have no zone.
pub(super) fn without_zone(field: FieldRef) -> FieldRef {
    match field.data_type() {
        DataType::Timestamp(TimeUnit::Second, Some(_)) => {
            let moment = DataType::Timestamp(TimeUnit::Second, None);
            Arc::new(Field::new(field.name(), moment, field.is_nullable()))
        }
        _ => field,
    }
}

/// Times without their zone, if the answer's field has none.
pub(super) fn of_moments(array: ArrayRef, answer: &Field) -> Result<ArrayRef> {
    Ok(match (array.data_type(), answer.data_type()) {
        (DataType::Timestamp(_, Some(_)), moment @ DataType::Timestamp(_, None)) => {
            make_array(array.to_data().into_builder().data_type(moment.clone()).build()?)
        }
        _ => array,
    })
}

/// The answer for all rows of a batch, including those with a NULL key.
pub(super) struct LookedUpRows {
    pub columns: Vec<ArrayRef>,
    pub found: BooleanArray,
    /// By column, which rows have its value; empty if `found` holds for all columns.
    found_each: Vec<BooleanArray>,
    pub nulls: Option<NullBuffer>,
}

impl LookedUpRows {
    /// Which rows have the attribute asked for at `place`.
    fn found_at(&self, place: usize) -> &BooleanArray {
        self.found_each.get(place).unwrap_or(&self.found)
    }
}

/// Looks up the keys that are not NULL, and puts the answers at the batch's rows.
pub(super) fn look_up(call: &Call, keys: Keys) -> Result<LookedUpRows> {
    let get = |columns: &[ArrayRef]| -> Result<Answer> {
        if call.attributes.is_empty() {
            let found = call.dictionary.has(columns).map_err(Error::from)?;
            return Ok(Answer { columns: Vec::new(), found, found_each: Vec::new() });
        }
        Ok(call.dictionary.get(&call.attributes, columns).map_err(Error::from)?)
    };
    let Some(nulls) = keys.nulls else {
        let Answer { columns, found, found_each } = get(&keys.columns)?;
        return Ok(LookedUpRows { columns, found, found_each, nulls: None });
    };
    let valid = BooleanArray::new(nulls.inner().clone(), None);
    let present = keys.columns.iter().map(|column| filter(column, &valid)).collect::<Result<Vec<_>, _>>()?;
    let answer = get(&present)?;
    let mut next = 0;
    let places: UInt32Array = nulls
        .iter()
        .map(|valid| {
            valid.then(|| {
                next += 1;
                next - 1
            })
        })
        .collect();
    let spread = |column: &dyn Array| take(column, &places, None);
    let columns = answer.columns.iter().map(spread_ref(&spread)).collect::<Result<Vec<_>, _>>()?;
    let spread_found = |found: &BooleanArray| -> Result<BooleanArray> {
        Ok(BooleanArray::new(spread(found)?.as_boolean().values().clone(), None))
    };
    let found = spread_found(&answer.found)?;
    let found_each = answer.found_each.iter().map(spread_found).collect::<Result<_>>()?;
    Ok(LookedUpRows { columns, found, found_each, nulls: Some(nulls) })
}

fn spread_ref<'a, E>(
    spread: &'a impl Fn(&dyn Array) -> Result<ArrayRef, E>,
) -> impl Fn(&ArrayRef) -> Result<ArrayRef, E> + 'a {
    |column| spread(column.as_ref())
}

pub(super) fn with_nulls(array: ArrayRef, nulls: &Option<NullBuffer>) -> Result<ArrayRef> {
    match nulls {
        None => Ok(array),
        Some(nulls) => Ok(nullif(&array, &BooleanArray::new(!nulls.inner(), None))?),
    }
}

impl DictionaryFunction {
    /// The field of the answer, given those of the key arguments.
    fn field(&self, call: &Call, key_arguments: &[FieldRef]) -> FieldRef {
        let field = call.field(self.shown(), self.kind, key_arguments);
        if self.demanded.is_some() { without_zone(field) } else { field }
    }

    fn columns(
        &self,
        call: &Call,
        answer: LookedUpRows,
        default: Option<(&FieldRef, ArrayRef)>,
        field: &Field,
    ) -> Result<ArrayRef> {
        if let (FunctionKind::GetOrDefault, Some((default, values))) = (self.kind, default) {
            let columns = with_defaults(call, &answer, default, &values)?;
            return as_answer(call, columns, field, answer.found.len());
        }
        let mut columns = Vec::with_capacity(answer.columns.len());
        for column in &answer.columns {
            let column = match self.kind {
                FunctionKind::GetOrNull => nullif(column, &not(&answer.found)?)?,
                _ => Arc::clone(column),
            };
            columns.push(with_nulls(column, &answer.nulls)?);
        }
        as_answer(call, columns, field, answer.found.len())
    }
}

/// The columns of an answer with defaults where something was not found.
pub(super) fn with_defaults(
    call: &Call,
    answer: &LookedUpRows,
    field: &FieldRef,
    values: &ArrayRef,
) -> Result<Vec<ArrayRef>> {
    let column = |(place, column): (usize, &ArrayRef)| {
        // A default that the attribute cannot hold is an error even if no row needs it.
        let default = default_column(call, place, field, values)?;
        with_nulls(zip(answer.found_at(place), column, &default)?, &answer.nulls)
    };
    answer.columns.iter().enumerate().map(column).collect()
}

/// The attributes' columns as one answer: a tuple if several were asked for.
pub(super) fn as_answer(
    call: &Call,
    mut columns: Vec<ArrayRef>,
    field: &Field,
    rows: usize,
) -> Result<ArrayRef> {
    match (call.shape, field.data_type()) {
        (Shape::Tuple, DataType::Struct(fields)) => {
            Ok(Arc::new(StructArray::try_new(fields.clone(), columns, None)?))
        }
        _ => Ok(columns.pop().unwrap_or_else(|| new_null_array(&DataType::Null, rows))),
    }
}

/// The defaults of all attributes asked for.
pub(super) fn default_columns(call: &Call, field: &FieldRef, values: &ArrayRef) -> Result<Vec<ArrayRef>> {
    (0..call.attributes.len()).map(|place| default_column(call, place, field, values)).collect()
}

/// Refuses a default without one item for each of several attributes.
fn check_default(call: &Call, field: &Field) -> Result<()> {
    match (call.shape, field.data_type()) {
        (Shape::Single, _) => Ok(()),
        (Shape::Tuple, DataType::Struct(fields)) if fields.len() == call.attributes.len() => Ok(()),
        (Shape::Tuple, given) => {
            let attributes = call.attributes.len();
            let message = format!("The default must be a tuple of {attributes} items, as the attributes are");
            Err(match given {
                DataType::Null => Error::cannot_convert_type(message),
                given if given.is_string() => Error::cannot_parse_input(message),
                _ => Error::type_mismatch(message),
            }
            .into())
        }
    }
}

/// Refuses a default that may be NULL if the function's name gives the type: ClickHouse makes found values NULL, too.
fn check_known(function: &str, default: &Field) -> Result<()> {
    match default.is_nullable() {
        true => Err(Error::not_implemented(format!(
            "Function {function} takes no default here that may be NULL: ifNull(default, ..) says what stands for it"
        ))
        .into()),
        false => Ok(()),
    }
}

/// The default of one attribute: the argument itself, or an item of it when several attributes were asked for.
fn default_column(call: &Call, place: usize, field: &FieldRef, values: &ArrayRef) -> Result<ArrayRef> {
    if call.shape == Shape::Single {
        return default_of(call, place, field, values);
    }
    match (field.data_type(), values.as_any().downcast_ref::<StructArray>()) {
        (DataType::Struct(fields), Some(items)) => {
            default_of(call, place, &fields[place], items.column(place))
        }
        _ => Err(DataFusionError::Internal("a default that was not checked".into())),
    }
}

fn default_of(call: &Call, place: usize, field: &Field, values: &ArrayRef) -> Result<ArrayRef> {
    if !call.is_nullable(place) && values.logical_null_count() > 0 {
        return Err(Error::cannot_convert_type("Cannot convert NULL to a non-nullable type").into());
    }
    match call.is_nullable(place) {
        true => converted_or_null(field, values, &call.attribute(place)),
        false => converted(field, values, &call.attribute(place)),
    }
}
