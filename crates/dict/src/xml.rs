//! Dictionaries in ClickHouse's XML configuration.

use crate::config::{Layout, Node, SourceConfig, Value};
use crate::definition::{
    Attribute, Definition, Hierarchy, Injectivity, Key, Lifetime, Literal, ObjectId, Structure,
};
use crate::error::{Code, DictError};
use crate::limits;
use crate::sought::{self, RangeNames};
use crate::structure;
use crate::types::DataType;
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;

/// Reads `<clickhouse>`, `<yandex>` or `<dictionaries>` with a `<dictionary>` element for each dictionary.
///
/// # Errors
/// `SYNTAX_ERROR` for malformed XML; else as `parse_create`, naming the element.
pub fn parse_xml(xml: &str) -> Result<Vec<Definition>, DictError> {
    if xml.len() > limits::STATEMENT_BYTES_MAX {
        return Err(DictError::syntax(format!(
            "The XML document is longer than {} bytes",
            limits::STATEMENT_BYTES_MAX
        )));
    }
    let root = read_tree(xml)?;
    if !["clickhouse", "yandex", "dictionaries"].contains(&root.name.as_str()) {
        return Err(DictError::new(
            Code::UnknownElementInConfig,
            format!("<{}>: the root element must be <clickhouse>, <yandex> or <dictionaries>", root.name),
        ));
    }
    // ClickHouse skips what is not a dictionary (<comment>, <include_from>) in such a file.
    root.children.iter().filter(|child| child.name == "dictionary").map(dictionary).collect()
}

#[derive(Default)]
struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

