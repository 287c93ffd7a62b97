//! Maps: `map(key, value, ..)`, `mapKeys`, `mapValues`, `mapContains`. The value of a key is `map[key]`, like an
//! array's element.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt8Array, new_empty_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::arguments;
use super::array::{are_comparable, coerced, common_metadata, interleaved, places_of};
use super::default_value::default_value;
use super::numbers::{expanded, rows, shaped};
use crate::error::Error;
use crate::types::plain_name;

/// Operations on maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MapAction {
    /// Makes a map of keys and values.
    Make,
    /// The keys, as an array.
    Keys,
    /// The values, as an array.
    Values,
    /// Whether a map has a key.
    Contains,
}

pub const ACTIONS: [MapAction; 4] =
    [MapAction::Make, MapAction::Keys, MapAction::Values, MapAction::Contains];

/// A function of maps.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct MapFunction {
    action: MapAction,
    signature: Signature,
    aliases: Vec<String>,
}

impl MapAction {
    pub fn name(self) -> &'static str {
        match self {
            // DataFusion's parser has plans of its own for calls of `map`.
            MapAction::Make => "mapOf",
            MapAction::Keys => "mapKeys",
            MapAction::Values => "mapValues",
            MapAction::Contains => "mapContains",
        }
    }

    /// The function's alias.
    pub fn alias(self) -> Option<&'static str> {
        (self == MapAction::Contains).then_some("mapContainsKey")
    }
}

impl MapFunction {
    pub fn new(action: MapAction) -> Self {
        let signature = match action {
            MapAction::Make => Signature::one_of(
                vec![TypeSignature::Nullary, TypeSignature::UserDefined],
                Volatility::Immutable,
            ),
            MapAction::Keys | MapAction::Values | MapAction::Contains => {
                arguments::any(Volatility::Immutable)
            }
        };
        let aliases = action.alias().map(str::to_owned).into_iter().collect();
        Self { action, signature, aliases }
    }

    fn no_map(&self, given: &DataType) -> Error {
        let (name, given) = (self.action.name(), plain_name(given));
        Error::illegal_type(format!(
            "Function {name} requires at least one argument of type Map, not {given}"
        ))
    }
}

