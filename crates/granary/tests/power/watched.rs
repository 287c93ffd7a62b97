//! A dictionary that looks for changes (UPDATE_FIELD): what it has known to be changed, and what changes while it is
//! down, is found after a loss of power. Its table is on the same file system.

use crate::history::History;
use crate::process::Process;
use fastrand::Rng;
use rusqlite::{Connection, params};
use std::path::Path;
use std::time::{Duration, Instant};

const ROWS: u32 = 300;

/// How long a look for changes may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first version of rows; there are some before it.
const FIRST: u32 = 1000;

/// How much later the last row is that changes while the server is down.
const FAR: u32 = 1_000_000;

pub struct Watched {
    /// The number of the operation that made the dictionary.
    made: Option<usize>,
    /// The numbers of the operations that restored the table.
    restored: Vec<usize>,
    /// How many changes there were: each value says which of them it is of.
    changes: u32,
}

/// The table; what it commits survives a loss of power.
fn table(path: &Path) -> Connection {
    let table = Connection::open(path.join("user_files/watched.db")).unwrap();
    table.busy_timeout(Duration::from_secs(60)).unwrap();
    table.execute_batch("PRAGMA synchronous = EXTRA").unwrap();
    table
}

fn newest(table: &Connection) -> u32 {
    table.query_row("SELECT max(version) FROM t", [], |row| row.get(0)).unwrap()
}

impl Watched {
    pub fn new() -> Self {
        Self { made: None, restored: Vec::new(), changes: 0 }
    }

    /// Makes the table and the dictionary.
    pub fn make(&mut self, path: &Path, process: &Process, history: &mut History) {
        let table = table(path);
        table.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, value TEXT, version INTEGER)").unwrap();
        let all: Vec<u32> = (0..ROWS).collect();
        self.change_rows(&table, &all, FIRST);
        self.made = Some(history.len());
        let sql = "CREATE DICTIONARY watched (id UInt64, value String) PRIMARY KEY id \
                   SOURCE(SQLITE(PATH 'watched.db' TABLE 't' UPDATE_FIELD 'version' UPDATE_LAG 0 UPDATE_PERIOD 1)) \
                   LAYOUT(SSD_CACHE(PATH 'watched' FILE_SIZE 1048576 WRITE_BUFFER_SIZE 16384 MEMORY_CACHE_SIZE 10000)) \
                   LIFETIME(0)";
        history.note("a dictionary that looks for changes", || {
            process.sql(sql);
            wait(&table, process);
            wait_for_look(&table, path);
        });
    }

    /// Changes rows, or puts an older table in place of this one, and waits until the server knows.
    pub fn change(&mut self, path: &Path, process: &Process, history: &mut History, random: &mut Rng) {
        let table = table(path);
        let (kind, keys, version) = match random.u8(..4) {
            0 => ("a table that is restored", (0..ROWS).collect(), newest(&table) - 20),
            _ => ("rows that change", some(random), newest(&table) + 1),
        };
        if keys.len() == ROWS as usize {
            self.restored.push(history.len());
        }
        history.note(kind, || {
            self.change_rows(&table, &keys, version);
            wait(&table, process);
            wait_for_look(&table, path);
        });
    }

    fn change_rows(&mut self, table: &Connection, keys: &[u32], version: u32) {
        self.changes += 1;
        table.execute_batch("BEGIN IMMEDIATE").unwrap();
        for key in keys {
            let value = format!("k{key} {} {}", self.changes, "x".repeat(200));
            let sql = "INSERT OR REPLACE INTO t VALUES (?, ?, ?)";
            table.execute(sql, params![key, value, version]).unwrap();
        }
        table.execute_batch("COMMIT").unwrap();
    }

    /// Changes rows while nobody looks.
    pub fn change_while_down(&mut self, path: &Path, done: usize, random: &mut Rng) {
        if self.is_there(done) {
            let table = table(path);
            // No other loss comes.
            table.execute_batch("PRAGMA synchronous = OFF").unwrap();
            let first = newest(&table) + 1;
            self.change_rows(&table, &some(random), first);
            // With a row that is as late as any before, nobody sees that a table was just restored.
            if !self.restored.contains(&done) {
                self.change_rows(&table, &[random.u32(..ROWS)], first + FAR);
            }
        }
    }

    /// Waits until the server shows what the table has.
    pub fn check(&self, path: &Path, process: &Process, done: usize) {
        if self.is_there(done) {
            wait(&table(path), process);
        }
    }

    fn is_there(&self, done: usize) -> bool {
        self.made.is_some_and(|made| made < done)
    }
}

fn some(random: &mut Rng) -> Vec<u32> {
    (0..random.u32(1..ROWS / 3)).map(|_| random.u32(..ROWS)).collect()
}

/// Waits until the server has looked for changes since the last one: rows that it cached only now show a table that was
/// restored, too, before a look has found that out.
fn wait_for_look(table: &Connection, path: &Path) {
    let newest = newest(table).to_string();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let saved = std::fs::read(path.join("user_files/watched.mark")).unwrap_or_default();
        let saved: serde_json::Value = serde_json::from_slice(&saved).unwrap_or_default();
        if saved["mark"] == newest.as_str() {
            return;
        }
        assert!(Instant::now() < deadline, "no look found {newest}: {saved}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the server shows what the table has.
fn wait(table: &Connection, process: &Process) {
    let mut rows = table.prepare("SELECT value FROM t ORDER BY id").unwrap();
    let expected: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = process.sql(&format!("SELECT dictGet('watched', 'value', number) FROM numbers({ROWS})"));
        let differs = found.lines().zip(&expected).find(|(found, expected)| found != expected);
        if differs.is_none() && found.lines().count() == expected.len() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "a change that is not found: {differs:?} of {}",
            found.lines().count()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
