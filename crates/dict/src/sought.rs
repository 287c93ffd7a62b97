//! What a lookup is given. Most layouts find rows by their keys, some by what lies in them.

use crate::config::{KeyAccess, Layout, PolygonKey, Storage, WholeForm};
use crate::definition::{Attribute, Definition, Hierarchy, KeyColumn, Structure};
use crate::error::{Code, DictError};
use crate::types::DataType;
use crate::whole::Outline;

/// What rows are found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// Their key.
    Key,
    /// Their key, and a value between the two bounds that each has: its first two attributes.
    KeyInRange,
    /// An address in the network that their key is.
    Address,
    /// A point, its x and its y, in the polygons that their key has.
    Point,
}

/// The columns of RANGE(MIN .. MAX ..).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RangeNames {
    pub min: String,
    pub max: String,
}

impl Layout {
    /// What its rows are found by.
    pub fn sought(&self) -> Sought {
        match self.storage {
            Storage::Whole(WholeForm::RangeHashed(_)) => Sought::KeyInRange,
            Storage::Whole(WholeForm::IpTrie(_)) => Sought::Address,
            Storage::Whole(WholeForm::Polygon(..)) => Sought::Point,
            _ => Sought::Key,
        }
    }
}

impl Definition {
    /// Names and types of what a lookup is given, a column each.
    pub fn sought_columns(&self) -> Vec<KeyColumn> {
        let mut columns = self.structure.key_columns();
        match self.layout.sought() {
            Sought::Key => {}
            Sought::KeyInRange => {
                let min = &self.bounds()[0];
                columns.push(KeyColumn { name: min.name.clone(), data_type: min.data_type.clone() });
            }
            Sought::Address => columns[0].data_type = DataType::Ipv6,
            Sought::Point => {
                let coordinate = |name: &str| KeyColumn { name: name.into(), data_type: DataType::Float64 };
                columns = ["x", "y"].map(coordinate).to_vec();
            }
        }
        columns
    }

    /// The first and the last value of a row's range; none where rows have no ranges.
    pub fn bounds(&self) -> &[Attribute] {
        &self.structure.attributes[..self.bound_count()]
    }

    /// The attributes that a lookup can ask for.
    pub fn named_attributes(&self) -> &[Attribute] {
        &self.structure.attributes[self.bound_count()..]
    }

    /// The place of one of them in the structure, or behind it if it is the key that can be asked for as one.
    pub fn attribute_index(&self, name: &str) -> Option<usize> {
        let place = self.named_attributes().iter().position(|attribute| attribute.name == name);
        let is_key = || self.key_attribute().is_some_and(|key| key.name == name);
        let behind = || is_key().then(|| self.structure.attributes.len());
        place.map(|place| place + self.bound_count()).or_else(behind)
    }

    /// The attribute at such a place.
    pub fn attribute(&self, place: usize) -> Attribute {
        let attribute = self.structure.attributes.get(place).cloned();
        attribute.or_else(|| self.key_attribute()).expect("a place is one that attribute_index gave")
    }

    /// The key as an attribute, where it can be asked for as one.
    pub(crate) fn key_attribute(&self) -> Option<Attribute> {
        let Storage::Whole(WholeForm::IpTrie(KeyAccess::Attribute)) = self.layout.storage else {
            return None;
        };
        let key = self.structure.key_columns().swap_remove(0);
        Some(Attribute::new(key.name, key.data_type))
    }

    /// What the source is asked for: a bound of its rows may be NULL.
    pub(crate) fn asked_structure(&self) -> Structure {
        let mut structure = self.structure.clone();
        for bound in &mut structure.attributes[..self.bound_count()] {
            bound.data_type = DataType::Nullable(Box::new(bound.data_type.clone()));
            bound.default = None;
        }
        structure
    }