impl ScalarUDFImpl for MapFunction {
    fn name(&self) -> &str {
        self.action.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let common = |first: usize| {
            let types: Vec<DataType> = arguments.iter().skip(first).step_by(2).cloned().collect();
            coerced(&types)
        };
        let pair = [common(0)?, common(1)?];
        Ok(pair.into_iter().cycle().take(arguments.len()).collect())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let fields: Vec<FieldRef> =
            arguments.iter().map(|given| Arc::new(Field::new("", given.clone(), given.is_null()))).collect();
        self.typed(&fields)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let wanted = match self.action {
            MapAction::Make => 0..=usize::MAX,
            MapAction::Keys | MapAction::Values => 1..=1,
            MapAction::Contains => 2..=2,
        };
        arguments::check_count(self.action.name(), args.arg_fields.len(), wanted)?;
        Ok(Arc::new(Field::new(self.name(), self.typed(args.arg_fields)?, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = rows(&args.args, args.number_rows);
        let arrays = args.args.iter().map(|item| expanded(item, rows)).collect::<Result<Vec<_>>>()?;
        let result: ArrayRef = match (self.action, args.return_type(), arrays.as_slice()) {
            (MapAction::Make, DataType::Map(entry, _), parts) => make(entry, parts, rows)?,
            (MapAction::Contains, _, [map, key]) => contains(map.as_map(), key)?,
            (action, DataType::List(item), [map]) => {
                let map = map.as_map();
                let items = if action == MapAction::Keys { map.keys() } else { map.values() };
                let nulls = map.nulls().cloned();
                let lists =
                    ListArray::try_new(Arc::clone(item), map.offsets().clone(), Arc::clone(items), nulls);
                Arc::new(lists?)
            }
            _ => unreachable!("its arguments were looked at when it was planned"),
        };
        shaped(result, &args.args)
    }
}

impl MapFunction {
    fn typed(&self, arguments: &[FieldRef]) -> Result<DataType> {
        if self.action == MapAction::Make {
            return made_of(arguments);
        }
        let given = arguments[0].data_type();
        let (key, value) = entry(given).ok_or_else(|| self.no_map(given))?;
        let item = |field: &FieldRef| DataType::List(Arc::new(field.as_ref().clone().with_name("item")));
        Ok(match self.action {
            MapAction::Keys => item(key),
            MapAction::Values => item(value),
            _ if !are_comparable(key.data_type(), arguments[1].data_type()) => {
                let types = (plain_name(key.data_type()), plain_name(arguments[1].data_type()));
                let what = format!("There is no supertype for types {}, {} of a map's key", types.0, types.1);
                return Err(Error::no_common_type(what).into());
            }
            _ => DataType::UInt8,
        })
    }
}

/// The fields of a map's keys and values.
pub fn entry(map: &DataType) -> Option<(&FieldRef, &FieldRef)> {
    match map {
        DataType::Map(entry, _) => match entry.data_type() {
            DataType::Struct(fields) => Some((fields.first()?, fields.get(1)?)),
            _ => None,
        },
        _ => None,
    }
}

/// The type of a map of these keys and values.
fn made_of(arguments: &[FieldRef]) -> Result<DataType> {
    let part = |name: &str, first: usize| {
        let parts: Vec<FieldRef> = arguments.iter().skip(first).step_by(2).cloned().collect();
        let data_type = parts.first().map_or(DataType::Null, |part| part.data_type().clone());
        let nullable = parts.iter().any(|part| part.is_nullable());
        Field::new(name, data_type, nullable).with_metadata(common_metadata(&parts))
    };
    // Many functions are declared Nullable without returning NULL: whether a key is NULL is checked at execution.
    let (key, value) = (part("key", 0).with_nullable(false), part("value", 1));
    if key.data_type().is_null() && !arguments.is_empty() {
        return Err(null_key().into());
    }
    let entry = Field::new("entries", DataType::Struct(Fields::from(vec![key, value])), false);
    Ok(DataType::Map(Arc::new(entry), false))
}

fn null_key() -> Error {
    Error::bad_arguments("Map cannot have a key that is NULL")
}

fn make(entry: &FieldRef, parts: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let DataType::Struct(fields) = entry.data_type() else { unreachable!("an entry is a struct") };
    let part = |first: usize| {
        let parts: Vec<ArrayRef> = parts.iter().skip(first).step_by(2).cloned().collect();
        if parts.is_empty() {
            Ok(new_empty_array(fields[first].data_type()))
        } else {
            interleaved(&parts, rows)
        }
    };
    let (keys, values) = (part(0)?, part(1)?);
    if keys.logical_null_count() > 0 {
        return Err(null_key().into());
    }
    let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    let ends = OffsetBuffer::from_repeated_length(parts.len() / 2, rows);
    Ok(Arc::new(MapArray::try_new(Arc::clone(entry), ends, entries, None, false)?))
}

/// Whether each map has its row's key.
pub fn contains(map: &MapArray, key: &ArrayRef) -> Result<ArrayRef> {
    let places = places_of(map.offsets(), map.keys(), key)?;
    Ok(Arc::new(UInt8Array::from_iter_values(places.into_iter().map(|place| u8::from(place.is_some())))))
}

/// The value of its row's key in each map: the first for a repeated key, the default for a missing one.
pub fn value(map: &MapArray, key: &ArrayRef) -> Result<ArrayRef> {
    let (_, field) = entry(map.data_type()).expect("a map has entries");
    let default = match field.is_nullable() {
        true => ScalarValue::try_new_null(field.data_type())?,
        false => default_value(field.data_type())?,
    };
    let default = default.to_array()?;
    let places: Vec<(usize, usize)> = places_of(map.offsets(), map.keys(), key)?
        .into_iter()
        .map(|place| place.map_or((1, 0), |place| (0, place)))
        .collect();
    let values = [map.values().as_ref(), default.as_ref()];
    Ok(datafusion::arrow::compute::interleave(&values, &places)?)
}
