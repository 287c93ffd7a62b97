//! The layouts that hold all rows of the source.

use super::layout::KeyForm;
use super::node::{Accepted, Node, Settings};
use super::range::{RANGE_PARAMETERS, RangeSettings};
use super::update::SOURCE_PARAMETERS;
use crate::error::DictError;

/// ClickHouse's layouts that hold all rows. They are kept in the same way; what a row is found by, which of several
/// that are found counts, and in which order they are read, is each one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WholeForm {
    /// FLAT.
    Flat,
    /// HASHED.
    Hashed,
    /// SPARSE_HASHED.
    SparseHashed,
    /// HASHED_ARRAY.
    HashedArray,
    /// RANGE_HASHED.
    RangeHashed(RangeSettings),
    /// IP_TRIE.
    IpTrie(KeyAccess),
    /// POLYGON, by any of its names.
    Polygon(PolygonName, PolygonKey),
    /// REGEXP_TREE.
    RegexpTree,
}

/// How ClickHouse is told to look for polygons; here it is one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolygonName {
    /// POLYGON.
    Usual,
    /// POLYGON_SIMPLE.
    Simple,
    /// POLYGON_INDEX_EACH.
    IndexEach,
    /// POLYGON_INDEX_CELL.
    IndexCell,
}

/// Whether all rows can be read, with their polygons (STORE_POLYGON_KEY_COLUMN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolygonKey {
    /// They cannot.
    Dropped,
    /// They can.
    Stored,
}

/// Whether the key of a row that was found can be asked for as an attribute (ACCESS_TO_KEY_FROM_ATTRIBUTES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAccess {
    /// It cannot.
    Hidden,
    /// It can.
    Attribute,
}

/// How ClickHouse arranges rows in RAM, which changes nothing here.
const HASHED_IGNORED: &[&str] = &[
    "INITIAL_ARRAY_SIZE",
    "MAX_ARRAY_SIZE",
    "PREALLOCATE",
    "SHARDS",
    "SHARD_LOAD_QUEUE_BACKLOG",
    "MAX_LOAD_FACTOR",
];
/// What POLYGON is told of how to look for polygons is accepted, and changes nothing.
const POLYGON_PARAMETERS: &[&str] = &[POLYGON_KEY, "MIN_INTERSECTIONS", "MAX_DEPTH"];
const POLYGON_KEY: &str = "STORE_POLYGON_KEY_COLUMN";
const KEY_ACCESS: &str = "ACCESS_TO_KEY_FROM_ATTRIBUTES";

