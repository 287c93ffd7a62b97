//! Declarations of the kinds of sources. A new one is a module with a [`SourceKind`], and a line in [`KINDS`].

use super::config::SourceConfig;
use super::{SourceFactory, select};
use crate::config::{Layout, Parameter, Parameters, Values};
use crate::definition::{Definition, Structure};
use crate::environment::Environment;
use crate::error::{Code, DictError, built_without, only_in_clickhouse};
use std::time::Duration;

/// All kinds of sources, in the order in which errors list them.
static KINDS: &[SourceKind] = &[
    super::sqlite::KIND,
    super::postgres::KIND,
    super::mysql::KIND,
    super::clickhouse::KIND,
    super::http::KIND,
    super::redis::KIND,
    #[cfg(feature = "mongodb")]
    super::mongodb::KIND,
    super::executable::KIND,
    #[cfg(feature = "executable-pool")]
    super::executable_pool::KIND,
    super::file::KIND,
    #[cfg(feature = "full-load")]
    super::yaml::KIND,
    #[cfg(feature = "full-load")]
    super::null::KIND,
];

/// Kinds that a program may be built without, and their features.
const OPTIONAL: [(&str, &str); 4] = [
    ("MONGODB", "mongodb"),
    ("EXECUTABLE_POOL", "executable-pool"),
    ("YAMLREGEXPTREE", "full-load"),
    ("NULL", "full-load"),
];

/// ClickHouse's kinds that Granary does not have.
const ONLY_IN_CLICKHOUSE: [&str; 4] = ["ODBC", "JDBC", "CASSANDRA", "YTSAURUS"];

/// A kind of source: its name, its parameters, and how it is opened.
pub(crate) struct SourceKind {
    /// The name in DDL; in small letters, that of the element in XML.
    pub name: &'static str,
    pub parameters: Parameters,
    /// Whether NAME may name a collection of its parameters.
    pub takes_collections: bool,
    /// ClickHouse's parameters of tables, not of dictionaries, that a collection for both may have: they are dropped.
    pub ignored_of_collections: &'static [&'static str],
    /// Whether SETTINGS of a dictionary are those of queries in ClickHouse.
    pub heeds_settings: bool,
    /// Checks the parameters against each other, and sets defaults that depend on other parameters.
    pub complete: fn(&mut Values) -> Result<(), DictError>,
    /// Refuses layouts that the source cannot fill.
    pub fits: fn(&Values, &Layout) -> Result<(), DictError>,
    /// Checks the parameters against the columns that the source has to give.
    pub validate: fn(&Values, &Structure) -> Result<(), DictError>,
    /// What `system.dictionaries` shows as the source; no secrets.
    pub describe: fn(&Values) -> String,
    /// Whether the source is the tables of the dictionary's own server.
    pub is_own: fn(&Values) -> bool,
    /// Readies the source, which is not asked yet.
    pub open: fn(&Values, Opening<'_>) -> Result<SourceFactory, DictError>,
}

/// What a source is opened for.
pub(crate) struct Opening<'a> {
    pub definition: &'a Definition,
    pub environment: &'a Environment,
    /// The columns that it has to give.
    pub structure: Structure,
    /// How long a request may take.
    pub timeout: Duration,
}

impl SourceKind {
    pub const fn new(
        name: &'static str,
        groups: &'static [&'static [Parameter]],
        describe: fn(&Values) -> String,
        open: fn(&Values, Opening<'_>) -> Result<SourceFactory, DictError>,
    ) -> SourceKind {
        SourceKind {
            name,
            parameters: Parameters { groups, ignored: &[], refused: &[] },
            takes_collections: false,
            ignored_of_collections: &[],
            heeds_settings: false,
            complete: |_| Ok(()),
            fits: |_, _| Ok(()),
            validate: |_, _| Ok(()),
            describe,
            is_own: |_| false,
            open,
        }
    }

    pub const fn ignoring(self, ignored: &'static [&'static str]) -> SourceKind {
        SourceKind { parameters: Parameters { ignored, ..self.parameters }, ..self }
    }

    pub const fn refusing(self, refused: &'static [(&'static str, &'static str)]) -> SourceKind {
        SourceKind { parameters: Parameters { refused, ..self.parameters }, ..self }
    }

    /// The kind of this name.
    ///
    /// # Errors
    /// `SUPPORT_IS_DISABLED` if the program was built without it, `NOT_IMPLEMENTED` if only ClickHouse has it;
    /// `UNKNOWN_ELEMENT_IN_CONFIG` lists the names that there are.
    pub fn named(name: &str) -> Result<&'static SourceKind, DictError> {
        if let Some(kind) = KINDS.iter().find(|kind| kind.name == name) {
            return Ok(kind);
        }
        if let Some((_, feature)) = OPTIONAL.iter().find(|(optional, _)| *optional == name) {
            return Err(built_without("SOURCE", name, feature));
        }
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let names = names.join(", ");
        if ONLY_IN_CLICKHOUSE.contains(&name) {
            return Err(only_in_clickhouse("SOURCE", name, &names));
        }
        Err(DictError::new(
            Code::UnknownElementInConfig,
            format!("SOURCE: unknown dictionary source type {name}; allowed are {names}"),
        ))
    }

    /// Whether it is asked in SQL, and computes expressions.
    pub fn is_sql(&self) -> bool {
        self.parameters.find(select::QUERY).is_some()
    }

    /// Checks the parameters against the columns that the source has to give.
    pub fn check(&self, values: &Values, structure: &Structure) -> Result<(), DictError> {
        match self.is_sql() {
            true => select::validate(self.name, values)?,
            false => self.refuse_expressions(structure)?,
        }
        (self.validate)(values, structure)
    }

    fn refuse_expressions(&self, structure: &Structure) -> Result<(), DictError> {
        match structure.attributes.iter().find(|attribute| attribute.expression.is_some()) {
            None => Ok(()),
            Some(attribute) => Err(DictError::new(
                Code::UnsupportedMethod,
                format!(
                    "Dictionary source of type `{}` does not support attribute expressions (attribute {})",
                    self.name.to_lowercase(),
                    attribute.name
                ),
            )),
        }
    }
}

/// The factory of what SOURCE(..) says.
///
/// # Errors
/// What the environment does not allow; the source itself is not asked yet.
pub(crate) fn factory(
    definition: &Definition,
    environment: &Environment,
) -> Result<SourceFactory, DictError> {
    let source: &SourceConfig = &definition.source;
    let values = source.values().ok_or_else(|| {
        DictError::bad_arguments(format!("{source:?}: its named collection has not been looked up"))
    })?;
    let name = definition.full_name();
    if values.get(select::TABLE) == Some("") {
        return Ok(std::sync::Arc::new(move || {
            Err(DictError::bad_arguments(format!("Dictionary {name}: its source has an empty TABLE")))
        }));
    }
    // A request that is still running when its lookup has given up may answer late, but not for ever.
    let timeout = Duration::from_millis(2 * definition.layout.update.query_wait_timeout_ms);
    let structure = definition.asked_structure();
    (source.kind().open)(values, Opening { definition, environment, structure, timeout })
}
