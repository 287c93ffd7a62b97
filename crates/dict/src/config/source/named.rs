//! `SOURCE(POSTGRESQL(NAME collection TABLE 't'))`: parameters that a named collection has, and others that come first.

use super::mongodb_uri;
use super::{CURRENT_DATABASE, Kind, SourceConfig};
use crate::config::collections::Collections;
use crate::config::node::{Node, Value, plain_name};
use crate::definition::Structure;
use crate::error::DictError;
use std::fmt;

/// A source that a collection completes.
#[derive(Clone, PartialEq)]
pub struct NamedSource {
    collection: String,
    /// As DDL or XML has it.
    written: Node,
    /// What it is with the collection that was there when the dictionary was opened.
    complete: Option<Box<SourceConfig>>,
}

/// Sources that take parameters from collections.
const KINDS: [&str; 6] = ["CLICKHOUSE", "HTTP", "MONGODB", "MYSQL", "POSTGRESQL", "REDIS"];
/// The parameter that names the collection.
const NAME: &str = "NAME";

impl NamedSource {
    /// `None`: it names no collection.
    pub(super) fn take(node: &Node) -> Option<NamedSource> {
        let Value::Group(nodes) = &node.value else { return None };
        let named = |node: &Node| match &node.value {
            Value::Text(text) if node.name == NAME => Some(text.clone()),
            _ => None,
        };
        let collection = nodes.iter().find_map(named)?;
        let takes_some = KINDS.contains(&node.name.as_str());
        takes_some.then(|| NamedSource { collection, written: node.clone(), complete: None })
    }

    pub(super) fn complete(&self) -> Option<&SourceConfig> {
        self.complete.as_deref()
    }

    /// Takes what is not written from the collection.
    pub(super) fn fill(&mut self, collections: &Collections) -> Result<(), DictError> {
        let written = self.written.settings("SOURCE")?;
        let mut nodes: Vec<Node> = written.iter().filter(|node| node.name != NAME).cloned().collect();
        let kept = collections.get(&self.collection)?;
        let kept = kept.iter().map(|(name, value)| Node::text(plain_name(&name.to_uppercase()), value));
        let kept: Vec<Node> =
            kept.filter(|kept| !nodes.iter().any(|node| plain_name(&node.name) == kept.name)).collect();
        nodes.extend(kept);
        let node = Node { name: self.written.name.clone(), value: Value::Group(nodes) };
        let complete = SourceConfig::from_node(&node)
            .map_err(|error| error.within(format_args!("With the named collection {}", self.collection)))?;
        self.complete = Some(Box::new(complete));
        Ok(())
    }

    pub(super) fn settle(&mut self, database: &str) {
        if let Value::Group(nodes) = &mut self.written.value {
            for node in nodes {
                if node.value == Value::Text(CURRENT_DATABASE.to_string()) {
                    node.value = Value::Text(database.to_string());
                }
            }
        }
        self.complete.iter_mut().for_each(|complete| complete.settle(database));
    }
}

impl Kind for NamedSource {
    fn name(&self) -> &'static str {
        KINDS.into_iter().find(|name| *name == self.written.name).unwrap_or_default()
    }

    fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        match (&self.written.value, hidden) {
            (Value::Group(nodes), Some(hidden)) => nodes.iter().map(|node| shown(node, hidden)).collect(),
            (Value::Group(nodes), None) => nodes.clone(),
            (Value::Text(_), _) => Vec::new(),
        }
    }

    fn describe(&self) -> String {
        self.complete.as_ref().map_or_else(String::new, |complete| complete.describe())
    }

    fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        self.complete.as_ref().map_or(Ok(()), |complete| complete.validate(structure))
    }
}

impl fmt::Debug for NamedSource {
    /// Without what is written, among which there may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedSource").field("collection", &self.collection).finish_non_exhaustive()
    }
}

/// Without the values of passwords and headers, and without the password in a URI.
fn shown(node: &Node, hidden: &str) -> Node {
    let value = match &node.value {
        Value::Text(_) if ["PASSWORD", "VALUE"].contains(&node.name.as_str()) => {
            Value::Text(hidden.to_string())
        }
        Value::Text(text) if node.name == "URI" => Value::Text(mongodb_uri::shown(text, hidden)),
        Value::Text(text) => Value::Text(text.clone()),
        Value::Group(nodes) => Value::Group(nodes.iter().map(|node| shown(node, hidden)).collect()),
    };
    Node { name: node.name.clone(), value }
}
