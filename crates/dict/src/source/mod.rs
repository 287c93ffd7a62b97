//! Where rows come from: blocking clients behind one small trait that speaks Arrow.

mod batch;
mod clickhouse;
mod config;
mod executable;
#[cfg(feature = "executable-pool")]
mod executable_pool;
mod file;
mod float_keys;
mod format;
mod http;
mod kind;
mod literals;
mod lost_connection;
#[cfg(feature = "mongodb")]
mod mongodb;
mod mysql;
#[cfg(feature = "full-load")]
mod null;
mod postgres;
mod process;
mod redis;
mod replicas;
mod rows;
mod select;
mod server;
mod settings;
mod sql;
mod sqlite;
mod text;
mod tls;
mod update_stamp;
mod web;
#[cfg(feature = "full-load")]
mod yaml;

pub(crate) use config::CURRENT_DATABASE;
pub use config::SourceConfig;
pub use format::RowReader;
pub use format::names::Format;
pub(crate) use kind::factory;
pub(crate) use select::Updates;
pub use text::{Field, FieldSink, TextFormat};
#[cfg(feature = "full-load")]
pub(crate) use yaml::Yaml;

use crate::config::{Parameter, Printed};
use crate::error::DictError;
use arrow::array::{ArrayRef, RecordBatch};
use std::sync::Arc;

/// The parameter of sources that are a file; `Environment::resolve` resolves it.
const PATH: &[Parameter] = &[Parameter::text("PATH").required().printed(Printed::Always)];

/// A connection to a source. One thread uses it at a time; after an error it is dropped and made anew.
pub trait Source: Send {
    /// The rows of these keys: an array for each key column, at most `limits::KEYS_PER_REQUEST_MAX` keys, no
    /// key twice. The answer's columns are the key columns and then all attributes, in the structure's order
    /// and Arrow types, any of them nullable. Keys that are not there are left out; order is free; of rows
    /// with the same key the last counts; rows of other keys are ignored.
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError>;

    /// Hands every row over, in the same columns, in batches of at most `limits::RESIDENT_BATCH_ROWS` rows as far as
    /// the source allows that. Its connection is not used again.
    ///
    /// # Errors
    /// The source's own, or that of `sink`, after which it is not called again.
    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError>;

    /// How far changes have come (UPDATE_FIELD); those before the watermark are known.
    fn newest_change(&mut self, _watermark: Option<&str>) -> Result<NewestChange, DictError> {
        Err(sql::no_updates())
    }

    /// The keys of rows that were changed since a watermark.
    fn changes(&mut self, _watermark: &str) -> Result<Changes, DictError> {
        Err(sql::no_updates())
    }
}

/// Takes the batches of [`Source::load_all`]; its error ends them.
pub type BatchSink<'a> = dyn FnMut(RecordBatch) -> Result<(), DictError> + 'a;

/// The end of the changes in a source; texts, as the source writes and reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewestChange {
    /// The greatest value of UPDATE_FIELD; `None`: there are no rows.
    pub latest: Option<String>,
    /// How many rows the watermark includes.
    pub count: Option<String>,
    /// The next watermark from which changes are to be looked for: the latest, less the lag.
    pub next: Option<String>,
    /// When the latest was, in Unix seconds, if it is a time.
    pub at: Option<i64>,
    /// For how long other rows may get the same value as the latest: a date is one for a whole day.
    pub unit_seconds: u64,
}

impl NewestChange {
    /// The answer if no row is as late as the watermark.
    pub(crate) fn behind() -> NewestChange {
        NewestChange { count: Some("0".to_string()), ..NewestChange::default() }
    }

    /// Whether no row is as late as the watermark any more.
    pub(crate) fn is_behind(&self) -> bool {
        self.count.as_deref() == Some("0")
    }
}

/// What was changed.
#[derive(Clone, Debug)]
pub enum Changes {
    /// Rows of these keys, an array for each key column; some may be gone.
    Keys(Vec<ArrayRef>),
    /// More than `limits::CHANGES_MAX` rows.
    TooMany,
}

/// Makes a `Source` for each thread that needs one.
pub type SourceFactory = Arc<dyn Fn() -> Result<Box<dyn Source>, DictError> + Send + Sync>;
