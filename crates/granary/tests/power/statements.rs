//! Statements that change what dictionaries there are, and what there is after each.

use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NAMES: [&str; 4] = ["default.a", "default.b", "one.a", "two.a"];
const DATABASES: [&str; 2] = ["one", "two"];
const COLLECTIONS: [&str; 2] = ["c", "d"];
const PATHS: [&str; 6] = ["p0", "p1", "p2", "p3", "p4", "p5"];
pub const KEYS: usize = 1000;

/// A dictionary that there should be.
#[derive(Clone, PartialEq, Eq)]
pub struct Made {
    path: &'static str,
    /// The version of the source when it was made.
    version: u64,
    /// The oldest version of each key's row that may be seen.
    pub oldest: Arc<Vec<u64>>,
}

/// What there should be.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    databases: BTreeSet<&'static str>,
    collections: BTreeSet<&'static str>,
    pub attached: BTreeMap<&'static str, Made>,
    pub detached: BTreeMap<&'static str, Made>,
}

/// The source of all dictionaries: each of its answers has its version.
pub trait Source {
    /// Has it a new version from here on.
    fn renew(&mut self) -> u64;
    /// As a statement names it.
    fn sql(&self) -> String;
}

impl Catalogue {
    /// What statements of the system's tables show of it.
    pub fn shown(&self) -> BTreeSet<String> {
        let databases = self.databases.iter().map(|name| format!("database {name}"));
        let collections = self.collections.iter().map(|name| format!("collection {name}"));
        let dictionaries =
            self.attached.iter().map(|(name, made)| format!("{name} {} {}", made.path, made.version));
        databases.chain(collections).chain(dictionaries).collect()
    }

    /// Does a statement, and gives what kind it is and its text; `None`: it does not suit what there is.
    pub fn change(&mut self, source: &mut impl Source, random: &mut Rng) -> Option<(&'static str, String)> {
        let attached: Vec<&str> = self.attached.keys().copied().collect();
        let has_database = |name: &&str| match name.split_once('.') {
            Some(("default", _)) => true,
            Some((database, _)) => self.databases.contains(database),
            None => false,
        };
        let is_free = |name: &&str| !self.attached.contains_key(name) && !self.detached.contains_key(name);
        let free: Vec<&str> = NAMES.into_iter().filter(has_database).filter(is_free).collect();
        let made = || self.attached.values().chain(self.detached.values());
        let paths = PATHS.into_iter().filter(|path| made().all(|made| made.path != *path));
        let path = *random.choice(&paths.collect::<Vec<_>>())?;
        let with_kind = |kind: &'static str, rest: String| Some((kind, format!("{kind} {rest}")));
        match random.u8(..24) {
            0..3 => {
                let name = *random.choice(&free)?;
                self.make(name, path, source, "CREATE DICTIONARY")
            }
            3 => {
                let name = *random.choice(&attached)?;
                self.make(name, path, source, "CREATE OR REPLACE DICTIONARY")
            }
            4 => {
                let name = *random.choice(&attached)?;
                self.attached.remove(name);
                with_kind("DROP DICTIONARY", name.to_owned())
            }
            5..7 => {
                let (name, other) = (*random.choice(&attached)?, *random.choice(&free)?);
                let made = self.attached.remove(name)?;
                self.attached.insert(other, made);
                with_kind("RENAME DICTIONARY", format!("{name} TO {other}"))
            }
            7 => {
                let (name, other) = (*random.choice(&attached)?, *random.choice(&attached)?);
                let [made, others] = [name, other].map(|name| self.attached[name].clone());
                self.attached.extend([(other, made), (name, others)]);
                with_kind("EXCHANGE DICTIONARIES", format!("{name} AND {other}"))
            }
            8 => {
                let name = *random.choice(&attached)?;
                let made = self.attached.remove(name)?;
                self.detached.insert(name, made);
                Some(("DETACH DICTIONARY", format!("DETACH DICTIONARY {name} PERMANENTLY")))
            }
            9..11 => {
                let name = *random.choice(&self.detached.keys().copied().collect::<Vec<_>>())?;
                let made = self.detached.remove(name)?;
                self.attached.insert(name, made);
                with_kind("ATTACH DICTIONARY", name.to_owned())
            }
            11..13 => {
                let name = DATABASES.into_iter().find(|name| !self.databases.contains(name))?;
                self.databases.insert(name);
                with_kind("CREATE DATABASE", name.to_owned())
            }
            13 => {
                let name = random.choice(DATABASES)?;
                let is_elsewhere = |of: &&str| !of.starts_with(name);
                // One with dictionaries that were detached is not dropped.
                if !self.databases.contains(name) || !self.detached.keys().all(is_elsewhere) {
                    return None;
                }
                self.databases.remove(name);
                self.attached.retain(|of, _| is_elsewhere(of));
                with_kind("DROP DATABASE", name.to_owned())
            }
            14 => {
                let name = random.choice(COLLECTIONS)?;
                match self.collections.remove(name) {
                    true => with_kind("DROP NAMED COLLECTION", name.to_owned()),
                    false => {
                        self.collections.insert(name);
                        with_kind("CREATE NAMED COLLECTION", format!("{name} AS password = 'secret'"))
                    }
                }
            }
            15 => {
                let name = *random.choice(&attached)?;
                self.attached.get_mut(name)?.oldest = Arc::new(vec![source.renew(); KEYS]);
                with_kind("SYSTEM RELOAD DICTIONARY", name.to_owned())
            }
            kind => {
                let name = *random.choice(&attached)?;
                let keys: Vec<usize> = (0..random.usize(1..200)).map(|_| random.usize(..KEYS)).collect();
                let listed = keys.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                let version = source.renew();
                let oldest = Arc::make_mut(&mut self.attached.get_mut(name)?.oldest);
                keys.into_iter().for_each(|key| oldest[key] = version);
                let kinds = ["SYSTEM INVALIDATE DICTIONARY", "SYSTEM REFRESH DICTIONARY"];
                with_kind(kinds[usize::from(kind) % 2], format!("{name} KEYS ({listed})"))
            }
        }
    }

    fn make(
        &mut self,
        name: &'static str,
        path: &'static str,
        source: &mut impl Source,
        kind: &'static str,
    ) -> Option<(&'static str, String)> {
        let version = source.renew();
        self.attached.insert(name, Made { path, version, oldest: Arc::new(vec![version; KEYS]) });
        let sql = format!(
            "{kind} {name} (id UInt64, value String DEFAULT 'none') PRIMARY KEY id SOURCE({}) LIFETIME(0) \
             LAYOUT(SSD_CACHE(PATH '{path}' FILE_SIZE 1048576 WRITE_BUFFER_SIZE 65536 MEMORY_CACHE_SIZE 100000 \
             COMPRESSION 'zstd')) COMMENT '{path} {version}'",
            source.sql()
        );
        Some((kind, sql))
    }
}
