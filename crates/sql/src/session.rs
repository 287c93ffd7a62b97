//! A session: the catalogue, DataFusion's context, and what runs statements.

use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionContext;
use datafusion::prelude::SessionConfig;
use granary_dict::{Dictionary, Environment, parse_xml};
use tempfile::TempDir;

use crate::catalogue::{Catalogue, DEFAULT_DATABASE, Databases};
use crate::error::{Error, Result};
use crate::functions::{self, ClickHouseTypes};
use crate::limits::BATCH_ROWS;
use crate::output::Output;
use crate::plan::{OuterJoinDefaults, PlanSettings};
use crate::planning::Planning;
use crate::statement::{self, Command, Statement};
use crate::tables::files::{self, InputFormat};
use crate::tables::given::Given;
use crate::tables::numbers::NumbersFunction;
use crate::tables::piped::Piped;
use crate::{commands, query, reword};

/// Whether dictionaries may run programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Executables {
    #[default]
    Refused,
    Allowed,
}

/// What a statement may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It leaves dictionaries and databases as they are.
    ReadOnly,
    /// Anything.
    Full,
}

/// How a session is opened.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where dictionaries are kept; `None`: a temporary folder, removed at the end.
    pub path: Option<PathBuf>,
    pub executables: Executables,
    /// Files that statements name (of dictionaries, and tables that are files) must lie in this folder, where
    /// relative paths begin; `None`: anywhere.
    pub user_files: Option<PathBuf>,
}

/// Runs statements. Dictionaries under its path are open for as long as it lives.
pub struct Session {
    pub(crate) context: SessionContext,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) planning: Planning,
    given: Arc<Given>,
    /// Last, so that it is removed after the dictionaries in it are closed.
    temporary: Option<Arc<TempDir>>,
}

