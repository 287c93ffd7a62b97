//! A source's answer being built: key columns, then attributes, all of them nullable.

use super::BatchSink;
use crate::definition::Structure;
use crate::error::{Code, DictError, shown};
use crate::limits;
use crate::row::Column;
use crate::types::{DataType, Shape};
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use std::sync::Arc;

/// Names of columns that an error lists.
const NAMES_SHOWN: usize = 100;

/// Bytes of an item that is a text or an array, beside its content.
const ITEM_BYTES_MIN: usize = 8;

/// Returns an error unless so many further bytes of RAM may be taken.
pub(crate) type MemoryCheck = dyn Fn(usize) -> Result<(), DictError> + Send;

/// Columns of equal lengths, which the callers ensure.
pub(crate) struct Rows {
    names: Vec<String>,
    /// The types as declared; the columns themselves all take NULL.
    types: Vec<DataType>,
    columns: Vec<Column>,
    /// Columns of a text that stay empty because they are not wanted; none are if this is empty.
    skipped: Vec<bool>,
    /// How many of the columns, from the first, are of the key.
    key_width: usize,
    /// Rows that were read to their ends, those taken before included.
    ended: usize,
    /// A value that its column's type does not have is NULL, and no error.
    nulls_invalid: bool,
    /// Maximum bytes at once.
    bytes_max: u64,
    /// Asked while rows are read; `None`: `bytes_max` alone bounds them.
    memory: Option<Box<MemoryCheck>>,
    /// Bytes that `memory` was asked for.
    allowed: usize,
}

impl Rows {
    /// Empty columns for a structure's key and attributes.
    pub fn new(structure: &Structure) -> Rows {
        let keys = structure.key_columns().into_iter().map(|key| (key.name, key.data_type));
        let key_width = keys.len();
        Rows { key_width, ..Rows::of(keys.chain(attributes(structure))) }
    }

    /// Empty columns for the key alone.
    pub fn of_key(structure: &Structure) -> Rows {
        let keys = structure.key_columns().into_iter().map(|key| (key.name, key.data_type));
        Rows { key_width: keys.len(), ..Rows::of(keys) }
    }

    /// Empty columns for the attributes alone.
    pub fn of_attributes(structure: &Structure) -> Rows {
        Rows::of(attributes(structure))
    }

    fn of(columns: impl Iterator<Item = (String, DataType)>) -> Rows {
        let (names, types): (Vec<String>, Vec<DataType>) = columns.unzip();
        let columns = types.iter().map(|data_type| Column::new(&nullable(data_type.clone()))).collect();
        Rows {
            names,
            types,
            columns,
            skipped: Vec::new(),
            key_width: 0,
            ended: 0,
            nulls_invalid: false,
            bytes_max: limits::ANSWER_BYTES_MAX,
            memory: None,
            allowed: 0,
        }
    }

    /// Makes NULL of values that their column's type does not have.
    pub fn null_for_invalid(self) -> Rows {
        Rows { nulls_invalid: true, ..self }
    }

    /// Empty columns of these names and types.
    pub fn of_columns(columns: &[(String, DataType)]) -> Rows {
        Rows::of(columns.iter().cloned())
    }

    /// Empty columns of which only some are filled.
    pub fn of_some(columns: &[(String, DataType)], wanted: &[usize]) -> Rows {
        let skipped = (0..columns.len()).map(|column| !wanted.contains(&column)).collect();
        Rows { skipped, ..Rows::of_columns(columns) }
    }

    /// Whether a column is filled.
    pub fn is_wanted(&self, column: usize) -> bool {
        !self.skipped.get(column).is_some_and(|&skipped| skipped)
    }

    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// How many of the columns, from the first, are of the key.
    pub fn key_width(&self) -> usize {
        self.key_width
    }

