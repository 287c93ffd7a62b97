//! SQLITE(PATH '..' TABLE '..' | QUERY '..' [WHERE '..']): a database file.

mod client;
mod current;
mod deadline;

use self::current::{Current, SqliteDatabase};
use super::kind::{Opening, SourceKind};
use super::select::{self, SELECT, Select, UPDATES};
use super::{PATH, SourceFactory};
use crate::config::Values;
use crate::error::DictError;
use std::sync::Arc;

pub(super) const KIND: SourceKind = SourceKind::new("SQLITE", &[PATH, SELECT, UPDATES], describe, open);

fn describe(values: &Values) -> String {
    format!("SQLite: {}, {}", values.text("PATH"), select::describe(values))
}

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let database = SqliteDatabase {
        path: opening.environment.resolve(values.text("PATH"))?,
        select: Select::of(values),
        structure: opening.structure,
        timeout: opening.timeout,
        answer_bytes_max: opening.environment.answer_bytes_max,
    };
    Ok(Arc::new(move || Ok(Box::new(Current::open(database.clone())?))))
}
