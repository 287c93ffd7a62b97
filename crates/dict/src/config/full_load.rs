//! The layouts that hold all rows of the source.

use super::layout::KeyForm;
use super::node::{Accepted, Node, Settings};
use super::range::{RANGE_PARAMETERS, RangeSettings};
use super::update::SOURCE_PARAMETERS;
use crate::error::DictError;

/// ClickHouse's layouts that hold all rows. They store rows alike; each has its own way to find a row, to choose among
/// several that are found, and to order them when they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullLoadLayout {
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

/// Names of ClickHouse's POLYGON layouts, which search differently there and alike here.
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
    /// The polygons are dropped: rows cannot be read.
    Dropped,
    /// The polygons are kept: rows can be read.
    Stored,
}

/// Whether the key of a row that was found can be asked for as an attribute (ACCESS_TO_KEY_FROM_ATTRIBUTES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAccess {
    /// The key cannot be asked for.
    Hidden,
    /// The key can be asked for.
    Attribute,
}

/// Parameters of how ClickHouse arranges rows in RAM, ignored here.
const HASHED_IGNORED: &[&str] = &[
    "INITIAL_ARRAY_SIZE",
    "MAX_ARRAY_SIZE",
    "PREALLOCATE",
    "SHARDS",
    "SHARD_LOAD_QUEUE_BACKLOG",
    "MAX_LOAD_FACTOR",
];
/// Parameters of POLYGON. Those that tell ClickHouse how to search are accepted and ignored.
const POLYGON_PARAMETERS: &[&str] = &[POLYGON_KEY, "MIN_INTERSECTIONS", "MAX_DEPTH"];
const POLYGON_KEY: &str = "STORE_POLYGON_KEY_COLUMN";
const KEY_ACCESS: &str = "ACCESS_TO_KEY_FROM_ATTRIBUTES";

