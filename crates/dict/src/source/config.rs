//! SOURCE(..): a kind of source and its parameters, which stand in the definition or in a named collection.

use super::kind::SourceKind;
use super::select::Updates;
use super::settings::{self, SettingsFor};
use crate::config::{Collections, Layout, Node, Parameters, Value, Values, shown};
use crate::definition::Structure;
use crate::error::DictError;
use std::fmt;

/// A source and its parameters.
#[derive(Clone)]
pub struct SourceConfig {
    kind: &'static SourceKind,
    /// `None`: the named collection has not been looked up yet.
    values: Option<Values>,
    named: Option<FromCollection>,
}

/// The written parameters of a source that takes others from a named collection.
#[derive(Clone, PartialEq)]
struct FromCollection {
    collection: String,
    /// The parameters as DDL or XML has them, the collection's name too.
    written: Vec<Node>,
}

/// The parameter that names the collection.
const NAME: &str = "NAME";
/// The parameter that names a database of the source.
const DATABASE: &str = "DB";
/// Stands for the dictionary's own database, until that is known.
pub(crate) const CURRENT_DATABASE: &str = "currentDatabase()";

impl SourceConfig {
    /// Reads the one element inside SOURCE(..) or `<source>`.
    pub(crate) fn from_node(node: &Node) -> Result<SourceConfig, DictError> {
        let kind = SourceKind::named(&node.name)?;
        let written = node.settings("SOURCE")?;
        let name = written.iter().find(|node| kind.takes_collections && node.name == NAME);
        match name.map(|node| &node.value) {
            Some(Value::Text(name)) => {
                let named = FromCollection { collection: name.clone(), written: written.to_vec() };
                Ok(SourceConfig { kind, values: None, named: Some(named) })
            }
            _ => Ok(SourceConfig { kind, values: Some(read(kind, written)?), named: None }),
        }
    }

    /// Takes the parameters that are not written from the named collection, if one is named.
    ///
    /// # Errors
    /// `NAMED_COLLECTION_DOESNT_EXIST`, and what is wrong with the parameters.
    pub(crate) fn fill(&mut self, collections: &Collections) -> Result<(), DictError> {
        let Some(FromCollection { collection, written }) = &self.named else { return Ok(()) };
        let plain = |name: &str| {
            let parameter = self.kind.parameters.find(name);
            parameter.map_or_else(|| name.to_string(), |parameter| parameter.name.to_string())
        };
        let mut nodes: Vec<Node> = written.iter().filter(|node| node.name != NAME).cloned().collect();
        let kept = collections.get(collection)?;
        let kept = kept.iter().map(|(name, value)| Node::text(&plain(&name.to_uppercase()), value));
        let is_needed = |kept: &Node| {
            !self.kind.ignored_of_collections.contains(&kept.name.as_str())
                && !nodes.iter().any(|node| plain(&node.name) == kept.name)
        };
        let kept: Vec<Node> = kept.filter(is_needed).collect();
        nodes.extend(kept);
        let values = read(self.kind, &nodes)
            .map_err(|error| error.within(format_args!("With the named collection {collection}")))?;
        self.values = Some(values);
        Ok(())
    }

