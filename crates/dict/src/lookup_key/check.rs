//! Checks of keys and attributes for each kind of lookup.

use super::{LookupKey, Outline};
use crate::config::{FullLoadLayout, LayoutKind, PolygonKey};
use crate::definition::{Attribute, Definition, Hierarchy, KeyColumn};
use crate::error::{Code, DictError};
use crate::types::DataType;

impl Definition {
    /// Checks that rows are found by their keys alone.
    ///
    /// # Errors
    /// `UNSUPPORTED_METHOD` if rows are found by something else.
    pub fn require_keys(&self) -> Result<(), DictError> {
        match self.layout.lookup_key() {
            LookupKey::Key => Ok(()),
            LookupKey::KeyInRange | LookupKey::Address | LookupKey::Point | LookupKey::Text => {
                Err(DictError::new(
                    Code::UnsupportedMethod,
                    format!(
                        "Dictionary {} has the layout {}, whose rows are not found by their keys alone",
                        self.full_name(),
                        self.layout.name()
                    ),
                ))
            }
        }
    }

    /// Checks that the structure suits the layout's kind of lookup.
    pub(crate) fn validate_lookup_key(&self) -> Result<(), DictError> {
        match self.layout.lookup_key() {
            LookupKey::Key => return Ok(()),
            LookupKey::KeyInRange => self.validate_bounds()?,
            LookupKey::Address => self.validate_networks()?,
            LookupKey::Point => self.validate_polygons()?,
            LookupKey::Text => self.validate_regexps()?,
        }
        let is_parent = |attribute: &&Attribute| attribute.hierarchy != Hierarchy::Flat;
        match self.structure.attributes.iter().find(is_parent) {
            None => Ok(()),
            Some(parent) => Err(DictError::bad_arguments(format!(
                "Hierarchical attributes not supported by {} dictionary: {} is one",
                self.layout.name(),
                parent.name
            ))),
        }
    }

    /// Checks that the key is the text of a network.
    fn validate_networks(&self) -> Result<(), DictError> {
        match self.structure.key_columns().as_slice() {
            [KeyColumn { data_type: DataType::String, .. }] => Ok(()),
            [other] => Err(DictError::bad_arguments(format!(
                "The key of a dictionary of layout 'ip_trie' is a String, such as '10.0.0.0/8'; {} is {}",
                other.name, other.data_type
            ))),
            _ => Err(DictError::bad_arguments("Dictionary of layout 'ip_trie' has to have one 'key'")),
        }
    }

    /// Checks that the key is polygons.
    fn validate_polygons(&self) -> Result<(), DictError> {
        match self.structure.key_columns().as_slice() {
            [key] if Outline::of(&key.data_type).is_some() => Ok(()),
            [key] => Err(DictError::bad_arguments(format!(
                "The key type {} is not one of the following allowed types for a polygon dictionary: {}",
                key.data_type,
                Outline::TYPES.join(" ")
            ))),
            _ => Err(DictError::bad_arguments(
                "The 'key' should consist of a single attribute for a polygon dictionary",
            )),
        }
    }

    /// Refuses lookups with attributes that the layout does not support in ClickHouse, either.
    pub(crate) fn require_attributes(&self) -> Result<(), DictError> {
        let is_nullable = |attribute: &Attribute| attribute.data_type.is_nullable();
        match self.layout.lookup_key() {
            LookupKey::Address if self.structure.attributes.iter().any(is_nullable) => Err(DictError::new(
                Code::UnsupportedMethod,
                format!(
                    "{}: nullable attributes not supported for dictionary of type Trie",
                    self.full_name()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses to read all rows where their keys are not kept.
    pub(crate) fn require_rows(&self) -> Result<(), DictError> {
        match self.layout.kind {
            LayoutKind::FullLoad(FullLoadLayout::Polygon(_, PolygonKey::Dropped)) => Err(DictError::new(
                Code::UnsupportedMethod,
                "Set `store_polygon_key_column` setting in dictionary configuration to true to support reading from PolygonDictionary.",
            )),
            _ => Ok(()),
        }
    }

    /// Checks that the bounds are values of one type, which has an order.
    fn validate_bounds(&self) -> Result<(), DictError> {
        let [min, max] = self.bounds() else {
            return Err(DictError::definition("A range has two bounds"));
        };
        let (of_min, of_max) = (&min.data_type, &max.data_type);
        if of_min != of_max {
            return Err(DictError::bad_arguments(format!(
                "Dictionary structure 'range_min' and 'range_max' should have same type, 'range_min' type: {of_min}, 'range_max' type: {of_max}"
            )));
        }
        if of_min.extremes().is_none() {
            return Err(DictError::bad_arguments(format!(
                "Dictionary structure type of 'range_min' and 'range_max' should be an Integer of at most 64 bits, Float, Date, Date32, DateTime or DateTime64. Actual 'range_min' and 'range_max' type is {of_min}"
            )));
        }
        Ok(())
    }
}
