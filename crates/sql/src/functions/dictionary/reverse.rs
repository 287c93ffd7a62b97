//! `dictGetKeys`: the keys of the rows in which an attribute has a value, the inverse of `dictGet`.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, StructArray, UInt32Array, UInt64Array, new_empty_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat, kernels::cmp::distinct, nullif, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Float32Type, Float64Type};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dialect::Error;
use granary_dialect::functions::arguments::{self, constants, wrong_count};
use granary_dialect::functions::{check_bytes, rows, shaped};
use granary_dialect::rewrite::ATTRIBUTE_SEPARATOR;
use granary_dict::Dictionary;

use super::converted::converted;
use super::function::{constant, replaced};
use crate::catalogue::Catalogue;

pub const NAME: &str = "dictGetKeys";
/// Place of the value among the arguments, the last one.
const VALUE: usize = 2;

/// The function.
#[derive(Debug)]
pub struct GetKeysFunction {
    name: String,
    catalogue: Arc<Catalogue>,
    signature: Signature,
}

impl PartialEq for GetKeysFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.catalogue, &other.catalogue)
    }
}

impl Eq for GetKeysFunction {}

impl Hash for GetKeysFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl GetKeysFunction {
    pub fn new(name: String, volatility: Volatility, catalogue: Arc<Catalogue>) -> Self {
        Self { name, catalogue, signature: arguments::any(volatility) }
    }

    /// Checks a call's arguments against the dictionary.
    fn resolve(&self, constants: &[Option<&ScalarValue>]) -> Result<ReverseCall> {
        if constants.len() != VALUE + 1 {
            return Err(wrong_count(NAME, constants.len(), VALUE + 1).into());
        }
        let dictionary = constant(constants, 0, "the dictionary's name", NAME)?;
        let attribute = constant(constants, 1, "the attribute's name", NAME)?;
        if attribute.starts_with(ATTRIBUTE_SEPARATOR) {
            let what = format!("Illegal type of second argument of function {NAME}, expected one name");
            return Err(Error::illegal_type(what).into());
        }
        let dictionary = self.catalogue.dictionary_shown_as(dictionary)?;
        let definition = dictionary.definition();
        let Some(place) = definition.attribute_index(attribute) else {
            let what = format!("Dictionary {} has no attribute '{attribute}'", definition.full_name());
            return Err(Error::illegal_column(what).into());
        };
        let attribute = definition.attribute(place);
        let attribute = attribute.data_type.to_field(&attribute.name);
        let keys = definition.rows().key_fields();
        Ok(ReverseCall { dictionary, attribute, keys })
    }
}

/// A call's dictionary, attribute and key columns.
struct ReverseCall {
    dictionary: Arc<Dictionary>,
    attribute: Field,
    keys: Vec<Field>,
}

impl ReverseCall {
    /// The field of the keys: a tuple if the key has several columns.
    fn key_field(&self) -> Field {
        if let [key] = self.keys.as_slice() {
            return key.clone().with_name("item");
        }
        let parts = self.keys.iter().enumerate().map(|(i, key)| key.clone().with_name((i + 1).to_string()));
        Field::new("item", DataType::Struct(Fields::from_iter(parts)), false)
    }
}

