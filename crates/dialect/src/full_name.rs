//! The full name of a table or dictionary.

use std::fmt;

/// A database, and the name of a table or dictionary in it. Either may have dots in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FullName {
    /// The database.
    pub database: String,
    /// The name in it.
    pub name: String,
}

impl FullName {
    /// The name `name` in `database`.
    pub fn new(database: impl Into<String>, name: impl Into<String>) -> Self {
        Self { database: database.into(), name: name.into() }
    }

    /// All names that are shown as `text`, each cut at another dot; the one with the shortest database first.
    pub fn readings(text: &str) -> impl Iterator<Item = FullName> {
        text.match_indices('.').map(|(dot, _)| Self::new(&text[..dot], &text[dot + 1..]))
    }
}

/// `database.name`.
impl fmt::Display for FullName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_each_name_that_it_shows() {
        let readings = |text| FullName::readings(text).collect::<Vec<_>>();
        assert_eq!(readings("d"), []);
        assert_eq!(readings("a.d"), [FullName::new("a", "d")]);
        assert_eq!(readings("a.b.d"), [FullName::new("a", "b.d"), FullName::new("a.b", "d")]);
        assert!(readings("a.b.d").iter().all(|name| name.to_string() == "a.b.d"));
    }
}
