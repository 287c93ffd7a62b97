//! Answers to what a query's text leaves open.

use crate::error::Result;
use crate::full_name::FullName;

/// The session of a query: its user, and what names stand for.
pub trait Scope {
    /// The database of names without one.
    fn database(&self) -> &str;

    /// The user's name.
    fn user(&self) -> &str;

    /// The value of a setting, if there is one of this name.
    fn setting(&self, name: &str) -> Option<String>;

    /// The dictionary that a text names: `name`, or `database.name`.
    ///
    /// # Errors
    /// BAD_ARGUMENTS if several are shown so.
    fn dictionary(&self, text: &str) -> Result<FullName>;

    /// Whether a dictionary has this name.
    fn is_dictionary(&self, name: &FullName) -> bool;
}