fn read_tree(xml: &str) -> Result<Element, DictError> {
    let malformed = |what: &dyn std::fmt::Display| DictError::syntax(format!("Malformed XML: {what}"));
    let mut reader = Reader::from_str(xml);
    let mut open: Vec<Element> = vec![Element::default()];
    loop {
        let event = reader.read_event().map_err(|e| malformed(&e))?;
        let name = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        match event {
            Event::Start(start) => {
                if open.len() > limits::NESTING_MAX {
                    return Err(malformed(&format!("more than {} nested elements", limits::NESTING_MAX)));
                }
                open.push(Element { name: name(start.name().as_ref()), ..Element::default() });
            }
            Event::Empty(start) => {
                let element = Element { name: name(start.name().as_ref()), ..Element::default() };
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

impl Element {
    fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    fn required(&self, name: &str) -> Result<&Element, DictError> {
        self.child(name).ok_or_else(|| DictError::definition(format!("<{}>: <{name}> is missing", self.name)))
    }

    /// The one child of `<source>` or `<layout>`; `<settings>` beside a source is another matter.
    fn only_child(&self) -> Result<Node, DictError> {
        let mut children = self.children.iter().filter(|child| child.name != "settings");
        match (children.next(), children.next()) {
            (Some(only), None) => Ok(only.to_node()),
            _ => Err(DictError::definition(format!("<{}> must hold just one element", self.name))),
        }
    }

    fn to_node(&self) -> Node {
        let value = match self.children.is_empty() {
            true => Value::Text(self.text.trim().to_string()),
            false => Value::Group(self.children.iter().map(Element::to_node).collect()),
        };
        Node { name: self.name.to_uppercase(), value }
    }

    fn flag(&self, name: &str) -> Result<bool, DictError> {
        match self.child(name).map(|child| child.text.trim()) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1" | "") => Ok(true),
            Some(other) => {
                Err(DictError::definition(format!("<{name}> must be true or false, not '{other}'")))
            }
        }
    }

    fn seconds(&self, name: &str) -> Result<u64, DictError> {
        let text = self.required(name)?.text.trim();
        text.parse().map_err(|_| {
            DictError::bad_arguments(format!("<lifetime>: <{name}> must be a whole number, not '{text}'"))
        })
    }
}

fn dictionary(element: &Element) -> Result<Definition, DictError> {
    let name = element.required("name")?.text.trim();
    let named = |e: DictError| e.within(format_args!("Dictionary {name}"));
    let (database, short) = match element.child("database") {
        Some(database) => (Some(database.text.trim().to_string()), name),
        None => match name.split_once('.') {
            Some((database, short)) => (Some(database.to_string()), short),
            None => (None, name),
        },
    };
    let source = element.required("source").map_err(named)?;
    let layout = element
        .required("layout")
        .and_then(|e| e.only_child())
        .and_then(|n| Layout::from_node(&n))
        .map_err(named)?;
    let lifetime = element.child("lifetime").map(lifetime).transpose().map_err(named)?;
    // Those of its source stand there; those of REGEXP_TREE, beside it.
    let settings = source.children("settings").chain(element.children("settings"));
    let definition = Definition {
        database,
        name: short.to_string(),
        structure: read_structure(element.required("structure").map_err(named)?, &layout).map_err(named)?,
        source: source.only_child().and_then(|node| SourceConfig::from_node(&node)).map_err(named)?,
        lifetime: structure::lifetime_or_default(lifetime, &layout).map_err(named)?,
        layout,
        comment: element.child("comment").map_or(String::new(), |comment| comment.text.trim().to_string()),
        settings: settings
            .flat_map(|settings| &settings.children)
            .map(|s| (s.name.clone(), s.text.trim().to_string()))
            .collect(),
    };
    definition.validate().map_err(named)?;
    Ok(definition)
}

/// `<min/><max/>`, or a number alone, which is both (in DDL it is the maximum).
fn lifetime(element: &Element) -> Result<Lifetime, DictError> {
    if element.children.is_empty() {
        let text = element.text.trim();
        let seconds = text.parse().map_err(|_| {
            DictError::bad_arguments(format!("<lifetime> must be a whole number of seconds, not '{text}'"))
        })?;
        return Ok(Lifetime { min_seconds: seconds, max_seconds: seconds });
    }
    Ok(Lifetime { min_seconds: element.seconds("min")?, max_seconds: element.seconds("max")? })
}

fn read_structure(element: &Element, layout: &Layout) -> Result<Structure, DictError> {
    let mut attributes = element
        .children("attribute")
        .map(|child| attribute(child, NullValue::Required))
        .collect::<Result<Vec<_>, _>>()?;
    let range = range(element, &mut attributes)?;
    let mut structure = keyed(element, layout, attributes)?;
    structure.attributes = sought::bounds_first(structure.attributes, layout, range)?;
    Ok(structure)
}

/// Adds `<range_min>` and `<range_max>` to the attributes, unless they are among them.
fn range(element: &Element, attributes: &mut Vec<Attribute>) -> Result<Option<RangeNames>, DictError> {
    let (min, max) = match (element.child("range_min"), element.child("range_max")) {
        (Some(min), Some(max)) => (bound(min)?, bound(max)?),
        (None, None) => return Ok(None),
        _ => {
            return Err(DictError::bad_arguments(
                "Dictionary structure should have both 'range_min' and 'range_max' either specified or not.",
            ));
        }
    };
    let names = RangeNames { min: min.name.clone(), max: max.name.clone() };
    for bound in [min, max] {
        attributes.retain(|attribute| attribute.name != bound.name);
        attributes.push(bound);
    }
    Ok(Some(names))
}

/// A Date, unless it says otherwise.
fn bound(element: &Element) -> Result<Attribute, DictError> {
    match element.child("type") {
        Some(_) => attribute(element, NullValue::None),
        None => {
            let mut bound = Attribute::new(element.required("name")?.text.trim(), DataType::Date);
            bound.expression = expression(element);
            Ok(bound)
        }
    }
}

fn keyed(element: &Element, layout: &Layout, attributes: Vec<Attribute>) -> Result<Structure, DictError> {
    match (element.child("id"), element.child("key")) {
        (Some(id), None) => {
            let name = id.required("name")?.text.trim().to_string();
            match layout.key_form {
                crate::config::KeyForm::Simple => Ok(Structure { key: Key::Simple { name }, attributes }),
                crate::config::KeyForm::Complex => Err(DictError::definition(format!(
                    "<structure>: layout {} needs <key>, not <id>",
                    layout.name().to_lowercase()
                ))),
            }
        }
        (None, Some(key)) => {
            let mut columns = key
                .children("attribute")
                .map(|child| attribute(child, NullValue::None))
                .collect::<Result<Vec<_>, _>>()?;
            let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
            columns.extend(attributes);
            structure::from_columns(columns, &names, layout.key_form)
        }
        _ => Err(DictError::definition("<structure> must hold either <id> or <key>")),
    }
}

/// Whether a column has `<null_value>`, which the key and the bounds of a range do not have.
#[derive(Clone, Copy, PartialEq)]
enum NullValue {
    None,
    Required,
}

fn expression(element: &Element) -> Option<String> {
    element.child("expression").map(|expression| expression.text.trim().to_string())
}

fn attribute(element: &Element, null_value: NullValue) -> Result<Attribute, DictError> {
    let name = element.required("name")?.text.trim();
    let data_type = DataType::parse(&element.required("type")?.text)
        .map_err(|e| e.within(format_args!("<attribute> {name}")))?;
    let mut attribute = Attribute::new(name, data_type);
    if null_value == NullValue::Required {
        let null_value =
            element.required("null_value").map_err(|e| e.within(format_args!("<attribute> {name}")))?;
        attribute.default = null_literal(&attribute.data_type, &null_value.text);
    }
    attribute.expression = expression(element);
    if element.flag("hierarchical")? {
        attribute.hierarchy = Hierarchy::Hierarchical;
    }
    if element.flag("injective")? {
        attribute.injectivity = Injectivity::Injective;
    }
    if element.flag("is_object_id")? {
        attribute.object_id = ObjectId::Yes;
    }
    Ok(attribute)
}

/// An empty `<null_value/>` is the type's own default; of a number it cannot be anything else.
fn null_literal(data_type: &DataType, text: &str) -> Option<Literal> {
    let text = match data_type.inner() {
        DataType::String => text,
        _ => text.trim(),
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    match (text, data_type.inner()) {
        ("", _) => None,
        (_, DataType::String) => Some(Literal::Quoted(text.to_string())),
        _ if plain => Some(Literal::Bare(text.to_string())),
        _ => Some(Literal::Quoted(text.to_string())),
    }
}
