//! SELECT * FROM a dictionary: what is in the cache, for DIRECT what is in the source, or all rows of the layouts
//! that hold them; a batch at a time.

mod answered;
mod cached;

use self::answered::Answered;
use self::cached::Cached;
use crate::config::UpdateSettings;
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::full_load::FullLoadRows;
use crate::lookup::{Pool, SourceAccess};
use crate::types::DataType;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, TimestampSecondArray, UInt32Array};
use arrow::datatypes::{Schema, SchemaRef};
use std::sync::Arc;

/// The column after the attributes that says when an entry was got from the source.
pub(crate) const UPDATED_AT: &str = "_updated_at";

/// Whether rows come with [`UPDATED_AT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// The structure's columns alone.
    Hidden,
    /// One more: Nullable(DateTime), NULL where entries never expire, as the time is unknown then.
    Shown,
}

impl Structure {
    /// The schema of rows with their times, or without. An attribute called `_updated_at` hides the times.
    pub fn schema_with(&self, times: Times) -> SchemaRef {
        match times == Times::Shown && self.shows_times() {
            false => self.schema(),
            true => {
                let mut fields = self.key_fields();
                fields.extend(self.attribute_fields());
                fields.push(time_type().to_field(UPDATED_AT));
                Arc::new(Schema::new(fields))
            }
        }
    }

    fn shows_times(&self) -> bool {
        self.attributes.iter().all(|attribute| attribute.name != UPDATED_AT)
            && self.key_columns().iter().all(|key| key.name != UPDATED_AT)
    }
}

fn time_type() -> DataType {
    DataType::Nullable(Box::new(DataType::DateTime { tz: None }))
}

/// The rows of a dictionary, in no order: batches of about [`RESIDENT_BATCH_ROWS`](crate::limits::RESIDENT_BATCH_ROWS)
/// rows, each made when it is asked for; none where there are no rows. An error is the last item. Rows that come or go
/// meanwhile may be there or not, and a renewed one may come twice.
pub struct Resident(Option<ResidentRows>);

enum ResidentRows {
    Cached(Cached),
    Answered(Answered),
    FullLoad(FullLoadRows),
}

impl Resident {
    pub(crate) fn of_cache(access: &Arc<SourceAccess>, columns: Columns) -> Resident {
        Resident(Some(ResidentRows::Cached(Cached::new(access, columns))))
    }

    pub(crate) fn of_full_load(rows: FullLoadRows) -> Resident {
        Resident(Some(ResidentRows::FullLoad(rows)))
    }

    /// Asks a source thread of `pool` to read everything.
    pub(crate) fn of_source(
        pool: &Pool,
        access: &Arc<SourceAccess>,
        update: &UpdateSettings,
        columns: Columns,
    ) -> Result<Resident, DictError> {
        Ok(Resident(Some(ResidentRows::Answered(Answered::ask(pool, access, update, columns)?))))
    }
}

impl Iterator for Resident {
    type Item = Result<RecordBatch, DictError>;

    /// Reads from the device, or waits for the source.
    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.0.as_mut()? {
            ResidentRows::Cached(rows) => rows.next_batch().transpose(),
            ResidentRows::Answered(rows) => rows.next_batch().transpose(),
            ResidentRows::FullLoad(rows) => rows.next_batch().transpose(),
        };
        if !matches!(batch, Some(Ok(_))) {
            self.0 = None;
        }
        batch
    }
}

/// The columns of rows.
#[derive(Clone)]
pub(crate) struct Columns {
    schema: SchemaRef,
    /// Whether the last one says when a row was got.
    shows_times: bool,
}

impl Columns {
    pub fn new(structure: &Structure, times: Times) -> Columns {
        let shows_times = times == Times::Shown && structure.shows_times();
        Columns { schema: structure.schema_with(times), shows_times }
    }

    /// The column of times for `rows` rows that were got together at `unix_seconds`, if it is shown.
    pub fn times(&self, unix_seconds: u64, rows: usize) -> Result<Option<ArrayRef>, DictError> {
        if !self.shows_times {
            return Ok(None);
        }
        let time = TimestampSecondArray::new_scalar(unix_seconds as i64).into_inner();
        let times = arrow::compute::take(&time, &UInt32Array::from(vec![0; rows]), None);
        times.map(Some).map_err(|e| DictError::new(Code::LimitExceeded, e.to_string()))
    }

    pub fn batch(&self, columns: Vec<ArrayRef>) -> Result<RecordBatch, DictError> {
        let options = RecordBatchOptions::new();
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|e| DictError::new(Code::IncorrectData, e.to_string()))
    }
}
