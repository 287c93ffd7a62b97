//! DROP of dictionaries, tables, views and databases.

use granary_dialect::statement::{Dropped, Noun, OnConflict};
use granary_dialect::{FullName, Result};

use crate::session::Session;
use crate::settings::value_of;

/// Drops one object.
pub fn object(
    session: &Session,
    dropped: Dropped,
    name: &FullName,
    if_missing: OnConflict,
    if_empty: bool,
) -> Result<()> {
    let catalogue = session.catalogue();
    if if_empty {
        catalogue.check_empty(&name.database, &name.name)?;
    }
    let noun = noun_of(dropped);
    // For a name of another kind, the error of the drop comes first.
    if catalogue.entry(&name.database, &name.name).is_some_and(|entry| entry.noun() == noun) {
        check_unread(session, name, None)?;
    }
    match dropped {
        Dropped::Dictionary => catalogue.drop_dictionary(&name.database, &name.name, if_missing),
        Dropped::Table => catalogue.drop_table(&name.database, &name.name, if_missing),
        Dropped::View => catalogue.drop_view(&name.database, &name.name, if_missing),
    }
}

/// Drops a database with all that is in it.
pub fn database(session: &Session, name: &str, if_missing: OnConflict) -> Result<()> {
    let catalogue = session.catalogue();
    for (table, _) in catalogue.entries(name) {
        check_unread(session, &FullName::new(name, table), Some(name))?;
    }
    catalogue.drop_database(name, if_missing)?;
    session.leave_database(name);
    Ok(())
}

fn noun_of(dropped: Dropped) -> Noun {
    match dropped {
        Dropped::Dictionary => Noun::Dictionary,
        Dropped::Table | Dropped::View => Noun::Table,
    }
}

/// Refuses to take a name away from a dictionary that reads its rows there, unless that is in the database `going`,
/// which is dropped as well, or a setting allows it.
pub fn check_unread(session: &Session, name: &FullName, going: Option<&str>) -> Result<()> {
    match value_of("check_table_dependencies", &session.settings()).as_deref() {
        Some("0" | "false") => Ok(()),
        _ => session.catalogue().check_unread(name, going),
    }
}
