//! The server killed with SIGKILL again and again while a client changes its catalogue.
//!
//! After each kill: a statement that was answered is done, the one under way is done or not, and nothing in between;
//! each dictionary has rows of its own table, none older than itself; and exactly the files of the existing
//! dictionaries exist.
//!
//! GRANARY_KILLS: number of kills (12). GRANARY_SEED: another sequence of events.

use crate::room::has_room;
use crate::served::Served;
use crate::skip::skipped;
use crate::unlocked::await_unlocked;
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Maximum time from the beginning of a life to the kill, in milliseconds.
const LIFE_MS_MAX: u64 = 300;
/// The kinds of statements, by their first words, but for DROP DATABASE, which is too rare to be waited for.
const KINDS: [&str; 6] =
    ["RENAME", "EXCHANGE", "CREATE DICTIONARY", "CREATE OR REPLACE", "DROP DICTIONARY", "SELECT"];
const DATABASES: [&str; 2] = ["default", "other"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const PATHS: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];
const TABLES: [&str; 2] = ["red", "blue"];
const KEYS: u64 = 20;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// An expected dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Made {
    table: &'static str,
    path: &'static str,
    /// The version of the tables when it was made.
    version: u64,
}

type Name = (&'static str, &'static str);
type Catalogue = BTreeMap<Name, Made>;

impl Made {
    fn sql(&self, (database, name): Name) -> String {
        format!(
            "DICTIONARY {database}.{name} (id UInt64, name String) PRIMARY KEY id \
             SOURCE(SQLITE(PATH 'tables.db' TABLE '{}')) LIFETIME(0) \
             LAYOUT(SSD_CACHE(BLOCK_SIZE 4096 FILE_SIZE 262144 WRITE_BUFFER_SIZE 65536 PATH '{}')) \
             COMMENT '{}'",
            self.table, self.path, self.version
        )
    }
}

/// The tables that the dictionaries read.
struct Tables {
    database: rusqlite::Connection,
    version: u64,
}

impl Tables {
    fn new(folder: &Path) -> Tables {
        let folder = folder.join("user_files");
        std::fs::create_dir_all(&folder).unwrap();
        let database = rusqlite::Connection::open(folder.join("tables.db")).unwrap();
        database.busy_timeout(Duration::from_secs(60)).unwrap();
        // So that no journal file comes and goes.
        database.execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF").unwrap();
        for table in TABLES {
            let made = format!(
                "CREATE TABLE {table} (id INTEGER PRIMARY KEY, name TEXT);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
                 INSERT INTO {table} SELECT i, '{table} 0 ' || i FROM n;"
            );
            database.execute_batch(&made).unwrap();
        }
        Tables { database, version: 0 }
    }

    /// Changes all rows.
    fn change(&mut self) {
        self.version += 1;
        for table in TABLES {
            let update = format!("UPDATE {table} SET name = '{table} {} ' || id", self.version);
            self.database.execute_batch(&update).unwrap();
        }
    }
}