impl WholeForm {
    /// Reads the layout called `kind`, behind COMPLEX_KEY_ or not; `None`: it is none of these.
    pub(super) fn from_node<'a>(
        node: &'a Node,
        kind: &str,
        key_form: KeyForm,
        parameters: &'a [Node],
    ) -> Result<Option<(WholeForm, Settings<'a>)>, DictError> {
        let hashed = |form| {
            let accepted = Accepted {
                allowed: SOURCE_PARAMETERS.into(),
                repeated: vec![],
                ignored: HASHED_IGNORED,
                refused: &[],
            };
            let settings = Settings::of("LAYOUT", &node.name, parameters, accepted)?;
            Ok(Some((form, settings)))
        };
        match (kind, key_form) {
            // A key of several parts is no place in an array: there is no COMPLEX_KEY_FLAT.
            ("FLAT", KeyForm::Simple) => hashed(WholeForm::Flat),
            ("HASHED", _) => hashed(WholeForm::Hashed),
            ("SPARSE_HASHED", _) => hashed(WholeForm::SparseHashed),
            ("HASHED_ARRAY", _) => hashed(WholeForm::HashedArray),
            ("RANGE_HASHED", _) => {
                let allowed = [RANGE_PARAMETERS, SOURCE_PARAMETERS].concat();
                let settings = Settings::new("LAYOUT", &node.name, parameters, allowed)?;
                Ok(Some((WholeForm::RangeHashed(RangeSettings::take(&settings)?), settings)))
            }
            ("IP_TRIE", KeyForm::Simple) => {
                let allowed = [&[KEY_ACCESS], SOURCE_PARAMETERS].concat();
                let settings = Settings::new("LAYOUT", &node.name, parameters, allowed)?;
                let is_attribute = settings.flag(KEY_ACCESS)?;
                let access = if is_attribute { KeyAccess::Attribute } else { KeyAccess::Hidden };
                Ok(Some((WholeForm::IpTrie(access), settings)))
            }
            ("REGEXP_TREE", KeyForm::Simple) => {
                let settings = Settings::new("LAYOUT", &node.name, parameters, SOURCE_PARAMETERS)?;
                Ok(Some((WholeForm::RegexpTree, settings)))
            }
            (_, KeyForm::Simple) => {
                let Some(name) = PolygonName::of(kind) else { return Ok(None) };
                let allowed = [POLYGON_PARAMETERS, SOURCE_PARAMETERS].concat();
                let settings = Settings::new("LAYOUT", &node.name, parameters, allowed)?;
                let is_stored = settings.flag(POLYGON_KEY)?;
                let key = if is_stored { PolygonKey::Stored } else { PolygonKey::Dropped };
                Ok(Some((WholeForm::Polygon(name, key), settings)))
            }
            _ => Ok(None),
        }
    }

    /// Which form the key has of a layout that is written in this one.
    pub(super) fn key_form(self, written: KeyForm) -> KeyForm {
        match self {
            WholeForm::IpTrie(_) | WholeForm::Polygon(..) | WholeForm::RegexpTree => KeyForm::Complex,
            _ => written,
        }
    }

    /// The layout as DDL names it.
    pub(super) fn name(self, key_form: KeyForm) -> &'static str {
        match (self, key_form) {
            (WholeForm::Flat, _) => "FLAT",
            (WholeForm::Hashed, KeyForm::Simple) => "HASHED",
            (WholeForm::Hashed, KeyForm::Complex) => "COMPLEX_KEY_HASHED",
            (WholeForm::SparseHashed, KeyForm::Simple) => "SPARSE_HASHED",
            (WholeForm::SparseHashed, KeyForm::Complex) => "COMPLEX_KEY_SPARSE_HASHED",
            (WholeForm::HashedArray, KeyForm::Simple) => "HASHED_ARRAY",
            (WholeForm::HashedArray, KeyForm::Complex) => "COMPLEX_KEY_HASHED_ARRAY",
            (WholeForm::RangeHashed(_), KeyForm::Simple) => "RANGE_HASHED",
            (WholeForm::RangeHashed(_), KeyForm::Complex) => "COMPLEX_KEY_RANGE_HASHED",
            (WholeForm::IpTrie(_), _) => "IP_TRIE",
            (WholeForm::Polygon(name, _), _) => name.name(),
            (WholeForm::RegexpTree, _) => "REGEXP_TREE",
        }
    }

    /// What `system.dictionaries` calls it.
    pub(crate) fn type_name(self, key_form: KeyForm) -> &'static str {
        match (self, key_form) {
            (WholeForm::Flat, _) => "Flat",
            (WholeForm::Hashed, KeyForm::Simple) => "Hashed",
            (WholeForm::Hashed, KeyForm::Complex) => "ComplexKeyHashed",
            (WholeForm::SparseHashed, KeyForm::Simple) => "SparseHashed",
            (WholeForm::SparseHashed, KeyForm::Complex) => "ComplexKeySparseHashed",
            (WholeForm::HashedArray, KeyForm::Simple) => "HashedArray",
            (WholeForm::HashedArray, KeyForm::Complex) => "ComplexHashedArray",
            (WholeForm::RangeHashed(_), KeyForm::Simple) => "RangeHashed",
            (WholeForm::RangeHashed(_), KeyForm::Complex) => "ComplexKeyRangeHashed",
            (WholeForm::IpTrie(_), _) => "Trie",
            (WholeForm::Polygon(..), _) => "Polygon",
            (WholeForm::RegexpTree, _) => "RegExpTree",
        }
    }

    /// The settings that differ from their defaults.
    pub(super) fn put(self, nodes: &mut Vec<Node>) {
        match self {
            WholeForm::RangeHashed(settings) => settings.put(nodes),
            WholeForm::IpTrie(KeyAccess::Attribute) => nodes.push(Node::text(KEY_ACCESS, "1")),
            WholeForm::Polygon(_, PolygonKey::Stored) => nodes.push(Node::text(POLYGON_KEY, "1")),
            WholeForm::IpTrie(KeyAccess::Hidden) | WholeForm::Polygon(_, PolygonKey::Dropped) => {}
            WholeForm::Flat | WholeForm::Hashed | WholeForm::SparseHashed => {}
            WholeForm::HashedArray | WholeForm::RegexpTree => {}
        }
    }
}

impl PolygonName {
    const ALL: [PolygonName; 4] =
        [PolygonName::Usual, PolygonName::Simple, PolygonName::IndexEach, PolygonName::IndexCell];

    fn of(kind: &str) -> Option<PolygonName> {
        Self::ALL.into_iter().find(|name| name.name() == kind)
    }

    fn name(self) -> &'static str {
        match self {
            PolygonName::Usual => "POLYGON",
            PolygonName::Simple => "POLYGON_SIMPLE",
            PolygonName::IndexEach => "POLYGON_INDEX_EACH",
            PolygonName::IndexCell => "POLYGON_INDEX_CELL",
        }
    }
}
