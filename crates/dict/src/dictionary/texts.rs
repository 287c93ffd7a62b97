//! Dictionaries whose rows are found by texts: what a text gets comes of several rows.

use super::Dictionary;
use crate::answer::AnswerRows;
use crate::error::{Code, DictError};
use crate::limits;
use crate::row::{Cells, Raw};
use crate::sought::Sought;
use crate::types::DataType;
use crate::whole::{Most, Search, SearchColumns, Whole};
use arrow::array::ArrayRef;
use std::time::Instant;

impl Dictionary {
    /// The first values that texts get.
    pub(super) fn read_texts(
        &self,
        whole: &Whole,
        attributes: &[usize],
        keys: &[ArrayRef],
        started: Instant,
    ) -> Result<AnswerRows<'_>, DictError> {
        if attributes.is_empty() {
            let what = "Dictionary RegExpTree does not support method `hasKeys`";
            return Err(DictError::new(Code::UnsupportedMethod, what));
        }
        let columns = self.search(whole, attributes, keys, Most::One, started)?;
        Ok(AnswerRows::of_columns(columns))
    }

    /// All values that texts get, each attribute's in an array, but no more than `most`: those that count first come
    /// first. Texts and attributes are those of [`get`](Self::get).
    ///
    /// # Errors
    /// `NOT_IMPLEMENTED` unless rows are found by texts, and those of [`get`](Self::get).
    pub fn get_all(
        &self,
        attributes: &[usize],
        keys: &[ArrayRef],
        most: usize,
    ) -> Result<Vec<ArrayRef>, DictError> {
        let started = Instant::now();
        let (Some(whole), Sought::Text) = (self.core.loader.kept.whole(), self.definition.layout.sought())
        else {
            let name = self.definition.full_name();
            let what = format!("Method getColumnAllValues is not supported for {name} dictionary");
            return Err(DictError::new(Code::NotImplemented, what));
        };
        let columns = self.search(whole, attributes, keys, Most::Many(most), started)?;
        Ok(columns.into_iter().map(|(column, _)| column).collect())
    }

    fn search(
        &self,
        whole: &Whole,
        attributes: &[usize],
        keys: &[ArrayRef],
        most: Most,
        started: Instant,
    ) -> Result<SearchColumns, DictError> {
        let [texts] = keys else {
            let what = format!("The key has 1 column, not {}", keys.len());
            return Err(DictError::new(Code::TypeMismatch, what));
        };
        let cells = Cells::new(&DataType::String, texts)?;
        if texts.len() > limits::KEYS_PER_LOOKUP_MAX {
            return Err(self.too_many_keys());
        }
        self.core.note_use();
        let held = self.held(whole)?;
        let counters = &self.core.loader.counters;
        let regexps = held.regexps().expect("the layout has them");
        let mut search = Search::new(regexps, attributes, most, texts.len());
        for row in 0..texts.len() {
            match cells.get(row) {
                Raw::Text(text) => search.push(std::str::from_utf8(text).map_err(|_| not_utf8())?)?,
                _ => search.push_nothing(),
            }
        }
        let columns = search.finish(attributes)?;
        // NULL is no text that anything is asked for.
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
