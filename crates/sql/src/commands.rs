//! The statements that are not queries.

mod create;
mod insert;
mod materialized;
mod values;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray, UInt8Array, UInt64Array};
use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::TableProvider;
use granary_dict::{Form, LoadState, parse_create};

use crate::catalogue::{DEFAULT_DATABASE, Entry};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::query;
use crate::session::Session;
use crate::statement::{Command, Name, Statement, quoted};
use crate::types::pretty_type_name;

/// Runs one.
pub async fn run(session: &Session, command: Command, statement: &Statement) -> Result<Output> {
    let text = statement.text.as_str();
    let catalogue = session.catalogue();
    let full = |name: Name| (name.database.unwrap_or_else(|| session.database()), name.name);
    match command {
        Command::CreateDictionary => catalogue.create(parse_create(text)?, &session.database())?,
        Command::DropDictionary { name, missing } => {
            let (database, name) = full(name);
            catalogue.drop_dictionary(&database, &name, missing)?;
        }
        Command::CreateTable(table) => create::table(session, table, text).await?,
        Command::CreateView(view) => create::view(session, view, text).await?,
        Command::CreateMaterializedView(view) => materialized::create(session, view, text).await?,
        Command::ModifyQuery { name, head } => materialized::modify(session, full(name), text, head).await?,
        Command::DropView { name, missing } => {
            let (database, name) = full(name);
            catalogue.drop_view(&database, &name, missing)?;
        }
        Command::Comment { name, comment } => {
            let (database, name) = full(name);
            catalogue.comment(&database, &name, comment)?;
        }
        Command::Insert { into, head } => {
            let name = full(into.name);
            let table = catalogue.table_to_fill(&name.0, &name.1)?;
            let mut parsed = query::parse(text, head)?;
            values::agree(&mut parsed.0, &table.schema(), into.columns.as_deref());
            let mut rows = Vec::new();
            let mut output = query::run_parsed(session, parsed).await?;
            while let Some(batch) = output.next().await {
                rows.push(batch?);
            }
            insert::put(session, &name, into.columns.as_deref(), &rows, 0).await?;
            return Ok(Output::of_insert(&rows));
        }
        Command::InsertData { into, format } => {
            let name = full(into.name);
            let rows = insert::data(session, &name, into.columns, &format, &statement.data).await?;
            return Ok(Output::of_insert(&[rows]));
        }
        Command::Rename { noun, names } => {
            for (from, to) in names {
                catalogue.rename(noun, &full(from), &full(to))?;
            }
        }
        Command::Exchange { noun, one, other } => catalogue.exchange(noun, &full(one), &full(other))?,
        Command::Detach { noun, name, missing, permanently } => {
            catalogue.detach(noun, &full(name), missing, permanently)?;
        }
        Command::Attach { noun, name, exists } => catalogue.attach(noun, &full(name), exists)?,
        Command::UnloadDictionary { name } => catalogue.unload(&full(name))?,
        Command::UnloadDictionaries => {
            for database in catalogue.databases() {
                for (name, entry) in catalogue.entries(&database) {
                    let is_open = matches!(entry, Entry::Open(_));
                    drop(entry);
                    if is_open {
                        catalogue.unload(&(database.clone(), name))?;
                    }
                }
            }
        }
        Command::Truncate { name } => {
            let (database, name) = full(name);
            catalogue.local_table(&database, &name)?.truncate();
        }
        Command::Optimize { name } => {
            let (database, name) = full(name);
            catalogue.local_table(&database, &name)?;
        }
        Command::ShowTables { database, like } => {
            return names(session, database, like, |_| true);
        }
        Command::DropTable { name, missing } => {
            let (database, name) = full(name);
            catalogue.drop_table(&database, &name, missing)?;
        }
        Command::ExistsDictionary { name } => {
            let (database, name) = full(name);
            let exists = u8::from(catalogue.entry(&database, &name).is_some());
            return Output::columns(vec![("result", Arc::new(UInt8Array::from(vec![exists])))]);
        }
        Command::Describe { name } => return describe(session, name).await,
        Command::ShowDictionaries { database, like } => {
            return names(session, database, like, |entry| !matches!(entry, Entry::Table(_)));
        }
        Command::ShowDatabases => return Output::columns(vec![("name", texts(catalogue.databases()))]),
        Command::ShowCreate { name } => {
            let (database, name) = full(name);
            session.rights().check_read(session.user(), &format!("{database}.{name}"))?;
            let sql = match catalogue.entry(&database, &name) {
                Some(Entry::Open(dictionary)) => dictionary.definition().to_sql(),
                Some(Entry::Unloaded(definition)) => definition.to_sql(),
                Some(Entry::Failed(failure)) => match failure.definition {
                    Some(definition) => definition.to_sql(),
                    None => return Err(failure.error),
                },
                Some(Entry::Table(table)) => table.to_sql(&database, &name, Form::Lines),
                None => {
                    catalogue.check_database(&database)?;
                    return Err(Error::cannot_get_create_query(format!(
                        "There is no dictionary {name} in database {database}"
                    )));
                }
            };
            let output = Output::columns(vec![("statement", texts([sql]))])?;
            return Ok(output);
        }
        Command::ReloadDictionary { name } => {
            let (database, name) = full(name);
            session.rights().check_renew(session.user(), &format!("{database}.{name}"))?;
            catalogue.reload(&database, &name)?;
        }
        Command::ReloadDictionaries => {
            // One that fails keeps no other from being loaded anew.
            let mut outcome = Ok(());
            for database in catalogue.databases() {
                for (name, entry) in catalogue.entries(&database) {
                    if !matches!(entry, Entry::Table(_)) && !is_unused(&entry) {
                        outcome = outcome.and(catalogue.reload(&database, &name));
                    }
                }
            }
            outcome?;
        }
        Command::RefreshDictionary { name, keys } => {
            let (database, name) = full(name);
            let dictionary = session.dictionary_to_renew(&format!("{database}.{name}"))?;
            dictionary.refresh(
                &dictionary.key_reader(granary_dict::Format::TabSeparated).read_all(keys.as_bytes())?,
            )?;
        }
        Command::InvalidateDictionary { name, keys } => {
            let (database, name) = full(name);
            let dictionary = session.dictionary_to_renew(&format!("{database}.{name}"))?;
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
        Command::Use { database } => session.set_database(&database)?,
        Command::CreateDatabase { name, exists } => catalogue.create_database(&name, exists)?,
        Command::DropDatabase { name, missing } => {
            catalogue.drop_database(&name, missing)?;
            if session.database() == name {
                session.set_database(DEFAULT_DATABASE)?;
            }
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
        Command::Set { settings } => session.set(settings)?,
        Command::Query => return Err(Error::logical_error("A query is not a command")),
    }
    Ok(Output::empty())
}

/// Whether nobody has needed a dictionary yet: there is nothing in it to be read anew.
fn is_unused(entry: &Entry) -> bool {
    matches!(entry, Entry::Open(dictionary) if dictionary.status().state == LoadState::NotLoaded)
}

/// The names in a database that the user may read and a pattern matches.
fn names(
    session: &Session,
    database: Option<String>,
    like: Option<String>,
    shown: impl Fn(&Entry) -> bool,
) -> Result<Output> {
    let database = database.unwrap_or_else(|| session.database());
    session.catalogue().check_database(&database)?;
    let entries = session.catalogue().entries(&database).into_iter();
    let names = entries
        .filter(|(_, entry)| shown(entry))
        .map(|(name, _)| name)
        .filter(|name| session.rights().may_read(&format!("{database}.{name}")))
        .filter(|name| like.as_deref().is_none_or(|pattern| is_like(name, pattern)));
    Output::columns(vec![("name", texts(names))])
}

fn texts(values: impl IntoIterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// ClickHouse's seven columns, of which dictionaries and files fill two.
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

/// SQL's LIKE: `%` is any text, `_` any character.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('%') => {
            let pattern = rest.as_str();
            std::iter::once(text.len())
                .chain(text.char_indices().map(|(at, _)| at))
                .any(|at| is_like(&text[at..], pattern))
        }
        Some(wanted) => {
            let mut letters = text.chars();
            letters.next().is_some_and(|letter| wanted == '_' || letter == wanted)
                && is_like(letters.as_str(), rest.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn patterns() {
        for (text, pattern, matches) in [
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "a_c", true),
            ("abc", "ab", false),
            ("", "%", true),
        ] {
            assert_eq!(is_like(text, pattern), matches, "{text} LIKE {pattern}");
        }
    }
}