    /// Refuses what can be done with keys alone.
    ///
    /// # Errors
    /// `UNSUPPORTED_METHOD` if rows are found by something else.
    pub fn require_keys(&self) -> Result<(), DictError> {
        match self.layout.sought() {
            Sought::Key => Ok(()),
            Sought::KeyInRange | Sought::Address | Sought::Point => Err(DictError::new(
                Code::UnsupportedMethod,
                format!(
                    "Dictionary {} has the layout {}, whose rows are not found by their keys alone",
                    self.full_name(),
                    self.layout.name()
                ),
            )),
        }
    }

    fn bound_count(&self) -> usize {
        match self.layout.sought() {
            Sought::KeyInRange => 2,
            Sought::Key | Sought::Address | Sought::Point => 0,
        }
    }

    /// Checks that rows can be found by what lies in them.
    pub(crate) fn validate_sought(&self) -> Result<(), DictError> {
        match self.layout.sought() {
            Sought::Key => return Ok(()),
            Sought::KeyInRange => self.validate_bounds()?,
            Sought::Address => self.validate_networks()?,
            Sought::Point => self.validate_polygons()?,
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

    /// The key is the text of a network.
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

    /// The key is polygons.
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

    /// Refuses to find rows with attributes that the layout does not have in ClickHouse, either.
    pub(crate) fn require_attributes(&self) -> Result<(), DictError> {
        let is_nullable = |attribute: &Attribute| attribute.data_type.is_nullable();
        match self.layout.sought() {
            Sought::Address if self.structure.attributes.iter().any(is_nullable) => Err(DictError::new(
                Code::UnsupportedMethod,
                format!(
                    "{}: nullable attributes not supported for dictionary of type Trie",
                    self.full_name()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses to read all rows where they have lost their keys.
    pub(crate) fn require_rows(&self) -> Result<(), DictError> {
        match self.layout.storage {
            Storage::Whole(WholeForm::Polygon(_, PolygonKey::Dropped)) => Err(DictError::new(
                Code::UnsupportedMethod,
                "Set `store_polygon_key_column` setting in dictionary configuration to true to support reading from PolygonDictionary.",
            )),
            _ => Ok(()),
        }
    }

    /// The bounds are values of one type, which has an order.
    fn validate_bounds(&self) -> Result<(), DictError> {
        let [min, max] = self.bounds() else { return Ok(()) };
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

/// Puts the columns of RANGE(..) before the other attributes.
pub(crate) fn bounds_first(
    mut attributes: Vec<Attribute>,
    layout: &Layout,
    range: Option<RangeNames>,
) -> Result<Vec<Attribute>, DictError> {
    let Some(range) = range else {
        return match layout.sought() {
            Sought::KeyInRange => Err(DictError::bad_arguments(format!(
                "dictionary of layout '{}' requires .structure.range_min and .structure.range_max: RANGE(MIN a MAX b)",
                layout.name().to_lowercase()
            ))),
            Sought::Key | Sought::Address | Sought::Point => Ok(attributes),
        };
    };
    let mut bounds = Vec::new();
    for (which, name) in [("MIN", &range.min), ("MAX", &range.max)] {
        let place = attributes.iter().position(|attribute| attribute.name == *name).ok_or_else(|| {
            let message = format!("{which} {name} attribute is not defined in the dictionary attributes");
            DictError::definition(message)
        })?;
        bounds.push(bound(attributes.remove(place)));
    }
    if layout.sought() != Sought::KeyInRange {
        return Err(DictError::bad_arguments(
            "elements .structure.range_min and .structure.range_max should be defined only for a dictionary of layout 'range_hashed'",
        ));
    }
    bounds.extend(attributes);
    Ok(bounds)
}

/// NULL is no bound: a row whose source has it is given another one, or left out.
fn bound(mut attribute: Attribute) -> Attribute {
    if let DataType::Nullable(inner) = attribute.data_type {
        attribute.data_type = *inner;
        attribute.default = None;
    }
    attribute
}
