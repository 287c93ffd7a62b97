//! A session: a current database and settings, which runs statements.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use datafusion::catalog::TableProvider;
use datafusion::execution::SessionState;
use granary_dialect::statement::{self, Command, Effect, Statement};
use granary_dialect::{Error, FullName, Result};
use granary_dict::{Code, DictError, Dictionary, XmlDictionary, parse_xml_each};

use crate::catalogue::{Catalogue, DEFAULT_DATABASE, FolderLock};
use crate::engine::Engine;
use crate::limits::STATEMENT_BYTES_FREE;
use crate::memory::{MemoryOptions, QueryMemory};
use crate::output::Output;
use crate::rights::Rights;
use crate::session_scope::SessionScope;
use crate::session_settings::SessionSettings;
use crate::settings::{Settings, apply, check_limits, configuration, is_on, value_of};
use crate::tables::files::{self, InputFormat};
use crate::tables::piped::Piped;
use crate::tables::session_tables::TableGuard;
use crate::{commands, query};

/// The user of sessions where there are no users.
const DEFAULT_USER: &str = "default";

/// How a session is opened.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The folder that keeps dictionaries; `None`: a temporary one, removed at the end.
    pub path: Option<PathBuf>,
    /// The lock of that folder, if it is taken already; `None`: `open` takes it.
    pub lock: Option<FolderLock>,
    /// Whether sources of dictionaries may run programs, with the rights of this process.
    pub allow_executable: bool,
    /// Files that statements name (of dictionaries, and tables that are files) must lie in this folder, where
    /// relative paths begin; `None`: anywhere.
    pub user_files: Option<PathBuf>,
    /// A folder on a tmpfs for the RAM tiers of dictionaries on SSD, so that they survive a kill of the process;
    /// `None`: they do not.
    pub memory_folder: Option<PathBuf>,
    /// Runs each wait for a source, instead of [`give_way`](crate::give_way), which it should call.
    pub waiting: Option<fn(&mut dyn FnMut())>,
    /// The memory that queries may take; `None`: unbounded.
    pub memory: Option<MemoryOptions>,
}

/// Runs statements. Dictionaries under its path stay open while it, or [another](Self::for_user) session over the same
/// ones, lives.
pub struct Session {
    pub(crate) engine: Arc<Engine>,
    /// What USE and SET chose, for later statements.
    session_settings: Arc<RwLock<SessionSettings>>,
    /// What overrides that while this object lives: for one query.
    query_settings: SessionSettings,
    /// The settings that the session began with: a bound user cannot exceed the limits among them.
    bounds: Settings,
    user: String,
    rights: Rights,
}

impl Session {
    /// Opens the catalogue and readies DataFusion.
    pub fn open(options: Options) -> Result<Session> {
        Ok(Self::of_engine(Engine::open(options)?))
    }

    /// A session with full rights.
    pub(crate) fn of_engine(engine: Arc<Engine>) -> Session {
        Self::over(engine, DEFAULT_USER.to_owned(), Rights::default())
    }

    fn over(engine: Arc<Engine>, user: String, rights: Rights) -> Session {
        Session {
            engine,
            session_settings: Arc::default(),
            query_settings: SessionSettings::default(),
            bounds: Settings::new(),
            user,
            rights,
        }
    }

    /// A session of another user over the same dictionaries. It begins with this one's settings, in the default
    /// database.
    pub fn for_user(&self, user: String, rights: Rights) -> Session {
        let bounds = self.settings();
        let session_settings = Arc::new(RwLock::new(SessionSettings::of(bounds.clone())));
        Session { session_settings, bounds, ..Self::over(Arc::clone(&self.engine), user, rights) }
    }