    /// The error of rows that lack a column of the key; `names` are the columns that they have.
    pub fn missing_key<N: AsRef<str>>(&self, column: usize, mut names: impl Iterator<Item = N>) -> DictError {
        let first: Vec<N> = names.by_ref().take(NAMES_SHOWN).collect();
        let mut listed: Vec<&str> = first.iter().map(|name| shown(name.as_ref())).collect();
        listed.extend(names.next().map(|_| ".."));
        let key = self.name(column);
        DictError::parse_text(format!("Column {key} of the key is missing; there are {}", listed.join(", ")))
    }

    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    pub fn name(&self, column: usize) -> &str {
        &self.names[column]
    }

    /// The column that a name of a stream means: an exact match, else the only match ignoring case, as in ClickHouse.
    ///
    /// # Errors
    /// INCORRECT_DATA: several match.
    pub fn column_called(&self, name: &str) -> Result<Option<usize>, DictError> {
        if let Some(column) = self.names.iter().position(|ours| ours == name) {
            return Ok(Some(column));
        }
        let mut like = (0..self.names.len()).filter(|&column| self.name(column).eq_ignore_ascii_case(name));
        match (like.next(), like.next()) {
            (found, None) => Ok(found),
            _ => Err(DictError::new(Code::IncorrectData, format!("Ambiguous field ({name})"))),
        }
    }

    /// The type as declared.
    pub fn data_type(&self, column: usize) -> &DataType {
        &self.types[column]
    }

    pub fn column(&mut self, column: usize) -> &mut Column {
        &mut self.columns[column]
    }

    /// Adds a value in ClickHouse's text form; `None`: NULL.
    pub fn push_parsed(&mut self, column: usize, text: Option<&str>) -> Result<(), DictError> {
        self.push_by(column, text, Column::push_parsed)
    }

    /// Adds a field in ClickHouse's text form; `None` is NULL. NULL inside of an attribute's value, where the type of
    /// an item, an element, a key or a value has none, is the default of that type.
    pub fn push_null_as_default(&mut self, column: usize, text: Option<&str>) -> Result<(), DictError> {
        let is_key = column < self.key_width;
        self.push_by(column, text, if is_key { Column::push_parsed } else { Column::push_null_as_default })
    }

    /// Adds a field of a text format, where times are read as people write them.
    pub fn push_lenient(&mut self, column: usize, text: Option<&str>) -> Result<(), DictError> {
        self.push_by(column, text, Column::push_lenient)
    }

    fn push_by(
        &mut self,
        column: usize,
        text: Option<&str>,
        push: fn(&mut Column, &str) -> Result<(), DictError>,
    ) -> Result<(), DictError> {
        match text {
            None => self.columns[column].push_null(),
            Some(text) => {
                if text.len() >= limits::LONG_ROW_BYTES
                    && let Some(bytes_for_one) = bytes_for_one(&self.types[column])
                {
                    self.check_long(text.len(), bytes_for_one)?;
                }
                match push(&mut self.columns[column], text) {
                    Err(_) if self.nulls_invalid => self.columns[column].push_null(),
                    pushed => pushed.map_err(|e| self.within(column, e))?,
                }
            }
        }
        Ok(())
    }

    /// Adds a value that came as the bytes of its text.
    pub fn push_bytes(&mut self, column: usize, bytes: &[u8]) -> Result<(), DictError> {
        let text = self.text_of(column, bytes)?;
        self.push_parsed(column, text)
    }

    /// Adds a field of a text format that came as bytes.
    pub fn push_lenient_bytes(&mut self, column: usize, bytes: &[u8]) -> Result<(), DictError> {
        let text = self.text_of(column, bytes)?;
        self.push_lenient(column, text)
    }

