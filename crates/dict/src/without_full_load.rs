//! Stands in for the layouts that hold all rows in a program that is built without them: no dictionary has one.

use crate::answer::AnswerRows;
use crate::config::FullLoadLayout;
use crate::definition::Definition;
use crate::dictionary::Dictionary;
use crate::error::{DictError, built_without};
use crate::lookup::{Batch, Totals};
use crate::resident::Columns;
use crate::row::RowFormat;
use crate::status::FullLoadFigures;
use arrow::array::{ArrayRef, RecordBatch};
use std::sync::Arc;
use std::time::Instant;

pub(crate) enum FullLoad {}

pub(crate) enum FullLoadRows {}

impl FullLoad {
    /// # Errors
    /// `SUPPORT_IS_DISABLED`.
    pub fn new(
        _layout: FullLoadLayout,
        definition: &Definition,
        _format: &RowFormat,
        _totals: &Totals,
    ) -> Result<FullLoad, DictError> {
        Err(built_without("LAYOUT", definition.layout.name(), "full-load"))
    }

    pub fn figures(&self) -> FullLoadFigures {
        match *self {}
    }

    pub fn show(&self, _: &Dictionary, _: &mut Batch<'_>, _: &[u32]) -> Result<(), DictError> {
        match *self {}
    }

    pub fn read_texts<'d>(
        &self,
        _: &'d Dictionary,
        _: &[usize],
        _: &[ArrayRef],
        _: Instant,
    ) -> Result<AnswerRows<'d>, DictError> {
        match *self {}
    }

    pub fn resident(&self, _: &Dictionary, _: Columns) -> Result<FullLoadRows, DictError> {
        match *self {}
    }

    pub fn reload(&self, _: &Dictionary) -> Result<(), DictError> {
        match *self {}
    }

    pub fn watch_lifetime(&self, _: &Arc<Dictionary>) {
        match *self {}
    }
}

impl FullLoadRows {
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, DictError> {
        match *self {}
    }
}