impl ScalarUDFImpl for GetKeysFunction {
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
        let asked = self.resolve(args.scalar_arguments)?;
        Ok(Arc::new(Field::new(NAME, DataType::List(Arc::new(asked.key_field())), false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let asked = self.resolve(&constants(&args.args))?;
        let answer = DataType::List(Arc::new(asked.key_field()));
        if !answer.equals_datatype(args.return_field.data_type()) {
            return Err(replaced(&asked.dictionary));
        }
        let value_arguments = &args.args[VALUE..];
        let values = value_arguments[0].to_array(rows(value_arguments, args.number_rows))?;
        let values = as_attribute(&args.arg_fields[VALUE], &values, &asked.attribute)?;
        let mut wanted = WantedValues::new(&values)?;
        wanted.look_through(&asked)?;
        shaped(wanted.answer(&asked.key_field())?, value_arguments)
    }
}

/// Converts the values to the attribute's type: decimals are cut, as elsewhere. A UInt8 becomes a Bool unchanged; other
/// numbers than 0 and 1 become NULL, which is not found.
fn as_attribute(field: &FieldRef, values: &ArrayRef, attribute: &Field) -> Result<ArrayRef> {
    let made = converted(field, values, attribute)?;
    if made.data_type() != &DataType::Boolean || values.data_type() != &DataType::UInt8 {
        return comparable(&made);
    }
    let changed = distinct(&cast(&made, values.data_type())?, values)?;
    comparable(&nullif(&made, &changed)?)
}

/// The values, with equal ones made equal in bytes, and NaN, which equals nothing, made NULL.
fn comparable(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        // Adding 0 turns -0 into 0.
        DataType::Float32 => {
            let same = |number: f32| (!number.is_nan()).then_some(number + 0.0);
            Arc::new(values.as_primitive::<Float32Type>().unary_opt::<_, Float32Type>(same))
        }
        DataType::Float64 => {
            let same = |number: f64| (!number.is_nan()).then_some(number + 0.0);
            Arc::new(values.as_primitive::<Float64Type>().unary_opt::<_, Float64Type>(same))
        }
        _ => Arc::clone(values),
    })
}

/// The values asked for, and the keys found for each.
struct WantedValues {
    converter: RowConverter,
    data_type: DataType,
    /// Index of each different value.
    places: HashMap<OwnedRow, usize>,
    /// Index of the value, by row that asks; `None`: NULL.
    asked: Vec<Option<usize>>,
    /// Number of rows that ask, by value.
    askers: Vec<u64>,
    /// Keys found, by value: their positions in `keys`.
    found: Vec<Vec<u64>>,
    /// All keys found, in batches of key columns.
    keys: Vec<Vec<ArrayRef>>,
    count: u64,
    /// Size of the answer over all rows that ask: number of keys, and their bytes.
    items: usize,
    bytes: u64,
}

impl WantedValues {
    fn new(values: &ArrayRef) -> Result<WantedValues> {
        let data_type = values.data_type().clone();
        let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
        let mut places = HashMap::new();
        let encoded = converter.convert_columns(std::slice::from_ref(values))?;
        let nulls = values.logical_nulls();
        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let asked: Vec<Option<usize>> = (0..values.len())
            .map(|row| {
                let next = places.len();
                (!is_null(row)).then(|| *places.entry(encoded.row(row).owned()).or_insert(next))
            })
            .collect();
        let mut askers = vec![0; places.len()];
        asked.iter().flatten().for_each(|&value| askers[value] += 1);
        let found = vec![Vec::new(); places.len()];
        let keys = Vec::new();
        Ok(WantedValues {
            converter,
            data_type,
            places,
            asked,
            askers,
            found,
            keys,
            count: 0,
            items: 0,
            bytes: 0,
        })
    }