impl FullLoadLayout {
    /// Reads the layout called `kind`, with or without COMPLEX_KEY_; `None`: `kind` is none of these.
    pub(super) fn from_node<'a>(
        node: &'a Node,
        kind: &str,
        key_form: KeyForm,
        parameters: &'a [Node],
    ) -> Result<Option<(FullLoadLayout, Settings<'a>)>, DictError> {
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
            // A key of several parts is no array index: there is no COMPLEX_KEY_FLAT.
            ("FLAT", KeyForm::Simple) => hashed(FullLoadLayout::Flat),
            ("HASHED", _) => hashed(FullLoadLayout::Hashed),
            ("SPARSE_HASHED", _) => hashed(FullLoadLayout::SparseHashed),
            ("HASHED_ARRAY", _) => hashed(FullLoadLayout::HashedArray),
            ("RANGE_HASHED", _) => {
                let allowed = [RANGE_PARAMETERS, SOURCE_PARAMETERS].concat();
                let settings = Settings::new("LAYOUT", &node.name, parameters, allowed)?;
                Ok(Some((FullLoadLayout::RangeHashed(RangeSettings::take(&settings)?), settings)))
            }
            ("IP_TRIE", KeyForm::Simple) => {
                let allowed = [&[KEY_ACCESS], SOURCE_PARAMETERS].concat();
                let settings = Settings::new("LAYOUT", &node.name, parameters, allowed)?;
                let is_attribute = settings.flag(KEY_ACCESS)?;
                let access = if is_attribute { KeyAccess::Attribute } else { KeyAccess::Hidden };
                Ok(Some((FullLoadLayout::IpTrie(access), settings)))
            }
            ("REGEXP_TREE", KeyForm::Simple) => {
                let settings = Settings::new("LAYOUT", &node.name, parameters, SOURCE_PARAMETERS)?;
                Ok(Some((FullLoadLayout::RegexpTree, settings)))
            }
            (_, KeyForm::Simple) => {
                let Some(name) = PolygonName::of(kind) else { return Ok(None) };
                let allowed = [POLYGON_PARAMETERS, SOURCE_PARAMETERS].concat();
                let settings = Settings::new("LAYOUT", &node.name, parameters, allowed)?;
                let is_stored = settings.flag(POLYGON_KEY)?;
                let key = if is_stored { PolygonKey::Stored } else { PolygonKey::Dropped };
                Ok(Some((FullLoadLayout::Polygon(name, key), settings)))
            }
            _ => Ok(None),
        }
    }

    /// The form of the key of a layout that was written with the form `written`.
    pub(super) fn key_form(self, written: KeyForm) -> KeyForm {
        match self {
            FullLoadLayout::IpTrie(_) | FullLoadLayout::Polygon(..) | FullLoadLayout::RegexpTree => {
                KeyForm::Complex
            }
            _ => written,
        }
    }

    /// The layout as DDL names it.
    pub(super) fn name(self, key_form: KeyForm) -> &'static str {
        match (self, key_form) {
            (FullLoadLayout::Flat, _) => "FLAT",
            (FullLoadLayout::Hashed, KeyForm::Simple) => "HASHED",
            (FullLoadLayout::Hashed, KeyForm::Complex) => "COMPLEX_KEY_HASHED",
            (FullLoadLayout::SparseHashed, KeyForm::Simple) => "SPARSE_HASHED",
            (FullLoadLayout::SparseHashed, KeyForm::Complex) => "COMPLEX_KEY_SPARSE_HASHED",
            (FullLoadLayout::HashedArray, KeyForm::Simple) => "HASHED_ARRAY",
            (FullLoadLayout::HashedArray, KeyForm::Complex) => "COMPLEX_KEY_HASHED_ARRAY",
            (FullLoadLayout::RangeHashed(_), KeyForm::Simple) => "RANGE_HASHED",
            (FullLoadLayout::RangeHashed(_), KeyForm::Complex) => "COMPLEX_KEY_RANGE_HASHED",
            (FullLoadLayout::IpTrie(_), _) => "IP_TRIE",
            (FullLoadLayout::Polygon(name, _), _) => name.name(),
            (FullLoadLayout::RegexpTree, _) => "REGEXP_TREE",
        }
    }

    /// The layout's type in `system.dictionaries`.
    pub(crate) fn type_name(self, key_form: KeyForm) -> &'static str {
        match (self, key_form) {
            (FullLoadLayout::Flat, _) => "Flat",
            (FullLoadLayout::Hashed, KeyForm::Simple) => "Hashed",
            (FullLoadLayout::Hashed, KeyForm::Complex) => "ComplexKeyHashed",
            (FullLoadLayout::SparseHashed, KeyForm::Simple) => "SparseHashed",
            (FullLoadLayout::SparseHashed, KeyForm::Complex) => "ComplexKeySparseHashed",
            (FullLoadLayout::HashedArray, KeyForm::Simple) => "HashedArray",
            (FullLoadLayout::HashedArray, KeyForm::Complex) => "ComplexHashedArray",
            (FullLoadLayout::RangeHashed(_), KeyForm::Simple) => "RangeHashed",
            (FullLoadLayout::RangeHashed(_), KeyForm::Complex) => "ComplexKeyRangeHashed",
            (FullLoadLayout::IpTrie(_), _) => "Trie",
            (FullLoadLayout::Polygon(..), _) => "Polygon",
            (FullLoadLayout::RegexpTree, _) => "RegExpTree",
        }
    }

    /// Adds the settings that differ from their defaults to `nodes`.
    pub(super) fn put(self, nodes: &mut Vec<Node>) {
        match self {
            FullLoadLayout::RangeHashed(settings) => settings.put(nodes),
            FullLoadLayout::IpTrie(KeyAccess::Attribute) => nodes.push(Node::text(KEY_ACCESS, "1")),
            FullLoadLayout::Polygon(_, PolygonKey::Stored) => nodes.push(Node::text(POLYGON_KEY, "1")),
            FullLoadLayout::IpTrie(KeyAccess::Hidden) | FullLoadLayout::Polygon(_, PolygonKey::Dropped) => {}
            FullLoadLayout::Flat | FullLoadLayout::Hashed | FullLoadLayout::SparseHashed => {}
            FullLoadLayout::HashedArray | FullLoadLayout::RegexpTree => {}
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
