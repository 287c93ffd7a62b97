//! What a call asks for, checked against the dictionary's definition.

use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::logical_expr::ColumnarValue;
use granary_dialect::rewrite::ATTRIBUTE_SEPARATOR;
use granary_dialect::types::{said, type_name};
use granary_dialect::{Error, Result};
use granary_dict::{Dictionary, Key, LookupKey};

use super::function::FunctionKind;
use crate::catalogue::Catalogue;

/// A call's dictionary and attributes.
pub struct Call {
    pub dictionary: Arc<Dictionary>,
    /// Places of the attributes asked for; none for dictHas.
    pub attributes: Vec<usize>,
    pub shape: Shape,
}

/// Whether one attribute or a tuple of them was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Single,
    Tuple,
}

impl Call {
    /// Finds the dictionary and its attributes by the names given.
    pub fn resolve(
        catalogue: &Catalogue,
        dictionary: &str,
        attributes: Option<&str>,
        demanded: Option<&str>,
        function: &str,
    ) -> Result<Call> {
        let dictionary = catalogue.dictionary_shown_as(dictionary)?;
        let definition = dictionary.definition();
        let (names, shape) = match attributes {
            None => (Vec::new(), Shape::Single),
            Some(text) => match text.strip_prefix(ATTRIBUTE_SEPARATOR) {
                Some(names) => (names.split(ATTRIBUTE_SEPARATOR).collect::<Vec<_>>(), Shape::Tuple),
                None => (vec![text], Shape::Single),
            },
        };
        // A tuple of one name is that name, as in ClickHouse.
        let shape = if names.len() == 1 { Shape::Single } else { shape };
        if let Some((_, twice)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            let message = format!("Names of tuple elements must be unique. Duplicate name: {twice}");
            return Err(Error::duplicate_column(message));
        }
        let mut places = Vec::with_capacity(names.len());
        for name in names {
            let Some(place) = definition.attribute_index(name) else {
                let dictionary = definition.full_name();
                let known: Vec<&str> =
                    definition.named_attributes().iter().map(|a| a.name.as_str()).collect();
                let known = known.join(", ");
                return Err(Error::bad_arguments(format!(
                    "Dictionary attribute '{name}' not found in dictionary {dictionary}; it has {known}"
                )));
            };
            let given = definition.attribute(place).data_type.to_string();
            if let Some(demanded) = demanded
                && plain(&given) != demanded
            {
                return Err(Error::type_mismatch(format!(
                    "Dictionary attribute type mismatch: function {function} expects {demanded}, attribute {name} is {given}"
                )));
            }
            places.push(place);
        }
        Ok(Call { dictionary, attributes: places, shape })
    }

    /// Refuses NULL keys if several attributes are asked for. The type says too little: a column of an outer join is
    /// declared Nullable, and has defaults instead.
    pub fn check_key(&self, function: &str, key: &ColumnarValue) -> Result<()> {
        let has_null = match key {
            ColumnarValue::Array(array) => array.logical_null_count() > 0,
            ColumnarValue::Scalar(scalar) => scalar.is_null(),
        };
        let is_tuple = matches!(key.data_type(), DataType::Struct(_));
        match has_null && !is_tuple && self.shape == Shape::Tuple {
            false => Ok(()),
            true => Err(Error::unsupported_method(format!(
                "Function {function} support nullable key only for single dictionary attribute"
            ))),
        }
    }

    /// Refuses an answer of arrays or maps that could be NULL.
    pub fn check_nullable(&self, kind: FunctionKind, key_arguments: &[FieldRef]) -> Result<()> {
        if kind != FunctionKind::GetOrNull && !may_be_null(key_arguments) {
            return Ok(());
        }
        let mut fields = (0..self.attributes.len()).map(|place| self.attribute(place));
        match fields.find(|field| field.data_type().is_nested()) {
            None => Ok(()),
            Some(field) => {
                let nested = type_name(&field);
                let what = format!("Nested type {nested} cannot be inside Nullable type");
                Err(Error::illegal_type(what))
            }
        }
    }

    /// The field of the answer, given those of the key arguments.
    pub fn field(&self, function: &str, kind: FunctionKind, key_arguments: &[FieldRef]) -> FieldRef {
        let may_be_null = may_be_null(key_arguments);
        if kind == FunctionKind::Has {
            return Arc::new(Field::new(function, DataType::Boolean, may_be_null));
        }
        let nullable = |field: &Field| field.is_nullable() || may_be_null || kind == FunctionKind::GetOrNull;
        let mut chosen = (0..self.attributes.len()).map(|place| {
            let field = self.attribute(place);
            let nullable = nullable(&field);
            field.with_nullable(nullable)
        });
        match self.shape {
            Shape::Single => {
                Arc::new(chosen.next_back().unwrap_or_else(|| Field::new(function, DataType::Null, true)))
            }
            Shape::Tuple => Arc::new(Field::new(function, DataType::Struct(chosen.collect()), false)),
        }
    }

    /// Whether the answers have the planned types, nullability aside: another dictionary may have taken the name since.
    pub fn is_as_planned(&self, planned: &Field) -> bool {
        let is_same = |(place, planned): (usize, &Field)| {
            let own = self.attribute(place);
            own.data_type().equals_datatype(planned.data_type()) && said(&own) == said(planned)
        };
        match (self.shape, planned.data_type()) {
            (Shape::Tuple, DataType::Struct(elements)) => {
                let elements = elements.iter().map(AsRef::as_ref);
                self.attributes.len() == elements.len() && elements.enumerate().all(is_same)
            }
            (Shape::Tuple, _) => false,
            (Shape::Single, _) => is_same((0, planned)),
        }
    }

    /// Whether the `place`-th attribute asked for may be NULL.
    pub fn is_nullable(&self, place: usize) -> bool {
        self.dictionary.definition().attribute(self.attributes[place]).data_type.is_nullable()
    }

    /// The field of the `place`-th attribute asked for.
    pub fn attribute(&self, place: usize) -> Field {
        let attribute = self.dictionary.definition().attribute(self.attributes[place]);
        attribute.data_type.to_field(&attribute.name)
    }

    /// Whether texts are looked up; each takes its attributes from several rows.
    pub fn is_of_texts(&self) -> bool {
        self.dictionary.definition().layout.lookup_key() == LookupKey::Text
    }

    /// The number of arguments that are looked up: the key, and for rows with ranges a value in the range.
    pub fn key_argument_count(&self) -> usize {
        match self.dictionary.definition().layout.lookup_key() {
            LookupKey::Key | LookupKey::Address | LookupKey::Point | LookupKey::Text => 1,
            LookupKey::KeyInRange => 2,
        }
    }

    /// Whether the key is one UInt64.
    pub fn has_simple_key(&self) -> bool {
        matches!(self.dictionary.definition().structure.key, Key::Simple { .. })
    }
}

fn may_be_null(key_arguments: &[FieldRef]) -> bool {
    key_arguments.iter().any(|field| field.is_nullable() || field.data_type().is_null())
}

/// The type without a time zone. Nullable is another type, as in ClickHouse.
fn plain(name: &str) -> &str {
    if name.starts_with("DateTime(") { "DateTime" } else { name }
}
