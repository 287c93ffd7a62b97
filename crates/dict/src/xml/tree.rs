//! An XML document as a tree.

use crate::config::{Node, Value};
use crate::error::{Code, DictError};
use crate::limits;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// Reads a variable of the environment; `None`: it is not set.
pub(super) type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

#[derive(Default)]
pub(super) struct XmlElement {
    pub name: String,
    pub text: String,
    pub children: Vec<XmlElement>,
    /// Where its text comes from instead.
    substitution: Option<Substitution>,
}

/// An attribute that stands in place of an element's text, and its value.
struct Substitution {
    attribute: String,
    value: String,
}

/// The attribute that names a variable of the environment.
const FROM_ENV: &str = "from_env";
/// ClickHouse's other such attributes: ignoring them would leave the element empty.
const NOT_READ: [&str; 2] = ["from_zk", "incl"];

pub(super) fn read_tree(xml: &str) -> Result<XmlElement, DictError> {
    let malformed = |what: &dyn std::fmt::Display| DictError::syntax(format!("Malformed XML: {what}"));
    let mut reader = Reader::from_str(xml);
    let mut open: Vec<XmlElement> = vec![XmlElement::default()];
    loop {
        let event = reader.read_event().map_err(|e| malformed(&e))?;
        match event {
            Event::Start(start) => {
                if open.len() > limits::NESTING_MAX {
                    return Err(malformed(&format!("more than {} nested elements", limits::NESTING_MAX)));
                }
                open.push(XmlElement::of(&start).map_err(|e| malformed(&e))?);
            }
            Event::Empty(start) => {
                let element = XmlElement::of(&start).map_err(|e| malformed(&e))?;
                open.last_mut().expect("the document stays open").children.push(element);
            }
            Event::End(_) => {
                let element = open.pop().expect("the reader matches tags");
                open.last_mut().ok_or_else(|| malformed(&"unmatched end tag"))?.children.push(element);
            }
            Event::Text(text) => {
                let text = text.decode().map_err(|e| malformed(&e))?;
                open.last_mut().expect("the document stays open").text += &text;
            }
            Event::CData(text) => {
                let text = text.decode().map_err(|e| malformed(&e))?;
                open.last_mut().expect("the document stays open").text += &text;
            }
            Event::GeneralRef(reference) => {
                let entity = reference.decode().map_err(|e| malformed(&e))?;
                let last = open.last_mut().expect("the document stays open");
                match reference.resolve_char_ref().map_err(|e| malformed(&e))? {
                    Some(c) => last.text.push(c),
                    None => {
                        last.text += resolve_xml_entity(&entity)
                            .ok_or_else(|| malformed(&format!("unknown entity &{entity};")))?;
                    }
                }
            }
            Event::Eof => break,
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    let document =
        open.pop().filter(|_| open.is_empty()).ok_or_else(|| malformed(&"an element is not closed"))?;
    let mut roots = document.children.into_iter();
    match (roots.next(), roots.next()) {
        (Some(root), None) if document.text.trim().is_empty() => Ok(root),
        _ => Err(malformed(&"there must be one root element")),
    }
}

impl XmlElement {
    fn of(start: &BytesStart<'_>) -> Result<XmlElement, quick_xml::Error> {
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        let mut element = XmlElement { name: text(start.name().as_ref()), ..XmlElement::default() };
        for attribute in start.attributes() {
            let attribute = attribute?;
            let name = text(attribute.key.as_ref());
            if name == FROM_ENV || NOT_READ.contains(&name.as_str()) {
                let value = attribute.normalized_value(XmlVersion::Implicit1_0)?.into_owned();
                element.substitution = Some(Substitution { attribute: name, value });
            }
        }
        Ok(element)
    }

    /// Replaces `from_env` by the environment's values, in elements within it, too.
    ///
    /// # Errors
    /// A variable that is not set, by its name; what is not read here.
    pub fn substitute(&mut self, environment: &Variables<'_>) -> Result<(), DictError> {
        if let Some(Substitution { attribute, value }) = &self.substitution {
            if attribute != FROM_ENV {
                let text = format!("<{}>: the attribute {attribute} is not read here", self.name);
                return Err(DictError::new(Code::NotImplemented, text));
            }
            self.text = environment(value).ok_or_else(|| {
                let name = &self.name;
                DictError::definition(format!("<{name} from_env=\"{value}\">: this variable is not set"))
            })?;
        }
        self.children.iter_mut().try_for_each(|child| child.substitute(environment))
    }

    pub fn child(&self, name: &str) -> Option<&XmlElement> {
        self.children.iter().find(|child| child.name == name)
    }

    pub fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a XmlElement> {
        self.children.iter().filter(move |child| child.name == name)
    }

    pub fn required(&self, name: &str) -> Result<&XmlElement, DictError> {
        self.child(name).ok_or_else(|| DictError::definition(format!("<{}>: <{name}> is missing", self.name)))
    }

    /// The one child of `<source>` or `<layout>`, without `<settings>`.
    pub fn only_child(&self) -> Result<Node, DictError> {
        let mut children = self.children.iter().filter(|child| child.name != "settings");
        match (children.next(), children.next()) {
            (Some(only), None) => Ok(only.to_node()),
            _ => Err(DictError::definition(format!("<{}> must hold just one element", self.name))),
        }
    }

    pub fn to_node(&self) -> Node {
        let value = match self.children.is_empty() {
            true => Value::Text(self.text.trim().to_string()),
            false => Value::Group(self.children.iter().map(XmlElement::to_node).collect()),
        };
        Node { name: self.name.to_uppercase(), value }
    }

    pub fn flag(&self, name: &str) -> Result<bool, DictError> {
        match self.child(name).map(|child| child.text.trim()) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1" | "") => Ok(true),
            Some(other) => {
                Err(DictError::definition(format!("<{name}> must be true or false, not '{other}'")))
            }
        }
    }

    pub fn seconds(&self, name: &str) -> Result<u64, DictError> {
        let text = self.required(name)?.text.trim();
        text.parse().map_err(|_| {
            DictError::bad_arguments(format!("<lifetime>: <{name}> must be a whole number, not '{text}'"))
        })
    }
}
