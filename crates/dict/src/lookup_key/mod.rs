//! What a lookup is given: in most layouts a row's key, in some a value that lies in it.

mod bounds;
mod check;
mod outline;
mod regexps;

pub(crate) use bounds::{RangeNames, bounds_first};
pub(crate) use outline::Outline;
pub(crate) use regexps::Flags;

use crate::config::{FullLoadLayout, KeyAccess, Layout, LayoutKind};
use crate::definition::{Attribute, Definition, KeyColumn, Structure};
use crate::types::DataType;

/// What rows are found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupKey {
    /// Their key.
    Key,
    /// Their key, and a value between the row's two bounds: its first two attributes.
    KeyInRange,
    /// An address in the network of their key.
    Address,
    /// A point (x, y) in the polygons of their key.
    Point,
    /// A text in which their regular expression is found.
    Text,
}

impl Layout {
    /// What its rows are found by.
    pub fn lookup_key(&self) -> LookupKey {
        match self.kind {
            LayoutKind::FullLoad(FullLoadLayout::RangeHashed(_)) => LookupKey::KeyInRange,
            LayoutKind::FullLoad(FullLoadLayout::IpTrie(_)) => LookupKey::Address,
            LayoutKind::FullLoad(FullLoadLayout::Polygon(..)) => LookupKey::Point,
            LayoutKind::FullLoad(FullLoadLayout::RegexpTree) => LookupKey::Text,
            _ => LookupKey::Key,
        }
    }
}

impl Definition {
    /// Names and types of what a lookup is given, a column each.
    pub fn lookup_columns(&self) -> Vec<KeyColumn> {
        let mut columns = self.structure.key_columns();
        match self.layout.lookup_key() {
            LookupKey::Key | LookupKey::Text => {}
            LookupKey::KeyInRange => {
                let min = &self.bounds()[0];
                columns.push(KeyColumn::new(&min.name, min.data_type.clone()));
            }
            LookupKey::Address => columns[0].data_type = DataType::Ipv6,
            LookupKey::Point => {
                let coordinate = |name: &str| KeyColumn::new(name, DataType::Float64);
                columns = ["x", "y"].map(coordinate).to_vec();
            }
        }
        columns
    }

    /// The two attributes that bound a row's range; none where rows have no ranges.
    pub fn bounds(&self) -> &[Attribute] {
        &self.structure.attributes[..self.bound_count()]
    }

    /// The attributes that a lookup can ask for.
    pub fn named_attributes(&self) -> &[Attribute] {
        &self.structure.attributes[self.bound_count()..]
    }

    /// The index of such an attribute in the structure, or the next index if it is the key, where it can be asked for.
    pub fn attribute_index(&self, name: &str) -> Option<usize> {
        let place = self.named_attributes().iter().position(|attribute| attribute.name == name);
        let is_key = || self.key_attribute().is_some_and(|key| key.name == name);
        let behind = || is_key().then_some(self.structure.attributes.len());
        place.map(|place| place + self.bound_count()).or_else(behind)
    }

    /// The attribute at an index from [`attribute_index`](Self::attribute_index).
    pub fn attribute(&self, place: usize) -> Attribute {
        let attribute = self.structure.attributes.get(place).cloned();
        attribute.or_else(|| self.key_attribute()).expect("a place is one that attribute_index gave")
    }

    /// The key as an attribute, where it can be asked for as one.
    pub(crate) fn key_attribute(&self) -> Option<Attribute> {
        let LayoutKind::FullLoad(FullLoadLayout::IpTrie(KeyAccess::Attribute)) = self.layout.kind else {
            return None;
        };
        let key = self.structure.key_columns().swap_remove(0);
        Some(Attribute::new(key.name, key.data_type))
    }

    /// The structure of its source's rows, which is also that of reading all of them.
    pub fn rows(&self) -> Structure {
        match self.layout.lookup_key() {
            LookupKey::Text => regexps::rows(),
            LookupKey::Key | LookupKey::KeyInRange | LookupKey::Address | LookupKey::Point => {
                self.structure.clone()
            }
        }
    }

    /// The structure that the source is asked for: bounds may be NULL.
    pub(crate) fn asked_structure(&self) -> Structure {
        let mut structure = self.rows();
        for bound in &mut structure.attributes[..self.bound_count()] {
            bound.data_type = DataType::Nullable(Box::new(bound.data_type.clone()));
            bound.default = None;
        }
        structure
    }

    fn bound_count(&self) -> usize {
        match self.layout.lookup_key() {
            // A definition that was not checked may have fewer.
            LookupKey::KeyInRange => self.structure.attributes.len().min(2),
            LookupKey::Key | LookupKey::Address | LookupKey::Point | LookupKey::Text => 0,
        }
    }
}
