//! A session's answers to what the dialect asks of a name.

use granary_dialect::rewrite::Scope;
use granary_dialect::{FullName, Result};

use crate::catalogue::Catalogue;
use crate::settings::{Settings, value_of};

/// The user who asks, and the address the request came from.
pub struct SessionScope<'a> {
    /// The database of names without one.
    pub database: String,
    pub user: &'a str,
    /// Where names are looked up.
    pub catalogue: &'a Catalogue,
    /// The session's settings.
    pub settings: Settings,
}

impl Scope for SessionScope<'_> {
    fn database(&self) -> &str {
        &self.database
    }

    fn user(&self) -> &str {
        self.user
    }

    fn setting(&self, name: &str) -> Option<String> {
        value_of(name, &self.settings)
    }

    fn dictionary(&self, text: &str) -> Result<FullName> {
        self.catalogue.named(&self.database, text)
    }

    fn is_dictionary(&self, name: &FullName) -> bool {
        self.catalogue.is_dictionary(name)
    }
}
