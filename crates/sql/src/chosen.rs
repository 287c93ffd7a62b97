//! What statements are run with.

use granary_dialect::statement::Parameters;

use crate::settings::Settings;

/// How SET tells a query parameter from a setting.
const PARAMETER: &str = "param_";

/// The database, settings and query parameters that USE and SET chose, or that came with one query.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    /// The database of names without one; `None`: nobody has said.
    pub database: Option<String>,
    /// Each setting once.
    pub settings: Settings,
    /// The values of `{name:Type}`.
    pub parameters: Parameters,
}

impl Chosen {
    /// What SET says. Names that begin with `param_` are parameters.
    pub fn of(said: Settings) -> Chosen {
        let mut chosen = Chosen::default();
        for (name, value) in said {
            match name.strip_prefix(PARAMETER) {
                Some(parameter) => drop(chosen.parameters.insert(parameter.to_owned(), value)),
                None => chosen.set(name, value),
            }
        }
        chosen
    }

    /// Takes in what was said later, in place of what was said of the same before.
    pub fn take(&mut self, later: Chosen) {
        self.database = later.database.or(self.database.take());
        self.parameters.extend(later.parameters);
        for (name, value) in later.settings {
            self.set(name, value);
        }
    }

    fn set(&mut self, name: String, value: String) {
        match self.settings.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.settings.push((name, value)),
        }
    }

    /// Whether nothing but these settings was said.
    pub fn is_only(&self, settings: &[(String, String)]) -> bool {
        self.database.is_none() && self.parameters.is_empty() && self.settings == settings
    }
}