impl Session {
    /// Opens the catalogue and readies DataFusion.
    pub fn open(options: Options) -> Result<Session> {
        let (folder, temporary) = match options.path {
            Some(path) => (path, None),
            None => {
                let folder = TempDir::with_prefix("granary-")?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let environment = Environment {
            allow_executable: options.executables == Executables::Allowed,
            user_files: options.user_files,
            ..Environment::new(&folder)
        };
        let catalogue = Arc::new(Catalogue::open(folder, environment)?);
        Self::over(catalogue, temporary.map(Arc::new))
    }

    fn over(catalogue: Arc<Catalogue>, temporary: Option<Arc<TempDir>>) -> Result<Session> {
        let given = Arc::new(Given::default());
        let context = context(&catalogue, &given)?;
        Ok(Session { context, catalogue, planning: Planning::default(), given, temporary })
    }

    /// Another session over the same dictionaries, with settings and a current database of its own.
    pub fn another(&self) -> Result<Session> {
        Self::over(Arc::new(self.catalogue.another()), self.temporary.clone())
    }

    /// USE.
    pub fn set_database(&self, database: &str) -> Result<()> {
        self.catalogue.set_current(database)
    }

    /// The dictionary `name`, or `database.name`.
    ///
    /// # Errors
    /// BAD_ARGUMENTS if there is none, and why it could not be opened.
    pub fn dictionary(&self, name: &str) -> Result<Arc<Dictionary>> {
        self.catalogue.dictionary(name)
    }

    /// Ends the session while somebody still holds it: dictionaries are closed as soon as no statement uses them,
    /// if that is within `patience`, and a temporary folder is removed.
    pub fn close(&self, patience: Duration) {
        self.catalogue.close(patience);
        if let Some(folder) = &self.temporary {
            // Nobody can act on a failure here.
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }

    /// Cuts a text into statements.
    pub fn split(&self, text: &str) -> Result<Vec<Statement>> {
        statement::split(text)
    }

    /// Runs one statement: commands at once, queries as their stream is read.
    pub async fn execute(&self, statement: &Statement) -> Result<Output> {
        self.execute_with(statement, Access::Full).await
    }

    /// The same for somebody who may do only so much.
    ///
    /// # Errors
    /// READONLY, and those of `execute`.
    pub async fn execute_with(&self, statement: &Statement, access: Access) -> Result<Output> {
        match statement::parse(statement)? {
            (command, _) if access == Access::ReadOnly && !command.only_reads() => {
                Err(Error::readonly("Cannot execute query in readonly mode"))
            }
            (Command::Query, _) => {
                let output = query::run(self, &statement.text).await;
                output.map_err(|error| reword::as_written(error, &statement.text))
            }
            (command, format) => {
                let output = commands::run(self, command, &statement.text).await?;
                let format = format.map(|name| name.parse()).transpose()?;
                Ok(Output { format: format.or(output.format), ..output })
            }
        }
    }

    /// Makes a file a table. Without a format the file's name tells it.
    pub async fn add_file(&self, table: &str, path: &Path, format: Option<InputFormat>) -> Result<()> {
        let format = match format {
            Some(format) => format,
            None => InputFormat::of(path)?,
        };
        self.given.add(table.to_owned(), files::open(path, format).await?)?;
        Ok(())
    }

    /// Takes a file's table away.
    pub(crate) fn remove_file(&self, table: &str) -> Result<()> {
        self.given.remove(table)?;
        Ok(())
    }

    /// Creates the dictionaries of one of ClickHouse's XML files, as CREATE OR REPLACE does; one that is there
    /// unchanged stays, and stays warm.
    pub fn add_dictionaries(&self, path: &Path) -> Result<()> {
        let add = || {
            let xml = std::fs::read_to_string(path)
                .map_err(|error| Error::cannot_open_file(format!("Cannot read: {error}")))?;
            let definitions = parse_xml(&xml)?;
            definitions.into_iter().try_for_each(|definition| self.catalogue.configure(definition))
        };
        add().map_err(|error: Error| error.at(path))
    }

    /// Makes what is piped in a table. It is read when a query first names it.
    pub fn add_piped(&self, table: &str, input: impl Read + Send + 'static, format: InputFormat) {
        self.given.set_piped(table, Piped::new(Box::new(input), format));
    }
}

/// How queries are planned, and files looked at.
pub(crate) fn configuration() -> SessionConfig {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut config = SessionConfig::new()
        .with_batch_size(BATCH_ROWS)
        .with_target_partitions(threads)
        .with_default_catalog_and_schema("granary", DEFAULT_DATABASE)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false);
    let options = config.options_mut();
    // ClickHouse's names are case-sensitive, its strings are bytes behind an offset, its NULLs come last.
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.default_null_ordering = "nulls_last".to_owned();
    // It would call dictGet once for each element that is taken out of its tuple.
    options.optimizer.enable_leaf_expression_pushdown = false;
    options.execution.parquet.schema_force_view_types = false;
    options.extensions.insert(PlanSettings::default());
    config
}

fn context(catalogue: &Arc<Catalogue>, given: &Arc<Given>) -> Result<SessionContext> {
    let state = SessionStateBuilder::new()
        .with_config(configuration())
        .with_default_features()
        .with_type_planner(Arc::new(ClickHouseTypes))
        .with_analyzer_rule(Arc::new(OuterJoinDefaults))
        .build();
    let context = SessionContext::new_with_state(state);
    context.register_catalog("granary", Arc::new(Databases::new(Arc::clone(catalogue), Arc::clone(given))));
    context.register_udtf("numbers", Arc::new(NumbersFunction));
    functions::register(&context, catalogue)?;
    Ok(context)
}

/// Applies SETTINGS or SET to a configuration.
pub(crate) fn apply(settings: &[(String, String)], config: &mut SessionConfig) -> Result<()> {
    for (name, value) in settings {
        let count = || match value.parse::<usize>() {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(Error::bad_arguments(format!("Setting {name} must be a positive number, not {value}"))),
        };
        let options = config.options_mut();
        let set = match name.as_str() {
            "max_threads" => options.set("datafusion.execution.target_partitions", &count()?.to_string()),
            "join_use_nulls" => options.set("granary.join_use_nulls", &(value != "0").to_string()),
            "max_block_size" => options.set("datafusion.execution.batch_size", &count()?.to_string()),
            _ => {
                return Err(Error::unknown_setting(format!(
                    "Unknown setting '{name}'; known are join_use_nulls, max_block_size and max_threads"
                )));
            }
        };
        set?;
    }
    Ok(())
}