    /// The text of bytes; `None`: they are no text, and are passed over.
    fn text_of<'a>(&self, column: usize, bytes: &'a [u8]) -> Result<Option<&'a str>, DictError> {
        match std::str::from_utf8(bytes) {
            Err(_) if !self.nulls_invalid => Err(self.not_utf8(column)),
            text => Ok(text.ok()),
        }
    }

    /// The error of a column whose bytes are no text.
    pub fn not_utf8(&self, column: usize) -> DictError {
        DictError::parse_text(format!("Column {} of the source is not valid UTF-8", self.names[column]))
    }

    /// An error, with the column it came up in.
    pub fn within(&self, column: usize, error: DictError) -> DictError {
        error.within(format_args!("Column {} of the source", self.names[column]))
    }

    /// Allows at most `bytes_max` bytes at once.
    pub fn at_most(self, bytes_max: u64) -> Rows {
        Rows { bytes_max, ..self }
    }

    /// Allows any number of bytes for which there is memory.
    pub fn within_memory(self, check: Box<MemoryCheck>) -> Rows {
        Rows { memory: Some(check), bytes_max: u64::MAX, ..self }
    }

    /// The bytes of all values.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum()
    }

    /// Refuses more bytes than an answer that is read whole may have, and more than a column can have. Pouring rows out
    /// begins the count anew.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED`.
    pub fn check_bytes(&self) -> Result<(), DictError> {
        match self.columns.iter().position(Column::has_overflowed) {
            None => self.check_answer(self.bytes()),
            Some(column) => {
                let name = self.name(column);
                let text =
                    format!("The source: column {name} of an answer has more than 2^31 bytes or items");
                Err(DictError::new(Code::LimitExceeded, text))
            }
        }
    }

    /// Refuses an answer of `bytes` bytes if that is more than one that is read whole may have.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED`.
    pub fn check_answer(&self, bytes: usize) -> Result<(), DictError> {
        match bytes as u64 > self.bytes_max {
            false => Ok(()),
            true => {
                let text = format!("The source: an answer of more than {} bytes", self.bytes_max);
                Err(DictError::new(Code::LimitExceeded, text))
            }
        }
    }

    /// Counts a row as read. Now and then the bytes are checked: what is absent from a row may take more than the row.
    ///
    /// # Errors
    /// The errors of [`check_growth`](Self::check_growth).
    #[inline]
    pub fn end_row(&mut self) -> Result<(), DictError> {
        self.ended += 1;
        match self.ended.is_multiple_of(limits::DECODED_ROWS) {
            true => self.check_growth(),
            false => Ok(()),
        }
    }

    /// Checks the bytes of all values, and whether there is memory for those that came since the last check.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED`, or the error of the check of memory.
    pub fn check_growth(&mut self) -> Result<(), DictError> {
        self.check_bytes()?;
        let bytes = self.bytes();
        // They are taken already, though memory that was looked at a moment ago may not have them yet.
        let grown = bytes.saturating_sub(std::mem::replace(&mut self.allowed, bytes));
        let grown = grown.min(limits::ROW_BYTES_MAX);
        self.memory.as_ref().map_or(Ok(()), |check| check(grown))
    }

    /// Checks whether there is memory for a row or a value that comes in `bytes` bytes, if these are many, where each
    /// of them may take [`bytes_for_one`].
    ///
    /// # Errors
    /// The errors of [`check_growth`](Self::check_growth).
    #[inline]
    pub fn check_long(&mut self, bytes: usize, bytes_for_one: usize) -> Result<(), DictError> {
        if bytes < limits::LONG_ROW_BYTES {
            return Ok(());
        }
        self.check_growth()?;
        self.memory.as_ref().map_or(Ok(()), |check| check(bytes_for_one.saturating_mul(bytes)))
    }

    /// Rows that were read to their ends.
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// The arrays of all columns so far; the next rows go into new ones.
    pub fn take(&mut self) -> Result<Vec<ArrayRef>, DictError> {
        self.allowed = 0;
        let new = self.types.iter().map(|data_type| Column::new(&nullable(data_type.clone()))).collect();
        std::mem::replace(&mut self.columns, new).into_iter().map(Column::finish).collect()
    }

    /// Hands over the rows so far, if there are any, and empties the columns.
    pub fn flush(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        match self.len() {
            0 => Ok(()),
            rows => sink(batch(self.take()?, rows)?),
        }
    }

    /// Pours, if there is enough for a batch of `RESIDENT_BATCH_ROWS` or of `RESIDENT_BATCH_BYTES`.
    pub fn flush_if_full(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        match self.len() >= limits::RESIDENT_BATCH_ROWS || self.bytes() >= limits::RESIDENT_BATCH_BYTES {
            true => self.flush(sink),
            false => Ok(()),
        }
    }

    /// The arrays of some columns.
    pub fn finish_columns(self, wanted: &[usize]) -> Result<Vec<ArrayRef>, DictError> {
        let mut columns: Vec<Option<Column>> = self.columns.into_iter().map(Some).collect();
        wanted
            .iter()
            .map(|&column| columns[column].take().expect("a column is wanted once").finish())
            .collect()
    }

    /// The batch, after `leading` columns if those are given (the keys of a source that does not repeat them).
    pub fn finish(self, leading: &[ArrayRef]) -> Result<RecordBatch, DictError> {
        let rows = leading.first().map_or(self.len(), |array| array.len());
        let mut arrays = leading.to_vec();
        for column in self.columns {
            arrays.push(column.finish()?);
        }
        batch(arrays, rows)
    }
}

