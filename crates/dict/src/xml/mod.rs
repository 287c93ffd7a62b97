//! Dictionaries in ClickHouse's XML configuration.

mod tree;

use self::tree::{Variables, XmlElement, read_tree};
use crate::config::{KeyForm, Layout, LayoutKind};
use crate::definition::{
    Attribute, Definition, Hierarchy, Injectivity, Key, Lifetime, Literal, ObjectId, Structure,
};
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup_key::{self, RangeNames};
use crate::source::SourceConfig;
use crate::structure;
use crate::types::DataType;

/// A `<dictionary>` element.
#[derive(Debug)]
pub struct XmlDictionary {
    /// Its database, if it says one.
    pub database: Option<String>,
    /// Its name; empty: it has none.
    pub name: String,
    /// Its definition, or what is wrong with it.
    pub definition: Result<Definition, DictError>,
}

/// Reads `<clickhouse>`, `<yandex>` or `<dictionaries>` with a `<dictionary>` element for each dictionary.
///
/// # Errors
/// `SYNTAX_ERROR` for malformed XML; else as `parse_create`, naming the element: the first that is wrong.
pub fn parse_xml(xml: &str) -> Result<Vec<Definition>, DictError> {
    parse_xml_each(xml)?.into_iter().map(|dictionary| dictionary.definition).collect()
}

/// Reads each dictionary by itself: an error in one does not affect the others.
///
/// # Errors
/// Errors of the document as a whole.
pub fn parse_xml_each(xml: &str) -> Result<Vec<XmlDictionary>, DictError> {
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
    let dictionaries = root.children.into_iter().filter(|child| child.name == "dictionary");
    Ok(dictionaries.map(|element| one(element, &|name| std::env::var(name).ok())).collect())
}

fn one(mut element: XmlElement, environment: &Variables<'_>) -> XmlDictionary {
    let substituted = element.substitute(environment);
    let (database, name) = names(&element);
    let named = |e: DictError| e.within(format_args!("Dictionary {name}"));
    let definition = substituted.map_err(named).and_then(|()| dictionary(&element));
    XmlDictionary { database, name, definition }
}

/// `<database>` and `<name>`; the latter may be `database.name`.
fn names(element: &XmlElement) -> (Option<String>, String) {
    let text = |name: &str| element.child(name).map(|child| child.text.trim().to_string());
    let name = text("name").unwrap_or_default();
    match (text("database"), name.split_once('.')) {
        (None, Some((database, short))) => (Some(database.to_string()), short.to_string()),
        (database, _) => (database, name),
    }
}

fn dictionary(element: &XmlElement) -> Result<Definition, DictError> {
    let name = element.required("name")?.text.trim();
    let named = |e: DictError| e.within(format_args!("Dictionary {name}"));
    let (database, short) = names(element);
    let source = element.required("source").map_err(named)?;
    let layout = element
        .required("layout")
        .and_then(|e| e.only_child())
        .and_then(|n| Layout::from_node(&n))
        .map_err(named)?;
    // A lone number is ignored where there is no lifetime, as in ClickHouse.
    let is_said =
        |said: &&XmlElement| !said.children.is_empty() || !matches!(layout.kind, LayoutKind::Direct);
    let lifetime = element.child("lifetime").filter(is_said).map(lifetime).transpose().map_err(named)?;
    // The source's settings stand in it; those of REGEXP_TREE, beside it.
    let settings = source.children("settings").chain(element.children("settings"));
    let definition = Definition {
        database,
        name: short,
        uuid: None,
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
fn lifetime(element: &XmlElement) -> Result<Lifetime, DictError> {
    if element.children.is_empty() {
        let text = element.text.trim();
        let seconds = text.parse().map_err(|_| {
            DictError::bad_arguments(format!("<lifetime> must be a whole number of seconds, not '{text}'"))
        })?;
        return Ok(Lifetime { min_seconds: seconds, max_seconds: seconds });
    }
    Ok(Lifetime { min_seconds: element.seconds("min")?, max_seconds: element.seconds("max")? })
}

fn read_structure(element: &XmlElement, layout: &Layout) -> Result<Structure, DictError> {
    let mut attributes = read_attributes(element, NullValue::Required)?;
    let range = range(element, &mut attributes)?;
    let mut structure = keyed(element, layout, attributes)?;
    structure.attributes = lookup_key::bounds_first(structure.attributes, layout, range)?;
    Ok(structure)
}

/// Adds `<range_min>` and `<range_max>` to the attributes, unless they are among them.
fn range(element: &XmlElement, attributes: &mut Vec<Attribute>) -> Result<Option<RangeNames>, DictError> {
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

/// The bound is a Date, unless its type is given.
fn bound(element: &XmlElement) -> Result<Attribute, DictError> {
    match element.child("type") {
        Some(_) => attribute(element, NullValue::None),
        None => {
            let mut bound = Attribute::new(element.required("name")?.text.trim(), DataType::Date);
            bound.expression = expression(element);
            Ok(bound)
        }
    }
}

fn keyed(element: &XmlElement, layout: &Layout, attributes: Vec<Attribute>) -> Result<Structure, DictError> {
    match (element.child("id"), element.child("key")) {
        (Some(id), None) => {
            let name = id.required("name")?.text.trim().to_string();
            match layout.key_form {
                KeyForm::Simple => Ok(Structure { key: Key::Simple { name }, attributes }),
                KeyForm::Complex => Err(DictError::definition(format!(
                    "<structure>: layout {} needs <key>, not <id>",
                    layout.name().to_lowercase()
                ))),
            }
        }
        (None, Some(_)) if layout.key_form == KeyForm::Simple => Err(DictError::new(
            Code::UnsupportedMethod,
            format!(
                "'key' is not supported for dictionary of layout '{}': <structure> needs <id>; <key> is for {}",
                layout.name().to_lowercase(),
                layout.complex_name().to_lowercase()
            ),
        )),
        (None, Some(key)) => {
            let mut columns = read_attributes(key, NullValue::None)?;
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

fn expression(element: &XmlElement) -> Option<String> {
    element.child("expression").map(|expression| expression.text.trim().to_string())
}

/// The elements that an `<attribute>` may hold. ClickHouse refuses all else, too.
const ATTRIBUTE_KEYS: [&str; 8] = [
    "name",
    "type",
    "null_value",
    "expression",
    "hierarchical",
    "bidirectional",
    "injective",
    "is_object_id",
];

/// The `<attribute>` elements within an element.
fn read_attributes(element: &XmlElement, null_value: NullValue) -> Result<Vec<Attribute>, DictError> {
    let is_unknown = |child: &&XmlElement| !ATTRIBUTE_KEYS.contains(&child.name.as_str());
    let read = |child: &XmlElement| match child.children.iter().find(is_unknown) {
        None => attribute(child, null_value),
        Some(unknown) => Err(DictError::bad_arguments(format!(
            "Unknown key '{}' inside attribute section: it may hold {}",
            unknown.name,
            ATTRIBUTE_KEYS.map(|key| format!("<{key}>")).join(", ")
        ))),
    };
    element.children("attribute").map(read).collect()
}

fn attribute(element: &XmlElement, null_value: NullValue) -> Result<Attribute, DictError> {
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
