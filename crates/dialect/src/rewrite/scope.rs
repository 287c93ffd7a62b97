//! Answers to what a query's text leaves open.

/// The session of a query: its user, and what names stand for.
pub trait Scope {
    /// The database of names without one.
    fn database(&self) -> &str;

    /// The user's name.
    fn user(&self) -> &str;

    /// The value of a setting, if there is one of this name.
    fn setting(&self, name: &str) -> Option<String>;

    /// `database.name` of a dictionary named without a database.
    fn dictionary(&self, name: &str) -> String;

    /// Whether a dictionary has this name.
    fn is_dictionary(&self, database: &str, name: &str) -> bool;
}
