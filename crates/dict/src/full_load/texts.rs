//! Dictionaries whose rows are found by texts: a text's values come from several rows.

use super::FullLoad;
use super::regexps::{Search, SearchColumns, ValueLimit};
use crate::answer::AnswerRows;
use crate::dictionary::Dictionary;
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup_key::LookupKey;
use crate::row::{Cells, Raw};
use crate::types::DataType;
use arrow::array::ArrayRef;
use std::time::Instant;

impl Dictionary {
    /// At most `most` values that texts get, in order of precedence, each attribute's in an array. Texts and attributes
    /// are given as to [`get`](Self::get).
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED` unless rows are found by texts, and the errors of [`get`](Self::get).
    pub fn get_all(
        &self,
        attributes: &[usize],
        keys: &[ArrayRef],
        most: usize,
    ) -> Result<Vec<ArrayRef>, DictError> {
        let started = Instant::now();
        let (Some(full_load), LookupKey::Text) =
            (self.core.access.storage.full_load(), self.definition.layout.lookup_key())
        else {
            let name = self.definition.full_name();
            let what = format!("Method getColumnAllValues is not supported for {name} dictionary");
            return Err(DictError::new(Code::NotImplemented, what));
        };
        let columns = full_load.search(self, attributes, keys, ValueLimit::Many(most), started)?;
        Ok(columns.into_iter().map(|(column, _)| column).collect())
    }
}

impl FullLoad {
    /// The first values that texts get.
    pub fn read_texts<'d>(
        &self,
        dictionary: &'d Dictionary,
        attributes: &[usize],
        keys: &[ArrayRef],
        started: Instant,
    ) -> Result<AnswerRows<'d>, DictError> {
        if attributes.is_empty() {
            let what = "Dictionary RegExpTree does not support method `hasKeys`";
            return Err(DictError::new(Code::UnsupportedMethod, what));
        }
        let columns = self.search(dictionary, attributes, keys, ValueLimit::One, started)?;
        Ok(AnswerRows::of_columns(columns))
    }

    fn search(
        &self,
        dictionary: &Dictionary,
        attributes: &[usize],
        keys: &[ArrayRef],
        most: ValueLimit,
        started: Instant,
    ) -> Result<SearchColumns, DictError> {
        let [texts] = keys else {
            let what = format!("The key has 1 column, not {}", keys.len());
            return Err(DictError::new(Code::TypeMismatch, what));
        };
        let cells = Cells::new(&DataType::String, texts)?;
        if texts.len() > limits::KEYS_PER_LOOKUP_MAX {
            return Err(dictionary.too_many_keys());
        }
        dictionary.core.note_use();
        let snapshot = self.rows(dictionary)?;
        let counters = &dictionary.core.access.counters;
        let regexps = snapshot.regexps().expect("the layout has them");
        let mut search = Search::new(regexps, attributes, most, texts.len());
        for row in 0..texts.len() {
            match cells.get(row) {
                Raw::Text(text) => search.push(std::str::from_utf8(text).map_err(|_| not_utf8())?)?,
                _ => search.push_nothing(),
            }
        }
        let columns = search.finish(attributes)?;
        // NULL is not looked up.
        let missed =
            |row: &usize| texts.is_valid(*row) && columns.iter().all(|(_, found)| !found.value(*row));
        let asked = texts.len() - texts.logical_null_count();
        counters.keys_requested.add(asked);
        counters.keys_hit.add(asked);
        counters.keys_negative.add((0..texts.len()).filter(missed).count());
        counters.lookups.add(started.elapsed());
        Ok(columns)
    }
}

fn not_utf8() -> DictError {
    DictError::new(Code::IncorrectData, "A text is not valid UTF-8")
}
