//! Dictionaries: statements that were answered are done; rows are no older than what was forgotten or renewed last.

use crate::history::History;
use crate::process::Process;
use crate::statements::{Catalogue, KEYS, Source};
use fastrand::Rng;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The version that the source has after a loss of power.
const FRESH: u64 = 1_000_000;

pub struct Dictionaries {
    source: Program,
    /// What there is after so many operations, where that changed.
    states: Vec<(usize, Catalogue)>,
}

/// A program that finds its version in a file.
struct Program {
    file: PathBuf,
    version: u64,
}

impl Program {
    fn write_version(&self, version: u64) {
        std::fs::write(&self.file, version.to_string()).unwrap();
    }
}

impl Source for Program {
    fn renew(&mut self) -> u64 {
        self.version += 1;
        self.write_version(self.version);
        self.version
    }

    fn sql(&self) -> String {
        let program = r#"{print $1 "\tk" $1 "v" v "v" pad}"#.replace('\\', r"\\");
        format!(
            "EXECUTABLE(COMMAND 'awk -v v=$(cat {}) -v pad=$(seq -s x 60) \\'{program}\\'' FORMAT 'TabSeparated')",
            self.file.display()
        )
    }
}

impl Dictionaries {
    pub fn new(folder: &Path) -> Self {
        let source = Program { file: folder.join("version"), version: 1 };
        source.write_version(1);
        Self { source, states: vec![(0, Catalogue::default())] }
    }

    pub fn change(&mut self, process: &Process, history: &mut History, random: &mut Rng) {
        let mut catalogue = self.states.last().expect("the first one").1.clone();
        match catalogue.change(&mut self.source, random) {
            Some((kind, sql)) => {
                history.note(kind, || process.sql(&sql));
                self.states.push((history.len(), catalogue));
            }
            None => {
                let names: Vec<&str> = catalogue.attached.keys().copied().collect();
                let Some(name) = random.choice(&names) else { return };
                look_up(process, name, random.usize(..KEYS / 2), KEYS / 2);
            }
        }
    }

    /// Compares the dictionaries with what `done` operations, and maybe the next one, have made of them; gives how many
    /// rows are there without the source.
    pub fn check(&self, process: &Process, done: usize) -> usize {
        self.source.write_version(FRESH);
        let before = self.states.partition_point(|(operations, _)| *operations <= done);
        let (_, before) = &self.states[before - 1];
        let next = self.states.iter().find(|(operations, _)| *operations == done + 1).map(|state| &state.1);
        let found = found(process);
        let next = next.filter(|next| next.shown() == found);
        assert!(
            before.shown() == found || next.is_some(),
            "{found:?}, not {:?}, nor what is next",
            before.shown()
        );
        let mut warm = 0;
        let now = next.unwrap_or(before);
        let attaches = |name: &&&str| now == before || before.detached.contains_key(**name);
        for name in now.detached.keys().filter(attaches) {
            process.sql(&format!("ATTACH DICTIONARY {name}"));
        }
        for (name, made) in &now.attached {
            // What was being forgotten may be there or not.
            let made_before = before.attached.get(name).unwrap_or(made);
            for (key, version) in look_up(process, name, 0, KEYS).into_iter().enumerate() {
                let oldest = made.oldest[key].min(made_before.oldest[key]);
                let is_known = (oldest..=self.source.version).contains(&version);
                assert!(is_known || version == FRESH, "{name}, key {key}: version {version}, not {oldest}");
                warm += usize::from(is_known);
            }
        }
        warm
    }
}

/// What there is.
fn found(process: &Process) -> BTreeSet<String> {
    let rows = process.sql(
        "SELECT concat(database, '.', name, ' ', comment) FROM system.dictionaries WHERE name <> 'watched' \
         UNION ALL SELECT concat('collection ', name) FROM system.named_collections \
         UNION ALL SELECT concat('database ', name) FROM system.databases WHERE name IN ('one', 'two')",
    );
    rows.lines().map(str::to_owned).collect()
}

/// The versions of rows.
fn look_up(process: &Process, name: &str, first: usize, count: usize) -> Vec<u64> {
    let value = format!("dictGet('{name}', 'value', number + {first})");
    let rows = process.sql(&format!("SELECT number + {first}, {value} FROM numbers({count})"));
    let version = |(index, row): (usize, &str)| {
        let key = first + index;
        let value = row.strip_prefix(&format!("{key}\tk{key}v")).and_then(|rest| rest.split_once('v'));
        value.unwrap_or_else(|| panic!("{name}: {row:?}")).0.parse().unwrap()
    };
    let versions: Vec<u64> = rows.lines().enumerate().map(version).collect();
    assert_eq!(versions.len(), count);
    versions
}
