//! A dictionary's definition, whether it came from DDL or XML.

use crate::config::{Collections, FullLoadLayout, Layout, LayoutKind};
use crate::error::{Code, DictError};
use crate::limits;
use crate::source::SourceConfig;
use crate::types::{DataType, is_short_time, print_fixed, unreadable};
use arrow::datatypes::{Field, Schema, SchemaRef};
use std::collections::HashSet;
use std::sync::Arc;

/// One dictionary, whole: what CREATE DICTIONARY or a `<dictionary>` element says.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its database, if one was named.
    pub database: Option<String>,
    /// Its name.
    pub name: String,
    /// UUID that outlives renames; `None`: none was given.
    pub uuid: Option<[u8; 16]>,
    /// Key and attributes.
    pub structure: Structure,
    /// Where rows come from.
    pub source: SourceConfig,
    /// Where entries live.
    pub layout: Layout,
    /// For how long entries are fresh.
    pub lifetime: Lifetime,
    /// COMMENT; empty: none.
    pub comment: String,
    /// SETTINGS(name = value, ..), kept as written. Settings of REGEXP_TREE, and of queries of the server's own tables,
    /// apply; those that would change how a source is read are refused, and others have no effect.
    pub settings: Vec<(String, String)>,
}

/// Key and attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// The key by which an entry is found.
    pub key: Key,
    /// The attributes, in the order of declaration.
    pub attributes: Vec<Attribute>,
}

/// The key by which an entry is found.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// One UInt64.
    Simple {
        /// The name of its column.
        name: String,
    },
    /// A tuple, of one column or more.
    Complex(Vec<KeyColumn>),
}

/// One column of a complex key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// IS_OBJECT_ID.
    pub object_id: ObjectId,
}

/// One attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// DEFAULT or `null_value`; `None`: the type's own (0, '', NULL).
    pub default: Option<Literal>,
    /// EXPRESSION, sent to SQL sources as `(expression) AS name`.
    pub expression: Option<String>,
    /// HIERARCHICAL [BIDIRECTIONAL].
    pub hierarchy: Hierarchy,
    /// INJECTIVE.
    pub injectivity: Injectivity,
    /// IS_OBJECT_ID.
    pub object_id: ObjectId,
}

/// A literal as DDL writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// NULL.
    Null,
    /// A number, `true`, `false` or an array `[..]`, unquoted.
    Bare(String),
    /// A string, without its quotes.
    Quoted(String),
}

/// Whether an attribute names the parent's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hierarchy {
    /// It names no parent.
    Flat,
    /// It names the parent's key.
    Hierarchical,
    /// It names the parent's key, and children are looked up, too.
    Bidirectional,
}

/// Whether different keys have different values of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injectivity {
    /// Different keys may share a value.
    Unknown,
    /// Different keys have different values.
    Injective,
}

/// Whether a column is a MongoDB ObjectId, which other sources do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectId {
    /// It is no ObjectId.
    No,
    /// It is an ObjectId.
    Yes,
}

/// For how many seconds an entry is fresh: drawn for each entry from `[min, max]`; both 0: for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The shortest lifetime.
    pub min_seconds: u64,
    /// The longest lifetime.
    pub max_seconds: u64,
}

impl Structure {
    /// One field for each key column, with ClickHouse's type name in the metadata.
    pub fn key_fields(&self) -> Vec<Field> {
        match &self.key {
            Key::Simple { name } => vec![DataType::UInt64.to_field(name)],
            Key::Complex(columns) => columns.iter().map(|c| c.data_type.to_field(&c.name)).collect(),
        }
    }

    /// One field for each attribute, with ClickHouse's type name in the metadata.
    pub fn attribute_fields(&self) -> Vec<Field> {
        self.attributes.iter().map(|a| a.data_type.to_field(&a.name)).collect()
    }

    /// The fields of key columns, then of attributes.
    pub fn schema(&self) -> SchemaRef {
        let mut fields = self.key_fields();
        fields.extend(self.attribute_fields());
        Arc::new(Schema::new(fields))
    }

