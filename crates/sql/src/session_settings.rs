//! The database, settings and parameters that statements run with.

use granary_dialect::statement::Parameters;
use granary_dialect::{Error, Result};

use crate::limits::{SESSION_PARAMETERS_MAX, SESSION_SETTINGS_BYTES_MAX};
use crate::settings::Settings;

/// Prefix by which SET tells a query parameter from a setting.
const PARAMETER: &str = "param_";

/// The database, settings and query parameters that USE and SET chose, or that came with one query.
#[derive(Debug, Clone, Default)]
pub struct SessionSettings {
    /// The database of names without one; `None`: none was chosen.
    pub database: Option<String>,
    /// Each setting once.
    pub settings: Settings,
    /// The values of `{name:Type}`.
    pub parameters: Parameters,
}

impl SessionSettings {
    /// What SET chose. Names that begin with `param_` are parameters.
    pub fn of(said: Settings) -> SessionSettings {
        let mut chosen = SessionSettings::default();
        for (name, value) in said {
            match name.strip_prefix(PARAMETER) {
                Some(parameter) => drop(chosen.parameters.insert(parameter.to_owned(), value)),
                None => chosen.set(name, value),
            }
        }
        chosen
    }

    /// Merges later choices in; they replace earlier ones of the same name.
    pub fn take(&mut self, later: SessionSettings) {
        self.database = later.database.or(self.database.take());
        self.parameters.extend(later.parameters);
        for (name, value) in later.settings {
            self.set(name, value);
        }
    }

    /// Merges what a session is to keep in, unless it keeps too much then.
    ///
    /// # Errors
    /// LIMIT_EXCEEDED; nothing has changed then.
    pub fn keep(&mut self, later: SessionSettings) -> Result<()> {
        let mut chosen = self.clone();
        chosen.take(later);
        if chosen.parameters.len() > SESSION_PARAMETERS_MAX {
            let text = format!("A session keeps at most {SESSION_PARAMETERS_MAX} query parameters");
            return Err(Error::limit_exceeded(text));
        }
        if chosen.bytes() > SESSION_SETTINGS_BYTES_MAX {
            let text = format!(
                "A session keeps at most {SESSION_SETTINGS_BYTES_MAX} bytes of query parameters and settings, their \
                 names included"
            );
            return Err(Error::limit_exceeded(text));
        }
        *self = chosen;
        Ok(())
    }

    /// Bytes of all names and values.
    fn bytes(&self) -> usize {
        let settings = self.settings.iter().map(|(name, value)| (name, value));
        settings.chain(&self.parameters).map(|(name, value)| name.len() + value.len()).sum()
    }

    fn set(&mut self, name: String, value: String) {
        match self.settings.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.settings.push((name, value)),
        }
    }

    /// Whether nothing but these settings was chosen.
    pub fn is_only(&self, settings: &[(String, String)]) -> bool {
        self.database.is_none() && self.parameters.is_empty() && self.settings == settings
    }
}
