//! Rows of a dictionary by key, for joins: a function that finds rows, and one that takes a column out of them. Queries
//! cannot name them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{CastOptions, cast_with_options, not, nullif};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dialect::Error;
use granary_dialect::functions::{rows, shaped};
use granary_dict::Dictionary;

/// Finds rows: NULL where the key is NULL, or the source lacks it.
#[derive(Debug)]
pub struct RowLookup {
    dictionary: ShownDictionary,
    /// Places of the wanted columns in the dictionary's row, which begins with the key.
    places: Vec<usize>,
    row: Fields,
    signature: Signature,
}

/// A dictionary that can be shown and compared.
struct ShownDictionary(Arc<Dictionary>);

impl std::fmt::Debug for ShownDictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.definition().full_name())
    }
}

impl PartialEq for RowLookup {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.dictionary.0, &other.dictionary.0) && self.places == other.places
    }
}

impl Eq for RowLookup {}

impl Hash for RowLookup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.places.hash(state);
    }
}

impl RowLookup {
    /// Looks up the columns at these places, with their fields.
    pub fn new(dictionary: Arc<Dictionary>, places: Vec<usize>, fields: Vec<FieldRef>) -> Self {
        let row = fields.iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        // Volatile: it must not run during planning, nor again where its rows are filtered.
        let signature = Signature::variadic_any(Volatility::Volatile);
        Self { dictionary: ShownDictionary(dictionary), places, row, signature }
    }
}

impl ScalarUDFImpl for RowLookup {
    fn name(&self) -> &str {
        "dictionary_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(self.row.clone()))
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), DataType::Struct(self.row.clone()), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (dictionary, rows) = (&self.dictionary.0, rows(&args.args, args.number_rows));
        let columns = dictionary.definition().lookup_columns();
        // A value that does not fit the key's type is no key.
        let options = CastOptions { safe: true, ..CastOptions::default() };
        let key = |(argument, field): (&ColumnarValue, &Field)| -> Result<ArrayRef> {
            Ok(cast_with_options(&argument.to_array(rows)?, field.data_type(), &options)?)
        };
        let fields: Vec<Field> =
            columns.iter().map(|column| column.data_type.to_field(&column.name)).collect();
        let keys = args.args.iter().zip(&fields).map(key).collect::<Result<Vec<_>>>()?;
        let attributes: Vec<usize> =
            self.places.iter().filter_map(|place| place.checked_sub(keys.len())).collect();
        let answer = dictionary.get(&attributes, &keys).map_err(Error::from)?;
        let nulls = keys.iter().fold(None, |nulls, key| NullBuffer::union(nulls.as_ref(), key.nulls()));
        let found = match nulls {
            Some(nulls) => answer.found.values() & nulls.inner(),
            None => answer.found.values().clone(),
        };
        let lacking = not(&BooleanArray::new(found.clone(), None))?;
        let mut attributes = answer.columns.iter();
        let columns = self.places.iter().map(|place| {
            let column = keys.get(*place).or_else(|| attributes.next()).expect("a column for each place");
            Ok(nullif(column, &lacking)?)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let row = StructArray::try_new_with_length(self.row.clone(), columns, Some(found.into()), rows)?;
        shaped(Arc::new(row), &args.args)
    }
}

/// A column of the rows that were found.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ColumnOfRow {
    place: usize,
    field: FieldRef,
    signature: Signature,
}

impl ColumnOfRow {
    /// The column at `place` among those wanted, as `field`.
    pub fn new(place: usize, field: FieldRef) -> Self {
        Self { place, field, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ColumnOfRow {
    fn name(&self) -> &str {
        "column_of_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(args.number_rows)?;
        let Some(row) = array.as_struct_opt() else {
            return Err(DataFusionError::Internal("a row of a dictionary is a struct".to_owned()));
        };
        Ok(ColumnarValue::Array(Arc::clone(row.column(self.place))))
    }
}
