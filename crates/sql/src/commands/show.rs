//! SHOW and EXISTS.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch, UInt8Array};
use datafusion::arrow::compute::filter_record_batch;
use granary_dialect::statement::{Listing, Name, Noun, ObjectKind, ShowNames};
use granary_dialect::{Error, FullName, Result};
use granary_dict::{Form, identifier};

use super::insert::lend;
use super::texts;
use crate::catalogue::{Entry, SYSTEM_DATABASE};
use crate::output::Output;
use crate::query;
use crate::session::Session;

/// SHOW DICTIONARIES, TABLES or DATABASES: the names in the table of `system`, as far as the user may read them.
pub async fn names(session: &Session, show: ShowNames) -> Result<Output> {
    let rows = match show.listed {
        Listing::Databases => session.catalogue().system_rows("databases")?,
        Listing::Dictionaries => readable(session, show.database, "dictionaries")?,
        Listing::Tables => readable(session, show.database, "tables")?,
    };
    let lent = lend(session, rows.schema(), vec![rows])?;
    let condition = show.condition.map(|condition| format!(" WHERE {condition}")).unwrap_or_default();
    let limit = show.limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
    query::run(session, &format!("SELECT name FROM `{}`{condition} ORDER BY name{limit}", lent.name())).await
}

/// The rows of a table in `system` about one database, restricted to names that the user may read.
fn readable(session: &Session, database: Option<String>, table: &str) -> Result<RecordBatch> {
    let wanted = database.unwrap_or_else(|| session.database());
    session.catalogue().check_database(&wanted)?;
    let rows = session.catalogue().system_rows(table)?;
    let [databases, names] = ["database", "name"].map(|column| rows[column].as_string::<i32>());
    let is_shown = |(database, name): (Option<&str>, Option<&str>)| {
        let (database, name) = (database?, name?);
        Some(database == wanted && session.rights().may_read(&format!("{database}.{name}")))
    };
    let shown: BooleanArray = databases.iter().zip(names).map(is_shown).collect();
    Ok(filter_record_batch(&rows, &shown)?)
}

/// SHOW CREATE.
pub fn create(session: &Session, kind: ObjectKind, FullName { database, name }: FullName) -> Result<Output> {
    session.rights().check_read(session.user(), &format!("{database}.{name}"))?;
    let wrong = |what: &str| Error::bad_arguments(format!("`{database}`.`{name}` is not a {what}"));
    let sql = match session.catalogue().entry(&database, &name) {
        Some(Entry::Table(_)) if kind == ObjectKind::Dictionary => return Err(wrong("DICTIONARY")),
        Some(entry) if kind == ObjectKind::View && !entry.is_view() => return Err(wrong("VIEW")),
        Some(Entry::Table(table)) => table.to_sql(&database, &name, Form::Lines),
        Some(entry) => match (entry.definition(), &entry) {
            (Some(definition), _) => definition.to_sql(),
            (None, Entry::Failed(failure)) => return Err(failure.error.clone()),
            (None, _) => String::new(),
        },
        None => {
            session.catalogue().check_database(&database)?;
            return Err(Error::cannot_get_create_query(format!("There is no {name} in database {database}")));
        }
    };
    Output::columns(vec![("statement", texts([sql]))])
}

/// SHOW CREATE DATABASE. All databases have one engine.
pub fn create_database(session: &Session, name: &str) -> Result<Output> {
    session.catalogue().check_database(name)?;
    let sql = format!("CREATE DATABASE {}\nENGINE = Atomic", identifier(name));
    Output::columns(vec![("statement", texts([sql]))])
}

/// EXISTS.
pub fn exists(session: &Session, kind: ObjectKind, name: Name) -> Result<Output> {
    let catalogue = session.catalogue();
    let database = name.database.unwrap_or_else(|| session.database());
    let entry = || catalogue.entry(&database, &name.name);
    let exists = match kind {
        ObjectKind::Database => catalogue.check_database(&name.name).is_ok(),
        ObjectKind::Table if database == SYSTEM_DATABASE && catalogue.has_system_table(&name.name)? => true,
        ObjectKind::Table => {
            // Given tables are in every database.
            let is_given = || {
                session.engine.session_tables.contains(&name.name)
                    && catalogue.check_database(&database).is_ok()
            };
            entry().is_some() || is_given()
        }
        ObjectKind::Dictionary => entry().is_some_and(|entry| entry.noun() == Noun::Dictionary),
        ObjectKind::View => entry().is_some_and(|entry| entry.is_view()),
        ObjectKind::Temporary => false,
    };
    Output::columns(vec![("result", Arc::new(UInt8Array::from(vec![u8::from(exists)])))])
}