    /// Names and types of the key columns.
    pub fn key_columns(&self) -> Vec<KeyColumn> {
        match &self.key {
            Key::Simple { name } => vec![KeyColumn::new(name, DataType::UInt64)],
            Key::Complex(columns) => columns.clone(),
        }
    }

    /// The index of the attribute that names a key's parent, if the dictionary has a hierarchy.
    pub fn parent_index(&self) -> Option<usize> {
        let names_parent = |attribute: &Attribute| attribute.hierarchy != Hierarchy::Flat;
        match self.key {
            Key::Simple { .. } => self.attributes.iter().position(names_parent),
            Key::Complex(_) => None,
        }
    }

    fn validate(&self) -> Result<(), DictError> {
        let keys = self.key_columns();
        if keys.is_empty() {
            return Err(DictError::definition("A dictionary needs at least one key column"));
        }
        if keys.len() + self.attributes.len() > limits::COLUMNS_MAX {
            return Err(DictError::definition(format!(
                "A dictionary has at most {} columns",
                limits::COLUMNS_MAX
            )));
        }
        let mut names = HashSet::new();
        for name in keys.iter().map(|k| &k.name).chain(self.attributes.iter().map(|a| &a.name)) {
            if name.is_empty() {
                return Err(DictError::definition("A column has no name"));
            }
            if !names.insert(name) {
                return Err(DictError::bad_arguments(format!("Column {name} is declared twice")));
            }
        }
        if self.attributes.iter().filter(|attribute| attribute.hierarchy != Hierarchy::Flat).count() > 1 {
            return Err(DictError::bad_arguments("Only one attribute can be HIERARCHICAL"));
        }
        self.attributes.iter().try_for_each(|attribute| attribute.validate(&self.key))
    }
}

impl KeyColumn {
    /// A column with no options.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Self { name: name.into(), data_type, object_id: ObjectId::No }
    }
}

impl Attribute {
    /// An attribute with no options.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Self {
            name: name.into(),
            data_type,
            default: None,
            expression: None,
            hierarchy: Hierarchy::Flat,
            injectivity: Injectivity::Unknown,
            object_id: ObjectId::No,
        }
    }

    fn validate(&self, key: &Key) -> Result<(), DictError> {
        if let Some(Literal::Bare(text) | Literal::Quoted(text)) =
            self.default.as_ref().filter(|literal| is_short_time(&self.data_type, literal))
        {
            return Err(DictError::new(
                Code::CannotParseDatetime,
                format!(
                    "Cannot parse DateTime: {text} has fewer than the five digits of a Unix time: While parsing null_value for attribute with name {}",
                    self.name
                ),
            ));
        }
        // The default has to be a value of the type; building a column of it is the check.
        crate::row::Column::new(&self.data_type).push_literal(self.default.as_ref()).map_err(|error| {
            let kind = self.default.as_ref().and_then(|it| unreadable(&self.data_type, it));
            let error = DictError::new(kind.unwrap_or(error.kind()), error.message());
            error.within(format_args!("DEFAULT of attribute {}", self.name))
        })?;
        if self.hierarchy == Hierarchy::Flat {
            return Ok(());
        }
        match (key, self.data_type.inner()) {
            (Key::Simple { .. }, DataType::UInt64) => Ok(()),
            (Key::Simple { .. }, other) => Err(DictError::new(
                Code::TypeMismatch,
                format!("HIERARCHICAL attribute {} must be UInt64, as the key is; it is {other}", self.name),
            )),
            (Key::Complex(_), _) => Err(DictError::bad_arguments(format!(
                "HIERARCHICAL attribute {} needs a simple key; the key of this dictionary is complex",
                self.name
            ))),
        }
    }
}

