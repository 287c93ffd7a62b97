//! The statements that DataFusion does not know.

use super::collection::CollectionChange;
use super::show::{ShowNames, Sought};
use super::table::{CreateTable, InsertInto};
use super::view::CreateView;
use super::words::Name;

/// A statement, by who runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// CREATE or REPLACE DICTIONARY; granary-dict reads the text.
    CreateDictionary,
    Drop {
        dropped: Dropped,
        names: Vec<Name>,
        missing: Missing,
        /// What has rows stays.
        if_empty: bool,
    },
    CreateTable(CreateTable),
    CreateView(CreateView),
    /// ALTER TABLE .. MODIFY COMMENT.
    Comment {
        name: Name,
        comment: String,
    },
    Insert {
        into: InsertInto,
        /// Tokens before the query that gives the rows.
        head: usize,
    },
    /// INSERT .. FORMAT: the rows are the statement's data.
    InsertData {
        into: InsertInto,
        format: String,
    },
    Truncate {
        name: Name,
        missing: Missing,
    },
    /// OPTIMIZE TABLE, of which a table in RAM needs nothing.
    Optimize {
        name: Name,
    },
    /// Pairs of old and new names.
    Rename {
        noun: Noun,
        names: Vec<(Name, Name)>,
    },
    Exchange {
        noun: Noun,
        one: Name,
        other: Name,
    },
    DetachDictionary {
        name: Name,
        missing: Missing,
        permanently: bool,
    },
    AttachDictionary {
        name: Name,
        exists: Missing,
    },
    UnloadDictionary {
        name: Name,
    },
    UnloadDictionaries,
    Exists {
        sought: Sought,
        name: Name,
    },
    Describe {
        name: Name,
    },
    ShowNames(ShowNames),
    ShowCreate {
        sought: Sought,
        name: Name,
    },
    ReloadDictionary {
        name: Name,
    },
    ReloadDictionaries,
    /// Keys as rows of TabSeparated.
    RefreshDictionary {
        name: Name,
        keys: String,
    },
    InvalidateDictionary {
        name: Name,
        /// `None`: all of them.
        keys: Option<String>,
    },
    Use {
        database: String,
    },
    /// CREATE, ALTER or DROP NAMED COLLECTION.
    Collection {
        name: String,
        change: CollectionChange,
    },
    CreateDatabase {
        name: String,
        exists: Missing,
    },
    DropDatabase {
        name: String,
        missing: Missing,
    },
    Set {
        settings: Vec<(String, String)>,
    },
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
    Dictionary,
    Table,
}

/// Whether a statement may find nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    IsError,
    IsFine,
}

/// What DROP is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    Dictionary,
    Table,
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
            | Self::Describe { .. }
            | Self::ShowNames(_)
            | Self::ShowCreate { .. }
            | Self::Optimize { .. }
            | Self::Use { .. }
            | Self::Set { .. }
            | Self::ExplainEstimate { .. }
            | Self::Query => Effect::None,
            Self::ReloadDictionary { .. }
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
            | Self::UnloadDictionary { .. }
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