    pub(crate) fn kind(&self) -> &'static SourceKind {
        self.kind
    }

    /// The values of its parameters; `None` until its named collection has been looked up.
    pub(crate) fn values(&self) -> Option<&Values> {
        self.values.as_ref()
    }

    /// The source's name in DDL.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// A parameter's value, its default if it was not given.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.values()?.get(name)
    }

    /// The parameters as DDL writes them; `hidden` stands in place of secrets if given.
    pub(crate) fn to_node(&self, hidden: Option<&str>) -> Node {
        let nodes = match (&self.named, &self.values) {
            (Some(named), _) => shown_nodes(&named.written, &self.kind.parameters, hidden),
            (None, values) => values.as_ref().map(|values| values.nodes(hidden)).unwrap_or_default(),
        };
        self.node(nodes)
    }

    /// The parameters that decide which rows there are, without who asks for them.
    pub(crate) fn to_anonymous_node(&self) -> Node {
        match &self.values {
            Some(values) => self.node(values.anonymous().nodes(None)),
            None => self.to_node(None),
        }
    }

    fn node(&self, nodes: Vec<Node>) -> Node {
        Node { name: self.kind.name.to_string(), value: Value::Group(nodes) }
    }

    /// What `system.dictionaries` shows as the source; no secrets.
    pub fn describe(&self) -> String {
        self.values().map_or_else(String::new, self.kind.describe)
    }

    /// Refuses a layout that the source cannot fill.
    pub(crate) fn check_layout(&self, layout: &Layout) -> Result<(), DictError> {
        self.values().map_or(Ok(()), |values| (self.kind.fits)(values, layout))
    }

    /// Checks the source against the columns it has to give.
    pub fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        self.values().map_or(Ok(()), |values| self.kind.check(values, structure))
    }

    /// Refuses SETTINGS that would change which rows or values are read.
    pub(crate) fn check_settings(&self, settings: &[(String, String)]) -> Result<(), DictError> {
        let asked = match self.values() {
            Some(values) if (self.kind.is_own)(values) => SettingsFor::OwnTables,
            Some(_) if self.kind.heeds_settings => SettingsFor::Clickhouse,
            _ => SettingsFor::Other,
        };
        settings::check(settings, asked)
    }

    /// How changed rows are found, if UPDATE_FIELD is given.
    pub(crate) fn updates(&self) -> Option<Updates> {
        Updates::of(self.values()?)
    }

    /// Whether it reads this table of the dictionary's own server.
    pub(crate) fn reads_own_table(&self, database: &str, name: &str) -> bool {
        self.values().is_some_and(|values| {
            (self.kind.is_own)(values)
                && values.text(DATABASE) == database
                && values.get(super::select::TABLE) == Some(name)
        })
    }

    /// Sets the database of a source that names the dictionary's own one.
    pub(crate) fn set_default_database(&mut self, database: &str) {
        if let Some(values) = &mut self.values
            && values.text(DATABASE) == CURRENT_DATABASE
        {
            values.set(DATABASE, database);
        }
        let written = self.named.iter_mut().flat_map(|named| &mut named.written);
        for node in written.filter(|node| node.value == Value::Text(CURRENT_DATABASE.to_string())) {
            node.value = Value::Text(database.to_string());
        }
    }

    /// Marks all its parameters as written, defaults too.
    pub(crate) fn spell_out(&mut self) {
        self.values.iter_mut().for_each(Values::spell_out);
    }

    /// Marks the database as written, so that a source that names none keeps it wherever the dictionary moves. One that
    /// takes its other parameters from a named collection has it beside these.
    pub(crate) fn pin_database(&mut self) {
        if let (Some(named), Some(values)) = (&mut self.named, &self.values)
            && (self.kind.is_own)(values)
            && !values.is_written(DATABASE)
        {
            named.written.push(Node::text(DATABASE, values.text(DATABASE)));
        }
        self.values.iter_mut().for_each(|values| values.pin(DATABASE));
    }
}

impl PartialEq for SourceConfig {
    fn eq(&self, other: &SourceConfig) -> bool {
        self.kind.name == other.kind.name && self.values == other.values && self.named == other.named
    }
}

impl fmt::Debug for SourceConfig {
    /// Without parameters, among which there are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SOURCE({}: {})", self.kind.name, self.describe())
    }
}

fn read(kind: &SourceKind, nodes: &[Node]) -> Result<Values, DictError> {
    let mut values = Values::read(kind.name, nodes, &kind.parameters, None)?;
    super::select::normalize(&mut values);
    (kind.complete)(&mut values)?;
    Ok(values)
}

/// The written parameters, without their secrets.
fn shown_nodes(nodes: &[Node], parameters: &Parameters, hidden: Option<&str>) -> Vec<Node> {
    let value = |node: &Node| match (&node.value, parameters.find(&node.name)) {
        (Value::Text(text), Some(parameter)) => Value::Text(shown(parameter, text, hidden)),
        (Value::Group(nodes), Some(parameter)) => Value::Group(shown_nodes(nodes, parameter.inner(), hidden)),
        (value, None) => value.clone(),
    };
    nodes.iter().map(|node| Node { name: node.name.clone(), value: value(node) }).collect()
}
