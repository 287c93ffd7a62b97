//! The statements that are not queries.

mod create;
mod engines;
mod insert;
mod show;
mod values;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
use datafusion::arrow::datatypes::Schema;
use granary_dialect::statement::{Command, Dropped, Name, Noun, ObjectKind, Statement, parse_query, quoted};
use granary_dialect::types::pretty_type_name;
use granary_dialect::{Error, FullName, Result};
use granary_dict::{CreateDictionary, LoadState, parse_create};

use crate::catalogue::{Catalogue, Entry};
use crate::output::Output;
use crate::query;
use crate::session::Session;
use crate::settings::value_of;

/// Runs a command.
pub async fn run(session: &Session, command: Command, statement: &Statement) -> Result<Output> {
    let text = statement.text.as_str();
    let catalogue = session.catalogue();
    let full =
        |Name { database, name }: Name| FullName::new(database.unwrap_or_else(|| session.database()), name);
    let of_dictionary = |Name { database, name }: Name| match database {
        Some(database) => FullName::new(database, name),
        None => FullName::new(catalogue.home_of(&session.database(), &name), name),
    };
    match command {
        Command::CreateDictionary => {
            let CreateDictionary { existing, definition } = parse_create(text)?;
            let definition = definition.with_uuid();
            catalogue.create(CreateDictionary { existing, definition }, &session.database())?;
        }
        Command::Drop { dropped, names, if_missing, if_empty } => {
            for name in names.into_iter().map(full) {
                if if_empty {
                    catalogue.check_empty(&name.database, &name.name)?;
                }
                let noun = noun_of(dropped);
                // For a name of another kind, the error of the drop comes first.
                if catalogue.entry(&name.database, &name.name).is_some_and(|entry| entry.noun() == noun) {
                    check_unread(session, &name, None)?;
                }
                match dropped {
                    Dropped::Dictionary => {
                        catalogue.drop_dictionary(&name.database, &name.name, if_missing)?
                    }
                    Dropped::Table => catalogue.drop_table(&name.database, &name.name, if_missing)?,
                    Dropped::View => catalogue.drop_view(&name.database, &name.name, if_missing)?,
                }
            }
        }
        Command::CreateTable(table) => create::table(session, table, text).await?,
        Command::CreateView(view) => create::view(session, view, text).await?,
        Command::Comment { name, comment } => {
            let FullName { database, name } = full(name);
            catalogue.comment(&database, &name, comment)?;
        }
        Command::Insert { into, head } => {
            let name = full(into.name);
            let table = catalogue.local_table(&name.database, &name.name)?;
            let mut parsed = parse_query(text, head)?;
            values::agree(&mut parsed.statement, &table, into.columns.as_deref())?;
            let are_values = values::are_given(&parsed.statement);
            let insert = insert::query(session, &name, into.columns.as_deref(), parsed);
            let rows =
                insert.await.map_err(|error| if are_values { values::misread(error) } else { error })?;
            return Ok(Output::of_insert(&rows));
        }
        Command::InsertData { into, format } => {
            let name = full(into.name);
            let rows = insert::data(session, &name, into.columns, &format, &statement.data).await?;
            return Ok(Output::of_insert(&[rows]));
        }
        Command::Rename { noun, names } => {
            for (from, to) in names {
                let from = full(from);
                check_unread(session, &from, None)?;
                catalogue.rename(noun, &from, &full(to))?;
            }
        }
        Command::Exchange { noun, one, other } => catalogue.exchange(noun, &full(one), &full(other))?,
        Command::DetachDictionary { name, if_missing, permanently } => {
            catalogue.detach(&full(name), if_missing, permanently)?;
        }
        Command::AttachDictionary { name, if_exists } => catalogue.attach(&full(name), if_exists)?,
        Command::UnloadDictionary(name) => catalogue.unload(&full(name))?,
        Command::UnloadDictionaries => {
            for database in catalogue.databases() {
                for name in names_of(catalogue, &database, |entry| matches!(entry, Entry::Open(_))) {
                    catalogue.unload(&FullName::new(&database, name))?;
                }
            }
        }
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
        Command::ReloadDictionary(name) => {
            let name = of_dictionary(name);
            session.rights().check_renew(session.user(), &name.to_string())?;
            catalogue.reload(&name.database, &name.name)?;
        }
        Command::ReloadDictionaries => {
            // A dictionary that fails does not keep others from being reloaded.
            let mut outcome = Ok(());
            for database in catalogue.databases() {
                let is_used = |entry: &Entry| !matches!(entry, Entry::Table(_)) && !is_unused(entry);
                for name in names_of(catalogue, &database, is_used) {
                    outcome = outcome.and(catalogue.reload(&database, &name));
                }
            }
            outcome?;
        }
        Command::RefreshDictionary { name, keys } => {
            let dictionary = session.renewable(&of_dictionary(name))?;
            dictionary.refresh(
                &dictionary.key_reader(granary_dict::Format::TabSeparated).read_all(keys.as_bytes())?,
            )?;
        }
        Command::InvalidateDictionary { name, keys } => {
            let dictionary = session.renewable(&of_dictionary(name))?;
            match keys {
                None => dictionary.reload()?,
                Some(keys) => {
                    let keys = dictionary
                        .key_reader(granary_dict::Format::TabSeparated)
                        .read_all(keys.as_bytes())?;
                    dictionary.invalidate(&keys)?;
                }
            }
        }
        Command::Collection { name, change } => catalogue.change_collection(&name, change)?,
        Command::Use(database) => session.set_database(&database)?,
        Command::CreateDatabase { name, if_exists } => catalogue.create_database(&name, if_exists)?,
        Command::DropDatabase { name, if_missing } => {
            for (table, _) in catalogue.entries(&name) {
                check_unread(session, &FullName::new(&name, table), Some(&name))?;
            }
            catalogue.drop_database(&name, if_missing)?;
            session.leave_database(&name);
        }
        Command::ExplainEstimate { head } => {
            query::columns(session, text, head).await?;
            let count = || -> ArrayRef { Arc::new(UInt64Array::from(Vec::<u64>::new())) };
            return Output::columns(vec![
                ("database", texts([])),
                ("table", texts([])),
                ("parts", count()),
                ("rows", count()),
                ("marks", count()),
            ]);
        }
        Command::Set(settings) => session.set(settings)?,
        Command::Query => return Err(Error::logical_error("A query is not a command")),
    }
    Ok(Output::empty())
}

fn noun_of(dropped: Dropped) -> Noun {
    match dropped {
        Dropped::Dictionary => Noun::Dictionary,
        Dropped::Table | Dropped::View => Noun::Table,
    }
}

/// Names of the entries that `is_meant` selects. The entries are dropped: a held `Arc` would count as use by a query.
fn names_of(catalogue: &Catalogue, database: &str, is_meant: impl Fn(&Entry) -> bool) -> Vec<String> {
    let entries = catalogue.entries(database).into_iter();
    entries.filter(|(_, entry)| is_meant(entry)).map(|(name, _)| name).collect()
}

/// Whether a dictionary has not been needed yet: it has nothing to reload.
fn is_unused(entry: &Entry) -> bool {
    matches!(entry, Entry::Open(dictionary) if dictionary.status().state == LoadState::NotLoaded)
}

/// Refuses to take a name away from a dictionary that reads its rows there, unless that is in the database `going`,
/// which is dropped as well, or a setting allows it.
fn check_unread(session: &Session, name: &FullName, going: Option<&str>) -> Result<()> {
    match value_of("check_table_dependencies", &session.settings()).as_deref() {
        Some("0" | "false") => Ok(()),
        _ => session.catalogue().check_unread(name, going),
    }
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
