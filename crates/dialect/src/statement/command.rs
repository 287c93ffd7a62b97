//! Statements that DataFusion does not have.

use super::collection::CollectionChange;
use super::show::{ObjectKind, ShowNames};
use super::table::{CreateTable, InsertInto};
use super::token_cursor::Name;
use super::view::CreateView;

/// A statement, by how it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// CREATE or REPLACE DICTIONARY; granary-dict parses the text.
    CreateDictionary,
    /// DROP, except of databases.
    Drop {
        /// The kind of the dropped objects.
        dropped: Dropped,
        /// Their names.
        names: Vec<Name>,
        /// Whether an unknown name is an error.
        if_missing: OnConflict,
        /// Objects with rows are an error.
        if_empty: bool,
    },
    /// CREATE TABLE.
    CreateTable(CreateTable),
    /// CREATE VIEW.
    CreateView(CreateView),
    /// ALTER TABLE .. MODIFY COMMENT.
    Comment {
        /// The name of a table or a dictionary.
        name: Name,
        /// The new comment.
        comment: String,
    },
    /// INSERT of a query's rows.
    Insert {
        /// The target of the rows.
        into: InsertInto,
        /// Number of tokens before the query.
        head: usize,
    },
    /// INSERT .. FORMAT: the rows are the statement's data.
    InsertData {
        /// The target of the rows.
        into: InsertInto,
        /// The name of their format.
        format: String,
    },
    /// TRUNCATE TABLE.
    Truncate {
        /// The table's name.
        name: Name,
        /// Whether an unknown name is an error.
        if_missing: OnConflict,
    },
    /// OPTIMIZE TABLE, which does nothing for a table in RAM.
    Optimize(Name),
    /// RENAME.
    Rename {
        /// What is renamed.
        noun: Noun,
        /// Pairs of old and new names.
        names: Vec<(Name, Name)>,
    },
    /// EXCHANGE: the two swap their names.
    Exchange {
        /// What is exchanged.
        noun: Noun,
        /// The first name.
        one: Name,
        /// The second name.
        other: Name,
    },
    /// DETACH DICTIONARY.
    DetachDictionary {
        /// The dictionary's name.
        name: Name,
        /// Whether an unknown name is an error.
        if_missing: OnConflict,
        /// The next start does not bring it back.
        permanently: bool,
    },
    /// ATTACH DICTIONARY.
    AttachDictionary {
        /// The dictionary's name.
        name: Name,
        /// Whether an existing name is an error.
        if_exists: OnConflict,
    },
    /// SYSTEM UNLOAD DICTIONARY.
    UnloadDictionary(Name),
    /// SYSTEM UNLOAD DICTIONARIES.
    UnloadDictionaries,
    /// EXISTS.
    Exists {
        /// The kind of object: a table, a view, a dictionary or a database.
        kind: ObjectKind,
        /// Its name.
        name: Name,
    },
    /// DESCRIBE.
    Describe(Name),
    /// SHOW of names.
    ShowNames(ShowNames),
    /// SHOW CREATE.
    ShowCreate {
        /// The kind of object.
        kind: ObjectKind,
        /// Its name.
        name: Name,
    },
    /// SYSTEM RELOAD DICTIONARY.
    ReloadDictionary(Name),
    /// SYSTEM RELOAD DICTIONARIES.
    ReloadDictionaries,
    /// SYSTEM REFRESH DICTIONARY.
    RefreshDictionary {
        /// The dictionary's name.
        name: Name,
        /// Keys as rows of TabSeparated.
        keys: String,
    },
    /// SYSTEM INVALIDATE DICTIONARY.
    InvalidateDictionary {
        /// The dictionary's name.
        name: Name,
        /// Keys as rows of TabSeparated; `None`: all of them.
        keys: Option<String>,
    },
    /// USE of a database.
    Use(String),
    /// CREATE, ALTER or DROP NAMED COLLECTION.
    Collection {
        /// The collection's name.
        name: String,
        /// Its change.
        change: CollectionChange,
    },
    /// CREATE DATABASE.
    CreateDatabase {
        /// The database's name.
        name: String,
        /// Whether an existing name is an error.
        if_exists: OnConflict,
    },
    /// DROP DATABASE.
    DropDatabase {
        /// The database's name.
        name: String,
        /// Whether an unknown name is an error.
        if_missing: OnConflict,
    },
    /// SET: names and values.
    Set(Vec<(String, String)>),
    /// EXPLAIN ESTIMATE: there are no parts whose rows could be estimated.
    ExplainEstimate {
        /// Number of tokens before the query.
        head: usize,
    },
    /// Any other statement: DataFusion plans it.
    Query,
}

/// The kind of a named object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noun {
    /// A dictionary.
    Dictionary,
    /// A table in RAM, or a view.
    Table,
}

/// Whether a missing (or an existing) name is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// It is an error.
    Error,
    /// IF EXISTS or IF NOT EXISTS allows it.
    Ignore,
}

/// The kind of object that DROP names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// DROP DICTIONARY.
    Dictionary,
    /// DROP TABLE.
    Table,
    /// DROP VIEW.
    View,
}

/// A statement's effect on dictionaries and databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Dictionaries and databases stay as they are.
    None,
    /// Entries of the named dictionary are forgotten or renewed.
    Renewal,
    /// Dictionaries or databases are created, changed or dropped.
    Change,
}

impl Command {
    /// Its effect on dictionaries and databases.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Exists { .. }
            | Self::Describe(_)
            | Self::ShowNames(_)
            | Self::ShowCreate { .. }
            | Self::Optimize(_)
            | Self::Use(_)
            | Self::Set(_)
            | Self::ExplainEstimate { .. }
            | Self::Query => Effect::None,
            Self::ReloadDictionary(_)
            | Self::RefreshDictionary { .. }
            | Self::InvalidateDictionary { .. } => Effect::Renewal,
            Self::CreateDictionary
            | Self::CreateTable(_)
            | Self::CreateView(_)
            | Self::Comment { .. }
            | Self::Insert { .. }
            | Self::InsertData { .. }
            | Self::Rename { .. }
            | Self::Exchange { .. }
            | Self::DetachDictionary { .. }
            | Self::AttachDictionary { .. }
            | Self::UnloadDictionary(_)
            | Self::UnloadDictionaries
            | Self::Truncate { .. }
            | Self::Drop { .. }
            | Self::ReloadDictionaries
            | Self::Collection { .. }
            | Self::CreateDatabase { .. }
            | Self::DropDatabase { .. } => Effect::Change,
        }
    }
}
