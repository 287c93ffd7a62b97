//! The rights of a session's user.

use granary_dialect::{Error, Result};

/// The statements that a user may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Statements that leave dictionaries and databases as they are.
    ReadOnly,
    /// All statements.
    #[default]
    Full,
}

/// The rights of a user.
#[derive(Debug, Clone, Default)]
pub struct Rights {
    /// The statements that the user may run.
    pub access: Access,
    /// The dictionaries that may be read, as `database.name`, where a `*` stands for any text; `None`: all. A user who
    /// may not read all of them may not change any.
    pub dictionaries: Option<Vec<String>>,
    /// Whether the user cannot raise the configuration's limits.
    pub is_bound: bool,
}

impl Rights {
    /// Whether a dictionary may be read.
    pub fn may_read(&self, full_name: &str) -> bool {
        let patterns = self.dictionaries.as_ref();
        patterns.is_none_or(|patterns| patterns.iter().any(|pattern| matches(full_name, pattern)))
    }

    /// # Errors
    /// ACCESS_DENIED if a dictionary may not be read.
    pub fn check_read(&self, user: &str, full_name: &str) -> Result<()> {
        if self.may_read(full_name) {
            return Ok(());
        }
        Err(Error::access_denied(format!(
            "{user}: Not enough privileges. To execute this query, it's necessary to have the grant dictGet ON {full_name}"
        )))
    }

    /// # Errors
    /// READONLY or ACCESS_DENIED if the entries of a dictionary may not be renewed.
    pub fn check_renew(&self, user: &str, full_name: &str) -> Result<()> {
        self.check_read(user, full_name)?;
        self.check_full_access()
    }

    fn check_full_access(&self) -> Result<()> {
        match self.access {
            Access::ReadOnly => Err(Error::readonly("Cannot execute query in readonly mode")),
            Access::Full => Ok(()),
        }
    }

    /// # Errors
    /// READONLY or ACCESS_DENIED if nothing may be changed.
    pub fn check_change(&self, user: &str) -> Result<()> {
        self.check_full_access()?;
        if self.dictionaries.is_some() {
            return Err(Error::access_denied(format!(
                "{user}: Not enough privileges. Whoever may read only some dictionaries may not change any"
            )));
        }
        Ok(())
    }
}

/// Whether a text matches a pattern, in which `*` stands for any text.
fn matches(text: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => text == pattern,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            let ends = std::iter::once(text.len()).chain(text.char_indices().map(|(at, _)| at));
            ends.into_iter().any(|at| matches(&text[at..], rest))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_dictionaries() {
        let rights = |patterns: &[&str]| Rights {
            dictionaries: Some(patterns.iter().map(|p| (*p).to_owned()).collect()),
            ..Rights::default()
        };
        assert!(Rights::default().may_read("default.users"));
        assert!(!rights(&[]).may_read("default.users"));
        let some = rights(&["default.users", "geo.*", "*.public_*_v2"]);
        for (name, may) in [
            ("default.users", true),
            ("default.users2", false),
            ("geo.cities", true),
            ("geography.cities", false),
            ("x.public_a_v2", true),
            ("x.public_a_v3", false),
        ] {
            assert_eq!(some.may_read(name), may, "{name}");
        }
        assert_eq!(some.check_read("ann", "other.d").unwrap_err().code, 497);
        assert_eq!(some.check_change("ann").unwrap_err().code, 497);
    }
}