impl Definition {
    /// `database.name`, or the name alone.
    pub fn full_name(&self) -> String {
        match &self.database {
            Some(database) => format!("{database}.{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Whether its source is the table `name` of `database` on the same server.
    pub fn reads_own_table(&self, database: &str, name: &str) -> bool {
        self.source.reads_own_table(database, name)
    }

    /// Puts the dictionary into `database`; a source on the same server that names no database then reads from this
    /// one.
    pub fn set_default_database(&mut self, database: &str) {
        self.database = Some(database.to_string());
        self.source.set_default_database(database);
    }

    /// The definition under another name.
    pub fn moved(mut self, database: Option<String>, name: String) -> Definition {
        if self.database != database {
            self.source.pin_database();
        }
        Definition { database, name, ..self }
    }

    /// The definition with its UUID, or else with a random one.
    pub fn with_uuid(mut self) -> Definition {
        self.uuid.get_or_insert_with(|| {
            let mut bytes = fastrand::Rng::new().u128(..).to_be_bytes();
            // Version and variant bits of a random UUID (RFC 9562).
            bytes[6] = bytes[6] & 0x0f | 0x40;
            bytes[8] = bytes[8] & 0x3f | 0x80;
            bytes
        });
        self
    }

    /// The text of its UUID.
    pub fn uuid_text(&self) -> Option<String> {
        let mut text = String::new();
        print_fixed(&DataType::Uuid, self.uuid.as_ref()?, &mut text);
        Some(text)
    }

    /// Whether another definition means the same, however it is written; UUIDs and comments do not count.
    pub fn is_same_as(&self, other: &Definition) -> bool {
        self.spelled_out() == other.spelled_out()
    }

    fn spelled_out(&self) -> String {
        let mut definition = Definition { uuid: None, comment: String::new(), ..self.clone() };
        definition.source.spell_out();
        definition.to_sql_with_secrets()
    }

    /// The definition with the parameters that named collections give its source, and [valid](Self::validate).
    ///
    /// # Errors
    /// A collection that does not exist or leaves the source incomplete; what does not fit together.
    pub fn completed(mut self, collections: &Collections) -> Result<Definition, DictError> {
        self.source.fill(collections)?;
        self.validate()?;
        Ok(self)
    }

    /// Checks what no single clause can check. `parse_create`, `parse_xml` and `Dictionary::open` call it.
    pub fn validate(&self) -> Result<(), DictError> {
        if self.name.is_empty() {
            return Err(DictError::definition("A dictionary needs a name"));
        }
        self.structure.validate()?;
        let Lifetime { min_seconds, max_seconds } = self.lifetime;
        if min_seconds > max_seconds {
            return Err(DictError::bad_arguments(format!(
                "LIFETIME: MIN {min_seconds} is greater than MAX {max_seconds}"
            )));
        }
        if max_seconds > limits::LIFETIME_SECONDS_MAX {
            return Err(DictError::bad_arguments(format!(
                "LIFETIME: MAX {max_seconds} is greater than {}",
                limits::LIFETIME_SECONDS_MAX
            )));
        }
        self.layout.validate()?;
        self.source.check_layout(&self.layout)?;
        self.source.check_settings(&self.settings)?;
        self.validate_lookup_key()?;
        if let (LayoutKind::FullLoad(FullLoadLayout::Flat), Key::Complex(_)) =
            (&self.layout.kind, &self.structure.key)
        {
            return Err(DictError::definition(
                "Primary key for simple dictionary must contain exactly one element; LAYOUT(COMPLEX_KEY_HASHED()) takes several",
            ));
        }
        if matches!(self.layout.kind, LayoutKind::Direct) && self.lifetime != Lifetime::FOREVER {
            return Err(DictError::bad_arguments(
                "'lifetime' parameter is redundant for the dictionary of layout 'direct'",
            ));
        }
        self.source.validate(&self.structure)
    }
}

impl Lifetime {
    /// The lifetime of rows that never expire.
    pub const FOREVER: Lifetime = Lifetime { min_seconds: 0, max_seconds: 0 };
}