    /// Searches all rows that the dictionary has.
    ///
    /// # Errors
    /// MEMORY_LIMIT_EXCEEDED if the answer would be too large for one block.
    fn look_through(&mut self, asked: &ReverseCall) -> Result<()> {
        for batch in asked.dictionary.resident().map_err(Error::from)? {
            let batch = batch.map_err(Error::from)?;
            let values = &batch[asked.attribute.name().as_str()];
            let values = comparable(&cast(values, &self.data_type)?)?;
            let nulls = values.logical_nulls();
            let encoded = self.converter.convert_columns(&[values])?;
            let keys = &batch.columns()[..asked.keys.len()];
            let mut rows = Vec::new();
            for row in 0..batch.num_rows() {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    continue;
                }
                if let Some(&value) = self.places.get(&encoded.row(row).owned()) {
                    self.found[value].push(self.count);
                    self.count += 1;
                    rows.push(row as u32);
                    let bytes: u64 = keys.iter().map(|key| bytes_of(key, row).max(PLACE_BYTES)).sum();
                    self.items = self.items.saturating_add(self.askers[value] as usize);
                    self.bytes = self.bytes.saturating_add(bytes.saturating_mul(self.askers[value]));
                    check_bytes(self.bytes)?;
                }
            }
            let rows = UInt32Array::from(rows);
            self.keys.push(keys.iter().map(|key| take(key, &rows, None)).collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    /// The keys, by row that asks.
    fn answer(self, item: &Field) -> Result<ArrayRef> {
        let part = |at: usize| {
            let parts: Vec<&dyn Array> = self.keys.iter().map(|keys| keys[at].as_ref()).collect();
            concat(&parts)
        };
        let keys: ArrayRef = match item.data_type() {
            data_type if self.keys.is_empty() => new_empty_array(data_type),
            DataType::Struct(fields) => {
                let parts = (0..fields.len()).map(part).collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new(fields.clone(), parts, None)?)
            }
            _ => part(0)?,
        };
        let of_row = |value: &Option<usize>| value.map_or(&[][..], |value| self.found[value].as_slice());
        let lengths = self.asked.iter().map(|value| of_row(value).len());
        let offsets = OffsetBuffer::from_lengths(lengths);
        let mut places = Vec::with_capacity(self.items);
        self.asked.iter().for_each(|value| places.extend_from_slice(of_row(value)));
        let keys = take(&keys, &UInt64Array::from(places), None)?;
        Ok(Arc::new(ListArray::try_new(Arc::new(item.clone()), offsets, keys, None)?))
    }
}

/// Bytes of a key's position while an answer is made.
const PLACE_BYTES: u64 = size_of::<u64>() as u64;

/// The bytes that a value takes in an answer.
fn bytes_of(values: &ArrayRef, row: usize) -> u64 {
    const OFFSET_BYTES: u64 = size_of::<i32>() as u64;
    match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().value_length(row) as u64 + OFFSET_BYTES,
        DataType::List(_) => {
            // A slice of a list keeps the values of all rows.
            let items = values.as_list::<i32>().value(row);
            (0..items.len()).map(|item| bytes_of(&items, item)).sum::<u64>() + OFFSET_BYTES
        }
        DataType::Struct(_) => values.as_struct().columns().iter().map(|part| bytes_of(part, row)).sum(),
        data_type => match data_type.primitive_width() {
            Some(width) => width as u64,
            None => {
                values.slice(row, 1).to_data().get_slice_memory_size().map_or(u64::MAX, |bytes| bytes as u64)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Float64Array, StringArray};

    #[test]
    fn a_value_is_as_long_as_it_is_alone() {
        let list = |values: ArrayRef, lengths: &[usize]| -> ArrayRef {
            let item = Field::new_list_field(values.data_type().clone(), false);
            let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
            Arc::new(ListArray::new(Arc::new(item), offsets, values, None))
        };
        let numbers: ArrayRef = Arc::new(Float64Array::from_iter_values((0..3000).map(f64::from)));
        let points: ArrayRef = Arc::new(
            StructArray::try_from(vec![("x", Arc::clone(&numbers)), ("y", Arc::clone(&numbers))]).unwrap(),
        );
        let rings = list(points, &[4, 2990, 6]);
        let polygons = list(Arc::clone(&rings), &[1, 2]);
        assert_eq!([0, 1, 2].map(|row| bytes_of(&rings, row)), [4 * 16 + 4, 2990 * 16 + 4, 6 * 16 + 4]);
        assert_eq!(bytes_of(&polygons, 0), 4 * 16 + 8);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1000).as_str(), "four"]));
        assert_eq!(bytes_of(&texts, 1), 8);
        assert_eq!(bytes_of(&numbers, 0), 8);
    }
}
