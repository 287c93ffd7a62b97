//! The values of parameters: read from DDL or XML, and printed, as the parameters are declared.

use super::node::{Accepted, Node, Settings, Value};
use super::parameter::{DefaultValue, Identity, Parameter, Parameters, Printed, Secrecy, ValueType};
use crate::error::{Code, DictError};

const CLAUSE: &str = "SOURCE";

/// The values of a source, or of a group in it: the written ones, and defaults of the others.
#[derive(Clone, PartialEq)]
pub(crate) struct Values(Vec<SuppliedValue>);

#[derive(Clone)]
struct SuppliedValue {
    parameter: &'static Parameter,
    value: ParameterValue,
    /// Whether it was written; comparisons ignore that.
    is_written: bool,
}

#[derive(Clone, PartialEq)]
enum ParameterValue {
    Text(String),
    Groups(Vec<Values>),
}

impl PartialEq for SuppliedValue {
    fn eq(&self, other: &SuppliedValue) -> bool {
        self.parameter.name == other.parameter.name && self.value == other.value
    }
}

impl Values {
    /// Reads the parameters of `owner`; for a group, `outside` holds the values around it.
    ///
    /// # Errors
    /// `UNKNOWN_SETTING`, `NOT_IMPLEMENTED` and `BAD_ARGUMENTS` name the parameter and say what is wrong with it.
    pub fn read(
        owner: &str,
        nodes: &[Node],
        parameters: &Parameters,
        outside: Option<&Values>,
    ) -> Result<Values, DictError> {
        let nodes = plainly_named(owner, nodes, parameters)?;
        let settings = settings(owner, &nodes, parameters)?;
        let mut values = Values(Vec::new());
        for parameter in parameters.all() {
            let is_written = nodes.iter().any(|node| node.name == parameter.name);
            if let Some(value) = values.read_one(owner, parameter, &settings, outside)? {
                values.0.push(SuppliedValue { parameter, value, is_written });
            }
        }
        Ok(values)
    }

    fn read_one(
        &self,
        owner: &str,
        parameter: &Parameter,
        settings: &Settings<'_>,
        outside: Option<&Values>,
    ) -> Result<Option<ParameterValue>, DictError> {
        let name = parameter.name;
        let group = |owner: &str, nodes: &[Node]| Values::read(owner, nodes, parameter.inner(), Some(self));
        let written = match parameter.value_type {
            ValueType::Text => settings.text(name)?.map(str::to_string),
            ValueType::Number(low, high) => {
                settings.number(name, low, high)?.map(|number| number.to_string())
            }
            ValueType::Flag => settings.text(name)?.map(|_| settings.flag(name)).transpose()?.map(digit),
            ValueType::Read(read) => {
                // An empty required text is reported as missing rather than parsed.
                let text = settings.text(name)?;
                let is_missing = matches!(parameter.default, DefaultValue::Required) && text == Some("");
                text.filter(|_| !is_missing).map(|text| read(owner, name, text)).transpose()?
            }
            ValueType::Group(_) => {
                let nodes = settings.group(name)?;
                let values = nodes.map(|nodes| group(&format!("{owner}({name})"), nodes)).transpose()?;
                return Ok(values.map(|values| ParameterValue::Groups(vec![values])));
            }
            ValueType::Groups(_) => {
                let groups = settings.groups(name)?.into_iter().map(|nodes| group(name, nodes));
                return Ok(Some(ParameterValue::Groups(groups.collect::<Result<_, _>>()?)));
            }
            ValueType::List(items) => {
                let nodes = settings.group(name)?.unwrap_or_default().iter();
                let groups = nodes.map(|node| self.read_item(owner, name, items.only(), node));
                return Ok(Some(ParameterValue::Groups(groups.collect::<Result<_, _>>()?)));
            }
        };
        let value = match (written, parameter.default) {
            (Some(text), DefaultValue::Required) if text.is_empty() => None,
            (written @ Some(_), _) => written,
            (None, DefaultValue::Text(default)) => Some(default.to_string()),
            (None, DefaultValue::Outside) => outside.and_then(|values| values.get(name)).map(str::to_string),
            (None, DefaultValue::Absent | DefaultValue::Required) => None,
        };
        match (value, parameter.default) {
            (None, DefaultValue::Required) => Err(settings.error(name, "is required")),
            (value, _) => Ok(value.map(ParameterValue::Text)),
        }
    }