/// The arrays as a batch of `rows` rows.
pub(super) fn batch(arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, DictError> {
    let fields: Vec<Field> = arrays
        .iter()
        .enumerate()
        .map(|(i, array)| Field::new(format!("c{i}"), array.data_type().clone(), true))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|e| DictError::new(Code::IncorrectData, e.to_string()))
}

/// Bytes that an array, a map or a tuple may take for each byte that it comes in; `None`: it is none of these. An item
/// that is NULL comes in one; in a text, an item comes in two, and is copied once.
pub(super) fn bytes_for_one(data_type: &DataType) -> Option<usize> {
    fn widest(data_type: &DataType) -> usize {
        match data_type.shape() {
            Shape::Fixed(width) => width,
            Shape::Bit => 1,
            Shape::Text => ITEM_BYTES_MIN,
            Shape::List => widest(data_type.item()).max(ITEM_BYTES_MIN),
            Shape::Tuple => data_type.elements().iter().map(|it| widest(&it.data_type)).max().unwrap_or(0),
        }
    }
    data_type.is_composite().then(|| widest(data_type))
}

fn attributes(structure: &Structure) -> impl Iterator<Item = (String, DataType)> {
    structure.attributes.iter().map(|attribute| (attribute.name.clone(), attribute.data_type.clone()))
}

fn nullable(data_type: DataType) -> DataType {
    match data_type {
        DataType::Nullable(_) => data_type,
        plain => DataType::Nullable(Box::new(plain)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_so_many_bytes() {
        let types = ["UInt64", "Nullable(String)", "Array(UInt32)", "Array(Tuple(UInt8, String))", "Bool"];
        for (text, data_type) in ["7", "seven", "[1,2,3]", "[(1,'seven')]", "true"].into_iter().zip(types) {
            let mut rows =
                Rows::of_columns(&[("v".into(), DataType::parse(data_type).unwrap())]).at_most(1000);
            let mut count = 0;
            while rows.check_bytes().is_ok() {
                rows.push_parsed(0, Some(text)).unwrap();
                count += 1;
            }
            assert!((50..=8010).contains(&count), "{count} of {data_type}");
            rows.take().unwrap();
            assert!(rows.check_bytes().is_ok(), "poured out");
        }
    }

    #[test]
    fn a_column_has_so_many_items() {
        let mut rows = Rows::of_columns(&[("v".into(), DataType::parse("Array(UInt8)").unwrap())]);
        rows.column(0).end_list_at(i32::MAX as usize);
        rows.check_bytes().unwrap();
        rows.column(0).end_list_at(i32::MAX as usize + 1);
        assert!(rows.check_bytes().unwrap_err().message().contains("column v"));
    }

    #[test]
    fn rows_are_handed_over_by_their_bytes_too() {
        let mut rows = Rows::of_columns(&[("v".into(), DataType::String)]);
        let (text, mut batches) = ("x".repeat(1 << 20), Vec::new());
        for _ in 0..10 {
            rows.push_parsed(0, Some(&text)).unwrap();
            rows.flush_if_full(&mut |batch| {
                batches.push(batch.num_rows());
                Ok(())
            })
            .unwrap();
        }
        assert_eq!((batches, rows.len()), (vec![4, 4], 2));
    }
}