/// A statement, and the expected catalogue after it.
fn next(catalogue: &Catalogue, tables: &mut Tables, random: &mut Rng) -> Option<(String, Catalogue)> {
    let all = DATABASES.iter().flat_map(|database| NAMES.iter().map(move |name| (*database, *name)));
    let (taken, free): (Vec<Name>, Vec<Name>) = all.partition(|name| catalogue.contains_key(name));
    let unused = |path: &&&'static str| !catalogue.values().any(|made| made.path == **path);
    let paths: Vec<&'static str> = PATHS.iter().filter(unused).copied().collect();
    let shown = |(database, name): Name| format!("{database}.{name}");
    let mut after = catalogue.clone();
    let sql = match random.u64(..8) {
        0 => {
            let (from, to) = (*random.choice(&taken)?, *random.choice(&free)?);
            let made = after.remove(&from)?;
            after.insert(to, made);
            format!("RENAME DICTIONARY {} TO {}", shown(from), shown(to))
        }
        1 => {
            let (one, other) = (*random.choice(&taken)?, *random.choice(&taken)?);
            let [first, second] = [after.remove(&one)?, after.remove(&other)?];
            after.extend([(one, second), (other, first)]);
            format!("EXCHANGE DICTIONARIES {} AND {}", shown(one), shown(other))
        }
        2 => {
            let (name, path) = (*random.choice(&free)?, *random.choice(&paths)?);
            tables.change();
            let made = Made { table: random.choice(TABLES)?, path, version: tables.version };
            let sql = format!("CREATE {}", made.sql(name));
            after.insert(name, made);
            sql
        }
        3 => {
            let name = *random.choice(&taken)?;
            // In its own place or a free one, over its own table or the other.
            let path = random.choice([&paths[..], &[catalogue[&name].path; 4]].concat())?;
            tables.change();
            let made = Made { table: random.choice(TABLES)?, path, version: tables.version };
            let sql = format!("CREATE OR REPLACE {}", made.sql(name));
            after.insert(name, made);
            sql
        }
        4 => {
            let name = *random.choice(&taken)?;
            after.remove(&name);
            format!("DROP DICTIONARY {}", shown(name))
        }
        5 if random.u64(..4) == 0 && taken.iter().any(|(database, _)| *database == "other") => {
            after.retain(|(database, _), _| *database != "other");
            "DROP DATABASE other".to_owned()
        }
        _ => {
            // Reads an existing dictionary.
            let name = *random.choice(&taken)?;
            format!("SELECT dictGet('{}', 'name', number + 1) FROM numbers({KEYS})", shown(name))
        }
    };
    Some((sql, after))
}

/// The server's dictionaries: their full names, and the quoted texts of their statements.
fn found(served: &Served) -> BTreeSet<(String, String)> {
    let rows = served.sql("SELECT database, name FROM system.dictionaries");
    let names = rows.lines().map(|row| row.replace('\t', "."));
    names
        .map(|name| {
            let statement = served.sql(&format!("SHOW CREATE DICTIONARY {name} FORMAT TSVRaw"));
            assert!(statement.starts_with(&format!("CREATE DICTIONARY {name}")), "{statement}");
            let quoted: Vec<&str> = statement.split('\'').skip(1).step_by(2).collect();
            (name, quoted.join(" "))
        })
        .collect()
}

fn expected(catalogue: &Catalogue) -> BTreeSet<(String, String)> {
    let of = |((database, name), Made { table, path, version }): (&Name, &Made)| {
        (format!("{database}.{name}"), format!("tables.db {table} {path} {version}"))
    };
    catalogue.iter().map(of).collect()
}

