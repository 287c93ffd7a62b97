//! The dictionaries that texts name: `dictGet('db.d', ..)` says `db.d`, where either part may have dots in it.

use std::sync::Arc;

use granary_dialect::statement::Noun;
use granary_dialect::{Error, FullName, Result};
use granary_dict::Dictionary;

use super::{Catalogue, not_found};

impl Catalogue {
    /// The full name of the dictionary that a text names: `database.name`, or `name` in the current database
    /// `database`. If there is none, the name that a text without further dots would mean.
    ///
    /// # Errors
    /// BAD_ARGUMENTS if it may be read as several dictionaries.
    pub fn named(&self, database: &str, text: &str) -> Result<FullName> {
        if let Some(name) = self.shown_as(text)? {
            return Ok(name);
        }
        let here = FullName::new(self.home_of(database, text), text);
        match FullName::readings(text).next() {
            Some(first) if !self.is_dictionary(&here) => Ok(first),
            _ => Ok(here),
        }
    }

    /// The dictionary whose full name a text is.
    ///
    /// # Errors
    /// BAD_ARGUMENTS if there is none, or several; or the error of opening it.
    pub fn dictionary_shown_as(&self, text: &str) -> Result<Arc<Dictionary>> {
        let name = self.shown_as(text)?.ok_or_else(|| not_found(text))?;
        self.dictionary(&name)
    }

    /// Refuses a name that no dictionary has.
    ///
    /// # Errors
    /// BAD_ARGUMENTS.
    pub fn check_dictionary(&self, name: &FullName) -> Result<()> {
        if self.is_dictionary(name) { Ok(()) } else { Err(not_found(name)) }
    }

    /// Whether a dictionary has this name.
    pub fn is_dictionary(&self, name: &FullName) -> bool {
        self.entry(&name.database, &name.name).is_some_and(|entry| entry.noun() == Noun::Dictionary)
    }

    fn shown_as(&self, text: &str) -> Result<Option<FullName>> {
        let mut found = FullName::readings(text).filter(|name| self.is_dictionary(name));
        match (found.next(), found.next()) {
            (Some(one), Some(other)) => Err(Error::bad_arguments(format!(
                "Dictionary (`{text}`) is ambiguous: it is `{}` in database `{}`, or `{}` in database `{}`",
                one.name, one.database, other.name, other.database
            ))),
            (found, _) => Ok(found),
        }
    }
}