    /// This session for one query, with rights, a database and settings for that query alone. USE and SET in it change
    /// this session lastingly.
    ///
    /// # Errors
    /// UNKNOWN_DATABASE, and errors of [`set`](Self::set).
    pub fn for_query(&self, rights: Rights, database: Option<&str>, settings: Settings) -> Result<Session> {
        let mut query_settings = SessionSettings::of(settings);
        query_settings.database = database.map(str::to_owned);
        let session = Session {
            engine: Arc::clone(&self.engine),
            session_settings: Arc::clone(&self.session_settings),
            query_settings,
            bounds: self.bounds.clone(),
            user: self.user.clone(),
            rights,
        };
        if let Some(database) = database {
            session.catalogue().check_database(database)?;
        }
        session.check_settings(&session.query_settings.settings)?;
        Ok(session)
    }

    /// Whether the session is as it began: nothing was chosen that a new one lacks.
    pub fn is_unmodified(&self) -> bool {
        self.session_settings().is_only(&self.bounds)
    }

    fn session_settings(&self) -> RwLockReadGuard<'_, SessionSettings> {
        self.session_settings.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn session_settings_mut(&self) -> RwLockWriteGuard<'_, SessionSettings> {
        self.session_settings.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session's user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The user's rights.
    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.engine.catalogue
    }

    /// The user and address of the asker, for the dialect.
    pub(crate) fn scope(&self) -> SessionScope<'_> {
        SessionScope {
            database: self.database(),
            user: &self.user,
            catalogue: self.catalogue(),
            settings: self.settings(),
        }
    }

    /// The database of names without one.
    pub fn database(&self) -> String {
        let said = self.query_settings.database.clone().or_else(|| self.session_settings().database.clone());
        said.unwrap_or_else(|| DEFAULT_DATABASE.to_owned())
    }

    /// USE.
    ///
    /// # Errors
    /// UNKNOWN_DATABASE.
    pub fn set_database(&self, database: &str) -> Result<()> {
        self.catalogue().check_database(database)?;
        self.session_settings_mut().database = Some(database.to_owned());
        Ok(())
    }

    /// Leaves a database that was dropped for the default one.
    pub(crate) fn leave_database(&self, gone: &str) {
        let mut session_settings = self.session_settings_mut();
        if session_settings.database.as_deref() == Some(gone) {
            session_settings.database = None;
        }
    }

    /// SET. A name that begins with `param_` is a query parameter: `{x:UInt64}` in a query is the value of `param_x`.
    ///
    /// # Errors
    /// UNKNOWN_SETTING, BAD_ARGUMENTS for a value that a setting cannot have, LIMIT_EXCEEDED for more parameters or
    /// longer values than a session keeps, and errors of [`check_bounds`](Self::check_bounds).
    pub fn set(&self, settings: Settings) -> Result<()> {
        let said = SessionSettings::of(settings);
        self.check_settings(&said.settings)?;
        self.session_settings_mut().keep(said)
    }

    /// Refuses what [`set`](Self::set) would refuse to a user with full rights, before there is a session.
    ///
    /// # Errors
    /// The errors of [`set`](Self::set).
    pub fn check_first_settings(settings: Settings) -> Result<()> {
        apply(&SessionSettings::of(settings).settings, &mut configuration())
    }

    fn check_settings(&self, settings: &[(String, String)]) -> Result<()> {
        // Most requests set nothing, and a configuration to try settings on takes long to make.
        if settings.is_empty() {
            return Ok(());
        }
        apply(settings, &mut configuration())?;
        self.check_bounds(settings)
    }

    /// Refuses limits above those that the session began with, if the user is bound.
    ///
    /// # Errors
    /// SETTING_CONSTRAINT_VIOLATION.
    pub(crate) fn check_bounds(&self, settings: &[(String, String)]) -> Result<()> {
        if self.rights.is_bound { check_limits(settings, &self.bounds) } else { Ok(()) }
    }

    /// The state that one query of this session is planned with, which the engine takes back.
    pub(crate) fn state(&self) -> Result<SessionState> {
        let mut state = self.engine.take_state();
        let config = state.config_mut();
        config.options_mut().catalog.default_schema = self.database();
        apply(&self.settings(), config)?;
        Ok(state)
    }

    /// The settings that hold for the next statement.
    pub(crate) fn settings(&self) -> Settings {
        self.effective_settings().settings
    }

    /// The value of a setting for the next statement; `None`: there is no such setting.
    pub fn setting(&self, name: &str) -> Option<String> {
        value_of(name, &self.settings())
    }

    /// Whether a boolean setting is on for the next statement.
    pub fn is_on(&self, name: &str) -> bool {
        is_on(name, &self.settings())
    }

    fn effective_settings(&self) -> SessionSettings {
        let mut chosen = self.session_settings().clone();
        chosen.take(self.query_settings.clone());
        chosen
    }

    /// The dictionary `name`, or `database.name`.
    ///
    /// # Errors
    /// BAD_ARGUMENTS if there is none, ACCESS_DENIED, or the error of opening it.
    pub fn dictionary(&self, name: &str) -> Result<Arc<Dictionary>> {
        self.dictionary_of(&self.named(name)?)
    }

    /// Checks that there is a dictionary `name`, or `database.name`, without opening it.
    ///
    /// # Errors
    /// BAD_ARGUMENTS if there is none, and ACCESS_DENIED.
    pub fn check_dictionary(&self, name: &str) -> Result<()> {
        let full_name = self.named(name)?;
        self.rights.check_read(&self.user, &full_name.to_string())?;
        self.catalogue().check_dictionary(&full_name)
    }

    /// The dictionary `name`, or `database.name`, if there is one.
    ///
    /// # Errors
    /// BAD_ARGUMENTS if several are shown so.
    pub(crate) fn named(&self, text: &str) -> Result<FullName> {
        self.catalogue().named(&self.database(), text)
    }

    fn dictionary_of(&self, name: &FullName) -> Result<Arc<Dictionary>> {
        self.rights.check_read(&self.user, &name.to_string())?;
        self.catalogue().dictionary(name)
    }

    /// The dictionary `name`, or `database.name`, for forgetting or renewing its entries.
    ///
    /// # Errors
    /// The errors of `dictionary`, and READONLY.
    pub fn dictionary_to_renew(&self, name: &str) -> Result<Arc<Dictionary>> {
        self.renewable(&self.named(name)?)
    }

    /// A dictionary, for forgetting or renewing its entries.
    ///
    /// # Errors
    /// The errors of [`dictionary_to_renew`](Self::dictionary_to_renew).
    pub(crate) fn renewable(&self, name: &FullName) -> Result<Arc<Dictionary>> {
        let dictionary = self.dictionary_of(name)?;
        self.rights.check_renew(&self.user, &dictionary.definition().full_name())?;
        Ok(dictionary)
    }

    /// The memory that all queries take.
    pub(crate) fn memory(&self) -> &Arc<QueryMemory> {
        &self.engine.memory
    }

    /// Checks that the process may take `more` bytes for a statement that is being read.
    ///
    /// # Errors
    /// MEMORY_LIMIT_EXCEEDED.
    pub fn check_memory(&self, more: usize) -> Result<()> {
        Ok(self.memory().check(more)?)
    }

    /// Checks whether there is memory for rows while they are read: the argument of
    /// [`RowReader::within_memory`](granary_dict::RowReader::within_memory).
    pub fn memory_check(&self) -> impl Fn(usize) -> Result<(), DictError> + Send + 'static {
        let memory = Arc::clone(self.memory());
        move |more| {
            let checked = memory.check(more).map_err(Error::from);
            checked.map_err(|error| DictError::new(Code::MemoryLimitExceeded, error.message))
        }
    }

    /// All dictionaries as `database.name`; `None`: it is not open.
    pub fn dictionaries(&self) -> Vec<(String, Option<Arc<Dictionary>>)> {
        let dictionaries = self.catalogue().dictionaries().into_iter();
        dictionaries.map(|(name, dictionary)| (name.to_string(), dictionary)).collect()
    }

    /// Ends the session while others still hold it: dictionaries are closed once no statement uses them, waiting at
    /// most `timeout`, and a temporary folder is removed.
    pub fn close(&self, timeout: Duration) {
        self.engine.close(timeout);
    }

    /// Runs the one statement of a text; it may be an INSERT followed by rows of any format.
    ///
    /// # Errors
    /// SYNTAX_ERROR if the text has no statement, or several; MEMORY_LIMIT_EXCEEDED, and those of
    /// [`execute`](Self::execute).
    pub async fn execute_one(&self, text: Vec<u8>) -> Result<Output> {
        // A long text's memory is reserved until it has run. Short ones are not checked.
        let mut reserved = self.memory().reservation();
        let reserve = |bytes| if bytes > STATEMENT_BYTES_FREE { Ok(reserved.resize(bytes)?) } else { Ok(()) };
        let statement = statement::split_one(text, reserve)?;
        self.execute(&statement).await
    }

    /// Runs one statement: commands at once, queries as their stream is read.
    ///
    /// # Errors
    /// The statement's errors, in ClickHouse's words; READONLY or ACCESS_DENIED if the user may not run it.
    pub async fn execute(&self, statement: &Statement) -> Result<Output> {
        let filled = statement::fill(statement, &self.effective_settings().parameters)?;
        let statement = filled.as_ref().unwrap_or(statement);
        match statement::parse(statement)? {
            (Command::Query, _) => query::run(self, &statement.text).await,
            (command, format) => {
                if command.effect() == Effect::Change {
                    self.rights.check_change(&self.user)?;
                }
                let mut output = commands::run(self, command, statement).await?;
                if let Some(format) = format {
                    output.format = Some(format.parse()?);
                }
                Ok(output)
            }
        }
    }

    /// Adds a file as a table. Without `format` the file's name tells it.
    pub async fn add_file(&self, table: &str, path: &Path, format: Option<InputFormat>) -> Result<()> {
        self.engine.session_tables.add(table.to_owned(), files::open(path, format).await?)?;
        Ok(())
    }

    /// Makes a table known by a [secret name](granary_dialect::rewrite::secret_name) until the returned guard is
    /// dropped.
    pub(crate) fn lend(&self, name: String, table: Arc<dyn TableProvider>) -> TableGuard {
        self.engine.session_tables.lend(name, table)
    }

    /// Creates the dictionaries of one of ClickHouse's XML files, as CREATE OR REPLACE does; unchanged ones stay, and
    /// stay warm. Returns the errors of single dictionaries, which do not affect the others.
    ///
    /// # Errors
    /// The error of the file as a whole.
    pub fn add_dictionaries(&self, path: &Path) -> Result<Vec<Error>> {
        self.add_dictionaries_where(path, |_| true)
    }

    /// Like [`add_dictionaries`](Self::add_dictionaries), for the dictionaries that could not be made when last tried.
    /// Dictionaries that were dropped or replaced since are left alone.
    ///
    /// # Errors
    /// The errors of [`add_dictionaries`](Self::add_dictionaries).
    pub fn add_failed_dictionaries(&self, path: &Path) -> Result<Vec<Error>> {
        self.add_dictionaries_where(path, |described| self.catalogue().has_failed(described, path))
    }

    fn add_dictionaries_where(
        &self,
        path: &Path,
        is_wanted: impl Fn(&XmlDictionary) -> bool,
    ) -> Result<Vec<Error>> {
        let read = || {
            let xml = std::fs::read_to_string(path)
                .map_err(|error| Error::cannot_open_file(format!("Cannot read: {error}")))?;
            Ok(parse_xml_each(&xml)?)
        };
        let found = read().map_err(|error: Error| error.at(path))?;
        self.catalogue().note_described(&found, path);
        let wanted = found.into_iter().filter(is_wanted);
        let made = wanted.map(|described| self.catalogue().configure(described, path));
        Ok(made.filter_map(|outcome| outcome.err().map(|error| error.at(path))).collect())
    }

    /// Adds the piped input as a table. It is read when a query first names it.
    pub fn add_piped(&self, table: &str, input: impl Read + Send + 'static, format: InputFormat) {
        self.engine.session_tables.set_piped(table, Piped::new(Box::new(input), format));
    }
}