/// Checks that the dictionaries have their own rows, and that only their files exist.
fn check(served: &Served, catalogue: &Catalogue, tables: &Tables, folder: &Path) {
    for ((database, name), made) in catalogue {
        let rows = format!(
            "SELECT number + 1, dictGet('{database}.{name}', 'name', number + 1) FROM numbers({KEYS})"
        );
        for row in served.sql(&rows).lines() {
            let (key, value) = row.split_once('\t').unwrap();
            let [table, version, id] = value.split(' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
            assert_eq!((table, id), (made.table, key), "{database}.{name}, {made:?}");
            let version: u64 = version.parse().unwrap();
            let versions = made.version..=tables.version;
            assert!(versions.contains(&version), "{database}.{name}, {made:?}: version {version}");
        }
    }
    let files = std::fs::read_dir(folder.join("user_files")).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let owners: BTreeSet<String> = files
        .filter(|file| file != "tables.db")
        .map(|file| file.split('.').next().unwrap().to_owned())
        .collect();
    let paths: BTreeSet<String> = catalogue.values().map(|made| made.path.to_owned()).collect();
    assert_eq!(owners, paths, "files, and the dictionaries that they may be of: {catalogue:?}");
}

#[test]
fn statements_of_the_catalogue_are_whole_or_not_at_all_after_kills() {
    let folder = tempfile::tempdir().unwrap();
    let mut tables = Tables::new(folder.path());
    let mut random = Rng::with_seed(setting("GRANARY_SEED", 1));
    let mut catalogue = Catalogue::new();
    let kills = setting("GRANARY_KILLS", 12);
    let (mut accepted, mut done) = ([0; KINDS.len()], 0);
    let mut served = Served::start(folder.path(), &[]);
    for kill in 1..=kills {
        let life = Duration::from_millis(random.u64(..LIFE_MS_MAX));
        let under_way = std::thread::scope(|scope| {
            let (begin, begun) = channel();
            let served = &served;
            scope.spawn(move || {
                // A life begins with its first answer, and once each kind of statement was accepted as often as there
                // were lives: a slow machine lives longer.
                let _ = begun.recv_timeout(Duration::from_secs(60));
                std::thread::sleep(life);
                served.signal("KILL");
            });
            loop {
                let Some((sql, after)) = next(&catalogue, &mut tables, &mut random) else { continue };
                let Some(_) = served.try_sql("CREATE DATABASE IF NOT EXISTS other") else {
                    break (String::new(), catalogue.clone());
                };
                if accepted.iter().all(|times| *times >= kill) {
                    let _ = begin.send(());
                }
                match served.try_sql(&sql) {
                    Some(_) => catalogue = after,
                    None => break (sql, after),
                }
                if let Some(kind) = KINDS.iter().position(|words| sql.starts_with(*words)) {
                    accepted[kind] += 1;
                }
            }
        });
        served.wait();
        let is_tested = accepted.iter().all(|times| *times >= kill);
        assert!(is_tested, "before kill {kill}, of {KINDS:?} were accepted {accepted:?}");
        await_unlocked(folder.path());
        served = Served::start(folder.path(), &[]);
        let found = found(&served);
        let (sql, after) = under_way;
        if found == expected(&after) {
            done += u64::from(found != expected(&catalogue));
            catalogue = after;
        }
        assert_eq!(found, expected(&catalogue), "behind {sql}");
        check(&served, &catalogue, &tables, folder.path());
    }
    println!(
        "{kills} kills; {accepted:?} of {KINDS:?} were accepted, and {done} of those under way were done"
    );
}

/// Rows that are in RAM and in write buffers only, none of which was full, are there after a kill, unless no folder is
/// to hold them.
#[test]
fn rows_that_are_in_ram_only_are_there_after_a_kill() {
    if !has_room(64 << 20) {
        return skipped("no room in /dev/shm: what is in RAM alone does not outlive a kill");
    }
    for (arguments, missed) in [(&[][..], "0\n"), (&["--dictionary-memory-folder", "none"], "1000\n")] {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::new(folder.path());
        let mut served = Served::start(folder.path(), arguments);
        let made = Made { table: "red", path: "p", version: tables.version };
        served.sql(&format!("CREATE {}", made.sql(("default", "d"))));
        // The one that it replaces is closed after it was opened, and leaves it its files.
        served.sql(&format!("CREATE OR REPLACE {}", made.sql(("default", "d"))));
        let missed_by_all = |served: &Served| {
            let named = "SELECT countIf(dictGet('d', 'name', number) != '') FROM numbers(1000)";
            assert_eq!(served.sql(named), format!("{KEYS}\n"));
            served.sql("SELECT keys_missed FROM system.dictionaries")
        };
        assert_eq!(missed_by_all(&served), "1000\n");
        assert_eq!(
            served.sql("SELECT flash_bytes_written FROM system.dictionaries"),
            "0\n",
            "no buffer was full"
        );
        served.signal("KILL");
        served.wait();
        await_unlocked(folder.path());
        served = Served::start(folder.path(), arguments);
        assert_eq!(missed_by_all(&served), missed, "{arguments:?}");
    }
}
