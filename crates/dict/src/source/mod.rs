//! Where rows come from: blocking clients behind one small trait that speaks Arrow.

mod clickhouse;
mod executable;
mod executable_pool;
mod file;
mod format;
mod http;
mod literals;
mod mongodb;
mod mysql;
mod postgres;
mod process;
mod redis;
mod rows;
mod sql;
mod sqlite;
mod text;
mod tls;
mod web;
mod yaml;

pub use format::RowReader;
pub use text::{Field, FieldSink, TextFormat};
pub(crate) use yaml::Yaml;

use self::executable::CommandLine;
use crate::config::SourceConfig;
use crate::definition::Definition;
use crate::environment::Environment;
use crate::error::DictError;
use arrow::array::{ArrayRef, RecordBatch};
use std::sync::Arc;
use std::time::Duration;

/// A connection to a source. One thread uses it at a time; after an error it is dropped and made anew.
pub trait Source: Send {
    /// The rows of these keys: an array for each key column, at most `limits::KEYS_PER_REQUEST_MAX` keys, no
    /// key twice. The answer's columns are the key columns and then all attributes, in the structure's order
    /// and Arrow types, any of them nullable. Keys that are not there are left out; order is free; of rows
    /// with the same key the last counts; rows of other keys are ignored.
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError>;

    /// Hands every row over, in the same columns, a batch of at most so many rows after another as far as the source
    /// allows that. Its connection is not used again.
    ///
    /// # Errors
    /// The source's own, or that of `take`, after which it is not called again.
    fn load_all(&mut self, take: &mut Take<'_>) -> Result<(), DictError>;

    /// How far changes have come, of which those before a mark are known: UPDATE_FIELD.
    fn tail(&mut self, _mark: Option<&str>) -> Result<Tail, DictError> {
        Err(sql::no_updates())
    }

    /// The keys of rows that were changed since a mark.
    fn changes(&mut self, _mark: &str) -> Result<Changes, DictError> {
        Err(sql::no_updates())
    }
}

/// Takes the batches of [`Source::load_all`], for as long as anybody wants more.
pub type Take<'a> = dyn FnMut(RecordBatch) -> Result<(), DictError> + 'a;

/// The end of what was changed in a source; texts, as the source writes and reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The greatest value of UPDATE_FIELD; `None`: there are no rows.
    pub latest: Option<String>,
    /// How many rows the mark includes.
    pub count: Option<String>,
    /// The mark from which changes are to be looked for next: the latest, less the lag.
    pub next: Option<String>,
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

/// The factory of what SOURCE(..) says.
///
/// # Errors
/// What the environment does not allow; the source itself is not asked yet.
pub(crate) fn factory(
    definition: &Definition,
    environment: &Environment,
) -> Result<SourceFactory, DictError> {
    let structure = definition.asked_structure();
    // A request that is still running when its lookup has given up may answer late, but not for ever.
    let patience = Duration::from_millis(2 * definition.layout.update.query_wait_timeout_ms);
    if definition.source.select().is_some_and(|select| select.table.as_deref() == Some("")) {
        let name = definition.full_name();
        return Ok(Arc::new(move || {
            Err(DictError::bad_arguments(format!("Dictionary {name}: its source has an empty TABLE")))
        }));
    }
    match definition.source.complete().clone() {
        SourceConfig::Sqlite(config) => {
            let path = environment.resolve(&config.path)?;
            Ok(Arc::new(move || Ok(Box::new(sqlite::Sqlite::open(&path, &config, &structure)?))))
        }
        SourceConfig::Postgres(config) => {
            let authorities = config.tls.authorities.file(environment)?;
            Ok(Arc::new(move || {
                let connect = postgres::Postgres::connect;
                first(&config.each(), |one| connect(one, authorities.as_deref(), &structure, patience))
            }))
        }
        SourceConfig::Mysql(config) => Ok(Arc::new(move || {
            first(&config.each(), |one| mysql::Mysql::connect(one, &structure, patience))
        })),
        SourceConfig::Clickhouse(config) => {
            let own = environment.own_tables.clone().map(|tables| (tables, definition.settings.clone()));
            let itself = (definition.database.clone().unwrap_or_default(), definition.name.clone());
            Ok(Arc::new(move || {
                let table = config.select.table.as_deref();
                if config.is_own() && (config.server.database == itself.0) && table == Some(itself.1.as_str())
                {
                    let text = format!(
                        "The source of dictionary {}.{} is the dictionary itself",
                        itself.0, itself.1
                    );
                    return Err(DictError::bad_arguments(text));
                }
                let server = clickhouse::Server::of(&config, own.clone(), patience)?;
                Ok(Box::new(clickhouse::Clickhouse::connect(server, &config, &structure, patience)?))
            }))
        }
        SourceConfig::Http(config) => {
            Ok(Arc::new(move || Ok(Box::new(http::Http::new(&config, &structure, patience)?))))
        }
        SourceConfig::Executable(config) => {
            let command = CommandLine::new(&config, "executable", environment)?;
            Ok(Arc::new(move || {
                Ok(Box::new(executable::Executable::new(&config, &command, &structure, patience)))
            }))
        }
        SourceConfig::Redis(config) => {
            let authorities = config.authorities.file(environment)?;
            Ok(Arc::new(move || {
                let connect = redis::Redis::connect;
                Ok(Box::new(connect(&config, authorities.as_deref(), &structure, patience)?))
            }))
        }
        SourceConfig::Mongodb(config) => {
            let authorities = config.authorities()?.file(environment)?;
            let server = Arc::new(mongodb::Server::new(config, authorities, patience));
            Ok(Arc::new(move || Ok(Box::new(mongodb::Mongodb::connect(&server, &structure)?))))
        }
        SourceConfig::ExecutablePool(config) => {
            let command = CommandLine::new(&config.program, "executable pool", environment)?;
            let processes = Arc::new(executable_pool::Processes::new(&config, command));
            Ok(Arc::new(move || {
                let pool = executable_pool::ExecutablePool::new;
                Ok(Box::new(pool(processes.clone(), &config, &structure, patience)))
            }))
        }
        SourceConfig::File(config) => {
            let path = environment.resolve(&config.path)?;
            let parquet = environment.parquet.clone();
            Ok(Arc::new(move || Ok(Box::new(file::File::new(&path, &config, parquet.clone(), &structure)))))
        }
        SourceConfig::Yaml(config) => {
            let path = environment.resolve(&config.path)?;
            let definition = definition.clone();
            Ok(Arc::new(move || Ok(Box::new(Yaml::new(&path, &definition)))))
        }
        SourceConfig::Named(named) => {
            Err(DictError::bad_arguments(format!("{named:?} has not been completed")))
        }
    }
}

/// The first server that can be connected to; the error is that of the last.
fn first<C, S: Source + 'static>(
    servers: &[C],
    connect: impl Fn(&C) -> Result<S, DictError>,
) -> Result<Box<dyn Source>, DictError> {
    let mut failure = DictError::bad_arguments("SOURCE has no server");
    for server in servers {
        match connect(server) {
            Ok(source) => return Ok(Box::new(source)),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
