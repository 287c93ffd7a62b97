//! The statements that are not queries.

mod create;
mod drop;
mod engines;
mod insert;
mod renew;
mod show;
mod values;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
use datafusion::arrow::datatypes::Schema;
use granary_dialect::statement::{Command, InsertInto, Name, ObjectKind, Statement, parse_query, quoted};
use granary_dialect::types::pretty_type_name;
use granary_dialect::{Error, FullName, Result};
use granary_dict::{CreateDictionary, parse_create};

use crate::output::Output;
use crate::query;
use crate::session::Session;

/// Runs a command.
pub async fn run(session: &Session, command: Command, statement: &Statement) -> Result<Output> {
    let text = statement.text.as_str();
    let catalogue = session.catalogue();
    let full = |name: Name| full_name(session, name);
    match command {
        Command::CreateDictionary => {
            let CreateDictionary { existing, definition } = parse_create(text)?;
            let definition = definition.with_uuid();
            catalogue.create(CreateDictionary { existing, definition }, &session.database())?;
        }
        Command::Drop { dropped, names, if_missing, if_empty } => {
            for name in names.into_iter().map(full) {
                drop::object(session, dropped, &name, if_missing, if_empty)?;
            }
        }
        Command::CreateTable(table) => create::table(session, table, text).await?,
        Command::CreateView(view) => create::view(session, view, text).await?,
        Command::Comment { name, comment } => {
            let FullName { database, name } = full(name);
            catalogue.comment(&database, &name, comment)?;
        }
        Command::Insert { into, head } => return insert_query(session, into, text, head).await,
        Command::InsertData { into, format } => {
            let name = full(into.name);
            let rows = insert::data(session, &name, into.columns, &format, &statement.data).await?;
            return Ok(Output::of_insert(&[rows]));
        }
        Command::Rename { noun, names } => {
            for (from, to) in names {
                let from = full(from);
                drop::check_unread(session, &from, None)?;
                catalogue.rename(noun, &from, &full(to))?;
            }
        }
        Command::Exchange { noun, one, other } => catalogue.exchange(noun, &full(one), &full(other))?,
        Command::DetachDictionary { name, if_missing, permanently } => {
            catalogue.detach(&full(name), if_missing, permanently)?;
        }
        Command::AttachDictionary { name, if_exists } => catalogue.attach(&full(name), if_exists)?,
        Command::UnloadDictionary(name) => catalogue.unload(&full(name))?,
        Command::UnloadDictionaries => renew::unload_all(session)?,
        Command::Truncate { name, if_missing } => {
            let FullName { database, name } = full(name);
            catalogue.truncate(&database, &name, if_missing)?;
        }
        Command::Optimize(name) => {
            let FullName { database, name } = full(name);
            catalogue.local_table(&database, &name)?;
        }
        Command::Exists { kind, name } => return show::exists(session, kind, name),
        Command::Describe(name) => return describe(session, name).await,
        Command::ShowNames(names) => return show::names(session, names).await,
        Command::ShowCreate { kind: ObjectKind::Database, name } => {
            if let Some(database) = name.database {
                return Err(Error::syntax_error(format!(
                    "Syntax error: unexpected . behind database {database}"
                )));
            }
            return show::create_database(session, &name.name);
        }
        Command::ShowCreate { kind, name } => return show::create(session, kind, full(name)),
        Command::ReloadDictionary(name) => renew::reload(session, name)?,
        Command::ReloadDictionaries => renew::reload_all(session)?,
        Command::RefreshDictionary { name, keys } => renew::refresh(session, name, &keys)?,
        Command::InvalidateDictionary { name, keys } => renew::invalidate(session, name, keys.as_deref())?,
        Command::Collection { name, change } => catalogue.change_collection(&name, change)?,
        Command::Use(database) => session.set_database(&database)?,
        Command::CreateDatabase { name, if_exists } => catalogue.create_database(&name, if_exists)?,
        Command::DropDatabase { name, if_missing } => drop::database(session, &name, if_missing)?,
        Command::ExplainEstimate { head } => return estimate(session, text, head).await,
        Command::Set(settings) => session.set(settings)?,
        Command::Query => return Err(Error::logical_error("A query is not a command")),
    }
    Ok(Output::empty())
}

/// The name with its database: the session's if none is written.
fn full_name(session: &Session, Name { database, name }: Name) -> FullName {
    FullName::new(database.unwrap_or_else(|| session.database()), name)
}

/// `INSERT INTO .. SELECT` and `INSERT INTO .. VALUES`.
async fn insert_query(session: &Session, into: InsertInto, text: &str, head: usize) -> Result<Output> {
    let name = full_name(session, into.name);
    let table = session.catalogue().local_table(&name.database, &name.name)?;
    let mut parsed = parse_query(text, head)?;
    values::agree(&mut parsed.statement, &table, into.columns.as_deref())?;
    let are_values = values::are_given(&parsed.statement);
    let insert = insert::query(session, &name, into.columns.as_deref(), parsed);
    let rows = insert.await.map_err(|error| if are_values { values::misread(error) } else { error })?;
    Ok(Output::of_insert(&rows))
}

/// `EXPLAIN ESTIMATE`: ClickHouse's columns without rows, as no table here has parts.
async fn estimate(session: &Session, text: &str, head: usize) -> Result<Output> {
    query::columns(session, text, head).await?;
    let count = || -> ArrayRef { Arc::new(UInt64Array::from(Vec::<u64>::new())) };
    Output::columns(vec![
        ("database", texts([])),
        ("table", texts([])),
        ("parts", count()),
        ("rows", count()),
        ("marks", count()),
    ])
}

fn texts(values: impl IntoIterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// ClickHouse's seven columns, two of which are filled for dictionaries and files.
async fn describe(session: &Session, name: Name) -> Result<Output> {
    let table = match &name.database {
        Some(database) => format!("{}.{}", quoted(database), quoted(&name.name)),
        None => quoted(&name.name),
    };
    let schema: Arc<Schema> = query::run(session, &format!("SELECT * FROM {table} LIMIT 0")).await?.schema;
    let rows = schema.fields().len();
    let empty = || texts(std::iter::repeat_n(String::new(), rows));
    Output::columns(vec![
        ("name", texts(schema.fields().iter().map(|field| field.name().clone()))),
        ("type", texts(schema.fields().iter().map(|field| pretty_type_name(field)))),
        ("default_type", empty()),
        ("default_expression", empty()),
        ("comment", empty()),
        ("codec_expression", empty()),
        ("ttl_expression", empty()),
    ])
}
