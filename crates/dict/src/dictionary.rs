//! The dictionary: a cache in front of a source.

use crate::definition::Definition;
use crate::environment::Environment;
use crate::error::{Code, DictError};
use crate::status::Status;
use arrow::array::{ArrayRef, BooleanArray, RecordBatch};

/// What a lookup yields, in row order.
#[derive(Clone, Debug)]
pub struct Answer {
    /// One array for each attribute asked for; defaults where a key was not found.
    pub columns: Vec<ArrayRef>,
    /// Which rows' keys the source has.
    pub found: BooleanArray,
}

/// A cache dictionary. Dropping it is a clean stop: it is warm at the next open.
pub struct Dictionary {
    definition: Definition,
}

impl Dictionary {
    /// Opens the cache (warm, if its file is there and the dictionary is the same) and readies the source.
    pub fn open(definition: Definition, _environment: &Environment) -> Result<Dictionary, DictError> {
        definition.validate()?;
        Ok(Dictionary { definition })
    }

    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Looks up a batch: `keys` holds an array for each key column, of the key's Arrow types and of equal
    /// lengths; `attributes` are places in `structure.attributes`.
    pub fn get(&self, _attributes: &[usize], _keys: &[ArrayRef]) -> Result<Answer, DictError> {
        Err(DictError::new(Code::NotImplemented, "lookup"))
    }

    /// Which keys the source has.
    pub fn has(&self, keys: &[ArrayRef]) -> Result<BooleanArray, DictError> {
        self.get(&[], keys).map(|answer| answer.found)
    }

    /// Key columns, then attributes, of what is resident, found and fresh. DIRECT: everything the source has.
    pub fn resident(&self) -> Result<Vec<RecordBatch>, DictError> {
        Err(DictError::new(Code::NotImplemented, "resident"))
    }

    /// Forgets every entry, as SYSTEM RELOAD DICTIONARY does.
    pub fn reload(&self) -> Result<(), DictError> {
        Ok(())
    }

    pub fn status(&self) -> Status {
        Status::default()
    }

    /// DROP DICTIONARY: stops the source's threads now; the files go when the last user lets go.
    pub fn remove(&self) {}
}
