//! The statements that DataFusion does not know.

use super::collection::CollectionChange;
use super::show::{ObjectKind, ShowNames};
use super::table::{CreateTable, InsertInto};
use super::view::CreateView;
use super::words::Name;

/// A statement, by who runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// CREATE or REPLACE DICTIONARY; granary-dict reads the text.
    CreateDictionary,
    /// DROP, but for databases.
    Drop {
        /// The kind of the things to drop.
        dropped: Dropped,
        /// The names of all that is dropped.
        names: Vec<Name>,
        /// Whether a name that nothing has is an error.
        missing: Missing,
        /// What has rows stays.
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
    /// INSERT of what a query gives.
    Insert {
        /// Where the rows go.
        into: InsertInto,
        /// Tokens before the query that gives the rows.
        head: usize,
    },
    /// INSERT .. FORMAT: the rows are the statement's data.
    InsertData {
        /// Where the rows go.
        into: InsertInto,
        /// The name of their format.
        format: String,
    },
    /// TRUNCATE TABLE.
    Truncate {
        /// The table's name.
        name: Name,
        /// Whether a name that nothing has is an error.
        missing: Missing,
    },
    /// OPTIMIZE TABLE, of which a table in RAM needs nothing.
    Optimize(Name),
    /// RENAME.
    Rename {
        /// What is renamed.
        noun: Noun,
        /// Pairs of old and new names.
        names: Vec<(Name, Name)>,
    },
    /// EXCHANGE: each takes the other's name.
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
        /// Whether a name that nothing has is an error.
        missing: Missing,
        /// The next start does not bring it back.
        permanently: bool,
    },
    /// ATTACH DICTIONARY.
    AttachDictionary {
        /// The dictionary's name.
        name: Name,
        /// Whether a name that something has is an error.
        exists: Missing,
    },
    /// SYSTEM UNLOAD DICTIONARY.
    UnloadDictionary(Name),
    /// SYSTEM UNLOAD DICTIONARIES.
    UnloadDictionaries,
    /// EXISTS.
    Exists {
        /// What is looked for: a table, a view, a dictionary or a database.
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
        /// What is shown.
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
        /// What is done with it.
        change: CollectionChange,
    },
    /// CREATE DATABASE.
    CreateDatabase {
        /// The database's name.
        name: String,
        /// Whether a name that something has is an error.
        exists: Missing,
    },
    /// DROP DATABASE.
    DropDatabase {
        /// The database's name.
        name: String,
        /// Whether a name that nothing has is an error.
        missing: Missing,
    },
    /// SET: names and values.
    Set(Vec<(String, String)>),
    /// EXPLAIN ESTIMATE: of rows that are not in parts, there is nothing to estimate.
    ExplainEstimate {
        /// Tokens before the query.
        head: usize,
    },
    /// Everything else: DataFusion plans it.
    Query,
}

/// What a name is the name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noun {
    /// A dictionary.
    Dictionary,
    /// A table in RAM, or a view.
    Table,
}

/// Whether a statement may find nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is an error.
    IsError,
    /// IF EXISTS or IF NOT EXISTS says that it may.
    IsFine,
}

/// What DROP is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// DROP DICTIONARY.
    Dictionary,
    /// DROP TABLE.
    Table,
    /// DROP VIEW.
    View,
}

/// What a statement does to dictionaries and databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// They stay as they are.
    None,
    /// Entries of the dictionary that it names are forgotten or asked for anew.
    Renewal,
    /// They come or go.
    Change,
}

impl Command {
    /// What it does to dictionaries and databases.
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