    /// One item of the list called `list`.
    fn read_item(&self, owner: &str, list: &str, item: &Parameter, node: &Node) -> Result<Values, DictError> {
        let inner = item.inner();
        if node.name != item.name {
            let members: Vec<String> = inner.all().map(|member| format!("{} '..'", member.name)).collect();
            let text = format!(
                "{CLAUSE}({owner}): {list} holds {}; allowed are {}({})",
                node.name,
                item.name,
                members.join(" ")
            );
            return Err(DictError::new(Code::UnknownSetting, text));
        }
        let nodes = node.settings(&format!("{CLAUSE}({owner})"))?;
        let owner = format!("{owner}({list}({}))", item.name);
        Values::read(&owner, nodes, inner, Some(self))
    }

    /// The parameters as DDL writes them; `hidden` stands in place of secrets if given.
    pub fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        self.nodes_within(hidden, None)
    }

    fn nodes_within(&self, hidden: Option<&str>, outside: Option<&Values>) -> Vec<Node> {
        let mut nodes = Vec::new();
        for given in self.0.iter().filter(|given| given.is_printed(outside)) {
            let name = given.parameter.name;
            let mut put = |name: &str, value| nodes.push(Node { name: name.to_string(), value });
            match (&given.value, given.parameter.value_type) {
                (ParameterValue::Text(text), _) => {
                    put(name, Value::Text(shown(given.parameter, text, hidden)))
                }
                (ParameterValue::Groups(groups), ValueType::List(items)) => {
                    let item = items.only();
                    let value = |group: &Values| Value::Group(group.nodes_within(hidden, Some(self)));
                    let items =
                        groups.iter().map(|group| Node { name: item.name.into(), value: value(group) });
                    put(name, Value::Group(items.collect()));
                }
                (ParameterValue::Groups(groups), _) => groups
                    .iter()
                    .for_each(|group| put(name, Value::Group(group.nodes_within(hidden, Some(self))))),
            }
        }
        nodes
    }

    /// The values that decide which rows there are, without those of who asks for them and how, all marked as written.
    pub fn anonymous(&self) -> Values {
        let anonymous = |given: &SuppliedValue| {
            let text = match (&given.value, given.parameter.identity) {
                (_, Identity::Nothing) => return None,
                (ParameterValue::Groups(groups), _) => {
                    ParameterValue::Groups(groups.iter().map(Values::anonymous).collect())
                }
                (ParameterValue::Text(text), Identity::Value) => ParameterValue::Text(text.clone()),
                (ParameterValue::Text(text), Identity::Partial(part)) => ParameterValue::Text(part(text)),
            };
            Some(SuppliedValue { value: text, is_written: true, ..given.clone() })
        };
        Values(self.0.iter().filter_map(anonymous).collect())
    }

    /// Marks all values as written, so that defaults are printed, too.
    pub fn spell_out(&mut self) {
        self.0.iter_mut().for_each(|given| given.is_written = true);
    }

    /// Marks the value `name` as written, so that it is printed.
    pub fn pin(&mut self, name: &str) {
        self.0
            .iter_mut()
            .filter(|given| given.parameter.name == name)
            .for_each(|given| given.is_written = true);
    }

    fn given(&self, name: &str) -> Option<&SuppliedValue> {
        self.0.iter().find(|given| given.parameter.name == name)
    }

    /// A value, if there is one.
    pub fn get(&self, name: &str) -> Option<&str> {
        match &self.given(name)?.value {
            ParameterValue::Text(text) => Some(text),
            ParameterValue::Groups(_) => None,
        }
    }

    /// A value; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().expect("a number that was read, or is a default")
    }

    pub fn port(&self) -> u16 {
        self.text("PORT").parse().expect("a port that was read, or is a default")
    }

    pub fn flag(&self, name: &str) -> bool {
        self.text(name) == "1"
    }

    /// The groups of this name.
    pub fn groups(&self, name: &str) -> &[Values] {
        match self.given(name).map(|given| &given.value) {
            Some(ParameterValue::Groups(groups)) => groups,
            _ => &[],
        }
    }

    pub fn groups_mut(&mut self, name: &str) -> &mut [Values] {
        match self.0.iter_mut().find(|given| given.parameter.name == name).map(|given| &mut given.value) {
            Some(ParameterValue::Groups(groups)) => groups,
            _ => &mut [],
        }
    }

    /// Whether the value was written.
    pub fn is_written(&self, name: &str) -> bool {
        self.given(name).is_some_and(|given| given.is_written)
    }

    /// Replaces a value that is there; whether it was written stays.
    pub fn set(&mut self, name: &str, text: &str) {
        let given = self.0.iter_mut().filter(|given| given.parameter.name == name);
        given.for_each(|given| given.value = ParameterValue::Text(text.to_string()));
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|given| given.parameter.name != name);
    }
}

