//! The questions that a query's text leaves open.

/// The session that a query is asked in: says who asks, and what names stand for.
pub trait Scope {
    /// The database of names without one.
    fn database(&self) -> &str;

    /// The user's name.
    fn user(&self) -> &str;

    /// The value of a setting, if there is one of this name.
    fn setting(&self, name: &str) -> Option<String>;

    /// `database.name` of a dictionary that is named without a database.
    fn dictionary(&self, name: &str) -> String;

    /// Whether a name is that of a dictionary.
    fn is_dictionary(&self, database: &str, name: &str) -> bool;
}
