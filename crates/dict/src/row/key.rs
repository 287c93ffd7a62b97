//! Keys between Arrow and the cache.

use super::cells::Raw;
use super::{Cells, Column, value};
use crate::definition::{Definition, Key, Structure};
use crate::error::{Code, DictError};
use crate::lookup_key::LookupKey;
use crate::types::DataType;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::UInt64Type;

/// How a structure's keys are written.
#[derive(Debug)]
pub(crate) enum KeyFormat {
    Simple,
    Complex(Vec<DataType>),
}

/// The keys of a batch as bytes.
pub(crate) enum KeyBatch {
    /// Numbers of 8 bytes, shared with the Arrow array; their keys are shorter.
    Simple(Buffer),
    /// Key `i` ends at `ends[i]`.
    Complex { bytes: Vec<u8>, ends: Vec<usize> },
}

impl KeyFormat {
    pub fn new(structure: &Structure) -> KeyFormat {
        match &structure.key {
            Key::Simple { .. } => KeyFormat::Simple,
            Key::Complex(columns) => {
                KeyFormat::Complex(columns.iter().map(|c| c.data_type.clone()).collect())
            }
        }
    }

    /// The format of what the dictionary's lookups are given.
    pub fn of_lookup(definition: &Definition) -> KeyFormat {
        match definition.layout.lookup_key() {
            LookupKey::Key => KeyFormat::new(&definition.structure),
            LookupKey::KeyInRange | LookupKey::Address | LookupKey::Point | LookupKey::Text => {
                KeyFormat::Complex(definition.lookup_columns().into_iter().map(|c| c.data_type).collect())
            }
        }
    }

    pub fn data_types(&self) -> Vec<DataType> {
        match self {
            KeyFormat::Simple => vec![DataType::UInt64],
            KeyFormat::Complex(types) => types.clone(),
        }
    }

    /// Which rows have NULL where the key's type has none; no such key exists.
    pub fn impossible(&self, keys: &[ArrayRef]) -> Option<NullBuffer> {
        let types = self.data_types();
        let strict = keys.iter().zip(&types).filter(|(_, data_type)| !data_type.is_nullable());
        strict
            .fold(None, |nulls, (array, _)| NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref()))
    }

    /// Encodes a batch; the arrays are of the key's Arrow types and of equal lengths.
    pub fn encode(&self, keys: &[ArrayRef]) -> Result<KeyBatch, DictError> {
        let types = self.data_types();
        if keys.len() != types.len() {
            return Err(DictError::new(
                Code::TypeMismatch,
                format!("The key has {} columns, not {}", types.len(), keys.len()),
            ));
        }
        let rows = keys[0].len();
        if keys.iter().any(|array| array.len() != rows) {
            return Err(DictError::bad_arguments("The key's columns differ in length"));
        }
        let columns =
            types.iter().zip(keys).map(|(t, array)| Cells::new(t, array)).collect::<Result<Vec<_>, _>>()?;
        let KeyFormat::Complex(_) = self else {
            return Ok(KeyBatch::Simple(keys[0].as_primitive::<UInt64Type>().values().inner().clone()));
        };
        let (mut bytes, mut ends) = (Vec::with_capacity(rows * 16), Vec::with_capacity(rows));
        for row in 0..rows {
            for (data_type, cells) in types.iter().zip(&columns) {
                value::put(data_type, &cells.get(row), &mut bytes);
            }
            ends.push(bytes.len());
        }
        Ok(KeyBatch::Complex { bytes, ends })
    }

    /// Whether these bytes are a key of this format.
    pub fn is_whole(&self, key: &[u8]) -> bool {
        match self {
            // A number has one form, without trailing zero bytes except that of 0.
            KeyFormat::Simple => key.len() <= 8 && matches!(key, [0] | [.., 1..=255]),
            KeyFormat::Complex(types) => walk(types, key, |_, _| {}).is_some(),
        }
    }

    /// Appends a key that is whole to its columns.
    pub fn decode(&self, key: &[u8], columns: &mut [Column]) {
        let KeyFormat::Complex(types) = self else {
            columns[0].push_fixed(&key_number(key).to_le_bytes());
            return;
        };
        let walked = walk(types, key, |i, value| columns[i].push(value));
        debug_assert!(walked.is_some());
    }
}

/// Visits the values of a complex key; `None` if it is malformed, visited in part.
fn walk(types: &[DataType], key: &[u8], mut visit: impl FnMut(usize, Raw<'_>)) -> Option<()> {
    let mut at = 0;
    for (i, data_type) in types.iter().enumerate() {
        let (value, next) = value::take(data_type, key, at)?;
        visit(i, value);
        at = next;
    }
    (at == key.len()).then_some(())
}

/// The number of a simple key that is whole.
pub(crate) fn key_number(key: &[u8]) -> u64 {
    key.iter().rfold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The simple key of a number.
#[inline]
pub(crate) fn number_key(number: &[u8; 8]) -> &[u8] {
    // Most numbers have few significant bytes.
    let zeros = (u64::from_le_bytes(*number) | 1).leading_zeros() as usize / 8;
    &number[..8 - zeros]
}

impl KeyBatch {
    pub fn len(&self) -> usize {
        match self {
            KeyBatch::Simple(numbers) => numbers.len() / 8,
            KeyBatch::Complex { ends, .. } => ends.len(),
        }
    }

    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        match self {
            KeyBatch::Simple(numbers) => {
                let number = numbers[row * 8..].first_chunk().expect("a number has 8 bytes");
                number_key(number)
            }
            KeyBatch::Complex { bytes, ends } => {
                let start = if row == 0 { 0 } else { ends[row - 1] };
                &bytes[start..ends[row]]
            }
        }
    }
}