impl SuppliedValue {
    fn is_printed(&self, outside: Option<&Values>) -> bool {
        match (self.parameter.printed, &self.value) {
            (_, ParameterValue::Groups(groups)) => !groups.is_empty(),
            (Printed::Always, _) => true,
            (Printed::IfWritten, _) => self.is_written,
            (Printed::UnlessDefault, ParameterValue::Text(text)) => match self.parameter.default {
                DefaultValue::Text(default) => text != default,
                DefaultValue::Outside => {
                    outside.and_then(|values| values.get(self.parameter.name)) != Some(text)
                }
                DefaultValue::Absent | DefaultValue::Required => true,
            },
        }
    }
}

/// The nodes of a collection or a statement, each under the first of its parameter's names.
///
/// # Errors
/// `BAD_ARGUMENTS` if a parameter is given under both.
fn plainly_named(owner: &str, nodes: &[Node], parameters: &Parameters) -> Result<Vec<Node>, DictError> {
    let plain = |node: &Node| {
        let Some(parameter) = parameters.find(&node.name) else { return Ok(node.clone()) };
        if node.name != parameter.name && nodes.iter().any(|other| other.name == parameter.name) {
            return Err(DictError::bad_arguments(format!(
                "{CLAUSE}({owner}): {} is {}, which is given, too",
                node.name, parameter.name
            )));
        }
        Ok(Node { name: parameter.name.to_string(), value: node.value.clone() })
    };
    nodes.iter().map(plain).collect()
}

fn settings<'a>(
    owner: &'a str,
    nodes: &'a [Node],
    parameters: &Parameters,
) -> Result<Settings<'a>, DictError> {
    let names = |repeated: bool| {
        parameters.all().filter(move |parameter| parameter.may_repeat() == repeated).map(|p| p.name)
    };
    let accepted = Accepted {
        allowed: names(false).chain(names(true)).collect::<Vec<_>>().into(),
        repeated: names(true).collect(),
        ignored: parameters.ignored,
        refused: parameters.refused,
    };
    Settings::of(CLAUSE, owner, nodes, accepted)
}

/// A value as SHOW CREATE shows it; unchanged if `hidden` is `None`.
pub(crate) fn shown(parameter: &Parameter, text: &str, hidden: Option<&str>) -> String {
    match (hidden, parameter.secrecy) {
        (None, _) | (_, Secrecy::Public) => text.to_string(),
        (Some(hidden), Secrecy::Secret) => hidden.to_string(),
        (Some(hidden), Secrecy::Partial(shown)) => shown(text, hidden),
    }
}

fn digit(flag: bool) -> String {
    u8::from(flag).to_string()
}
