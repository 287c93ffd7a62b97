//! The kinds of maps by name.

use super::{FlatMap, HashMap, Map, MapError, SkipListMap};
use std::fmt;
use std::str::FromStr;

/// The kind of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MapKind {
    /// [`FlatMap`].
    #[default]
    Flat,
    /// [`HashMap`].
    Hash,
    /// [`SkipListMap`].
    SkipList,
}

impl MapKind {
    /// All kinds.
    pub const ALL: [MapKind; 3] = [MapKind::Flat, MapKind::Hash, MapKind::SkipList];

    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        match self {
            MapKind::Flat => "flat",
            MapKind::Hash => "hash",
            MapKind::SkipList => "skip-list",
        }
    }

    /// Makes a map of `blocks` logical blocks, none of which is mapped.
    ///
    /// # Errors
    /// If there are too many blocks or too little memory.
    pub fn create(self, blocks: u64) -> Result<Box<dyn Map>, MapError> {
        Ok(match self {
            MapKind::Flat => Box::new(FlatMap::new(blocks)?),
            MapKind::Hash => Box::new(HashMap::new(blocks)?),
            MapKind::SkipList => Box::new(SkipListMap::new(blocks)?),
        })
    }
}

impl fmt::Display for MapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no map has.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no map `{0}`: choose `flat`, `hash` or `skip-list`")]
pub struct UnknownMap(pub String);

impl FromStr for MapKind {
    type Err = UnknownMap;

    fn from_str(name: &str) -> Result<Self, UnknownMap> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| UnknownMap(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::{MapKind, UnknownMap};

    #[test]
    fn kinds_have_names() {
        assert_eq!(MapKind::ALL.map(|kind| kind.to_string()), ["flat", "hash", "skip-list"]);
        assert!(MapKind::ALL.into_iter().all(|kind| kind.to_string().parse() == Ok(kind)));
        assert_eq!("Flat".parse::<MapKind>(), Err(UnknownMap("Flat".to_owned())));
    }
}
