//! Dictionaries renewed: SYSTEM RELOAD, REFRESH and INVALIDATE, and all of them unloaded.

use granary_dialect::statement::Name;
use granary_dialect::{FullName, Result};
use granary_dict::{Format, LayoutKind, LoadState};

use crate::catalogue::{Catalogue, Entry};
use crate::session::Session;

/// `SYSTEM RELOAD DICTIONARY`.
pub fn reload(session: &Session, name: Name) -> Result<()> {
    let name = dictionary_name(session, name);
    session.rights().check_renew(session.user(), &name.to_string())?;
    session.catalogue().reload(&name.database, &name.name)
}

/// `SYSTEM RELOAD DICTIONARIES`. A dictionary that fails does not keep others from being reloaded, and one that is
/// dropped meanwhile counts as done.
pub fn reload_all(session: &Session) -> Result<()> {
    let catalogue = session.catalogue();
    let is_used = |entry: &Entry| !matches!(entry, Entry::Table(_)) && !is_unused(entry);
    let mut outcome = Ok(());
    for FullName { database, name } in names_of(catalogue, is_used) {
        let reloaded = catalogue.reload(&database, &name);
        if catalogue.entry(&database, &name).is_some() {
            outcome = outcome.and(reloaded);
        }
    }
    outcome
}

/// `SYSTEM UNLOAD DICTIONARIES`. A dictionary that is in use does not keep others from being unloaded.
pub fn unload_all(session: &Session) -> Result<()> {
    let catalogue = session.catalogue();
    catalogue.unload_all(names_of(catalogue, |entry| matches!(entry, Entry::Open(_))))
}

/// Asks the source for the rows of these keys, which are written tab separated.
pub fn refresh(session: &Session, name: Name, keys: &str) -> Result<()> {
    let dictionary = session.renewable(&dictionary_name(session, name))?;
    let keys = dictionary.key_reader(Format::TabSeparated).read_all(keys.as_bytes())?;
    dictionary.refresh(&keys)?;
    Ok(())
}

/// Forgets the rows of these keys, which are written tab separated; without keys, all rows.
pub fn invalidate(session: &Session, name: Name, keys: Option<&str>) -> Result<()> {
    let dictionary = session.renewable(&dictionary_name(session, name))?;
    let Some(keys) = keys else { return Ok(dictionary.reload()?) };
    let keys = dictionary.key_reader(Format::TabSeparated).read_all(keys.as_bytes())?;
    Ok(dictionary.invalidate(&keys)?)
}

/// The name with its database: if none is written, that where the dictionary is found.
fn dictionary_name(session: &Session, Name { database, name }: Name) -> FullName {
    match database {
        Some(database) => FullName::new(database, name),
        None => FullName::new(session.catalogue().home_of(&session.database(), &name), name),
    }
}

/// Names of the entries that `selects` is true for. The entries are dropped: a held `Arc` would count as use by a
/// query.
fn names_of(catalogue: &Catalogue, selects: impl Fn(&Entry) -> bool) -> Vec<FullName> {
    let mut names = Vec::new();
    for database in catalogue.databases() {
        let entries = catalogue.entries(&database).into_iter().filter(|(_, entry)| selects(entry));
        names.extend(entries.map(|(name, _)| FullName::new(&database, name)));
    }
    names
}

/// Whether a dictionary has nothing to reload: it has not been needed yet, or was unloaded. What was unloaded keeps its
/// rows on SSD alone, and these are to be forgotten.
fn is_unused(entry: &Entry) -> bool {
    match entry {
        Entry::Open(dictionary) => dictionary.status().state == LoadState::NotLoaded,
        Entry::Unloaded(unloaded) => !matches!(unloaded.definition.layout.kind, LayoutKind::Ssd(_)),
        Entry::Failed(_) | Entry::Table(_) => false,
    }
}
