//! A setting: a name with a text, or a name with settings inside.

use crate::error::{Code, DictError};
use std::borrow::Cow;

/// One `NAME value` or `NAME(..)`, or one XML element. Names are upper case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub name: String,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Group(Vec<Node>),
}

impl Node {
    pub fn text(name: &str, text: impl Into<String>) -> Node {
        Node { name: name.to_uppercase(), value: Value::Text(text.into()) }
    }

    /// The settings inside; an element with no text and no children has none.
    pub fn settings(&self, clause: &str) -> Result<&[Node], DictError> {
        match &self.value {
            Value::Group(nodes) => Ok(nodes),
            Value::Text(text) if text.is_empty() => Ok(&[]),
            Value::Text(_) => {
                Err(DictError::syntax(format!("{clause}: {} takes its parameters in parentheses", self.name)))
            }
        }
    }
}

/// Which parameters an element has.
pub(crate) struct Accepted {
    /// Parameters that have an effect here.
    pub allowed: Cow<'static, [&'static str]>,
    /// Allowed parameters that may be given several times.
    pub repeated: Vec<&'static str>,
    /// ClickHouse's parameters that are accepted and dropped.
    pub ignored: &'static [&'static str],
    /// ClickHouse's parameters that would change what is read, each with what to do instead.
    pub refused: &'static [(&'static str, &'static str)],
}

/// Settings of one element, checked against `allowed` and read by name.
pub(crate) struct Settings<'a> {
    clause: &'static str,
    owner: &'a str,
    nodes: &'a [Node],
    allowed: Cow<'static, [&'static str]>,
}

impl<'a> Settings<'a> {
    /// # Errors
    /// `UNKNOWN_SETTING` names a setting that is not in `allowed`; `BAD_ARGUMENTS` one given twice.
    pub fn new(
        clause: &'static str,
        owner: &'a str,
        nodes: &'a [Node],
        allowed: impl Into<Cow<'static, [&'static str]>>,
    ) -> Result<Self, DictError> {
        let allowed = allowed.into();
        Settings::of(clause, owner, nodes, Accepted { allowed, repeated: vec![], ignored: &[], refused: &[] })
    }

    /// # Errors
    /// The errors of `new`, and `NOT_IMPLEMENTED` for a parameter that is refused.
    pub fn of(
        clause: &'static str,
        owner: &'a str,
        nodes: &'a [Node],
        accepted: Accepted,
    ) -> Result<Self, DictError> {
        let Accepted { allowed, repeated, ignored, refused } = accepted;
        for (name, instead) in refused {
            if nodes.iter().any(|node| node.name == *name) {
                return Err(DictError::new(
                    Code::NotImplemented,
                    format!("{clause}({owner}): {name} {instead}"),
                ));
            }
        }
        for (at, node) in nodes.iter().enumerate() {
            if ignored.contains(&node.name.as_str()) {
                continue;
            }
            if !allowed.contains(&node.name.as_str()) {
                return Err(DictError::new(
                    Code::UnknownSetting,
                    format!(
                        "{clause}({owner}): unknown parameter {}; allowed are {}",
                        node.name,
                        if allowed.is_empty() { "none".to_string() } else { allowed.join(", ") }
                    ),
                ));
            }
            if !repeated.contains(&node.name.as_str())
                && nodes[..at].iter().any(|earlier| earlier.name == node.name)
            {
                return Err(DictError::bad_arguments(format!(
                    "{clause}({owner}): {} is given twice",
                    node.name
                )));
            }
        }
        Ok(Self { clause, owner, nodes, allowed })
    }

    /// Whether `name` is in `allowed`.
    pub fn allows(&self, name: &str) -> bool {
        self.allowed.contains(&name)
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>, DictError> {
        debug_assert!(self.allows(name));
        match self.nodes.iter().find(|node| node.name == name).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Group(_)) => Err(self.error(name, "takes one value, not a list")),
        }
    }

    /// The settings inside a setting.
    pub fn group(&self, name: &str) -> Result<Option<&'a [Node]>, DictError> {
        debug_assert!(self.allows(name));
        let node = self.nodes.iter().find(|node| node.name == name);
        node.map(|node| node.settings(&format!("{}({})", self.clause, self.owner))).transpose()
    }

    /// The settings inside each setting of this name.
    pub fn groups(&self, name: &str) -> Result<Vec<&'a [Node]>, DictError> {
        debug_assert!(self.allows(name));
        let nodes = self.nodes.iter().filter(|node| node.name == name);
        nodes.map(|node| node.settings(&format!("{}({})", self.clause, self.owner))).collect()
    }

    pub fn required(&self, name: &str) -> Result<&'a str, DictError> {
        match self.text(name)? {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(self.error(name, "is required")),
        }
    }

    /// A whole number in `[low, high]`.
    pub fn number(&self, name: &str, low: u64, high: u64) -> Result<Option<u64>, DictError> {
        match self.text(name)? {
            None => Ok(None),
            Some(text) => {
                match text.parse::<u64>() {
                    Ok(number) if (low..=high).contains(&number) => Ok(Some(number)),
                    _ => Err(self
                        .error(name, &format!("must be a whole number from {low} to {high}, not '{text}'"))),
                }
            }
        }
    }

    /// 0 or 1, false or true.
    pub fn flag(&self, name: &str) -> Result<bool, DictError> {
        match self.text(name)? {
            None | Some("0" | "false") => Ok(false),
            Some("1" | "true") => Ok(true),
            Some(other) => Err(self.error(name, &format!("must be 0 or 1, not '{other}'"))),
        }
    }

    pub fn error(&self, name: &str, what: &str) -> DictError {
        DictError::bad_arguments(format!("{}({}): {name} {what}", self.clause, self.owner))
    }
}
