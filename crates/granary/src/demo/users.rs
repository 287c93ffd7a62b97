//! The database: a table of users in SQLite.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{Made, cities};
use crate::failure::{Failure, Result, at};
use crate::progress;

/// Rows between two updates of the progress bar.
const ROWS_PER_TICK: u64 = 10_000;
/// Tells the demo's database from others.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"GRAN");
const FIRST_DAY: &str = "2015-01-01";
/// Ten years of days on which users signed up.
const DAYS: u64 = 3653;

/// Makes the database, unless there is one with this number of users.
pub fn make(path: &Path, users: u64) -> Result<Made> {
    match users_in(path) {
        Some(found) if found == users => return Ok(Made::Before),
        None if path.exists() => {
            let what = format!("{} is no database of a demo: move it away", path.display());
            return Err(Failure::Argument(what));
        }
        _ => {}
    }
    let unfinished = path.with_extension("unfinished");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(at(&unfinished)(error)),
        _ => {}
    }
    fill(&unfinished, users)?;
    std::fs::rename(&unfinished, path).map_err(at(path))?;
    Ok(Made::Now)
}

/// The number of users, written into the file's header once all rows are there.
fn users_in(path: &Path) -> Option<u64> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let id: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).ok()?;
    // Earlier versions wrote none.
    if ![0, APPLICATION_ID].contains(&id) {
        return None;
    }
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).ok()?;
    u64::try_from(version).ok().filter(|users| *users > 0)
}

fn fill(path: &Path, users: u64) -> Result<()> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, city TEXT, score REAL, signed_up TEXT);
         BEGIN",
    )?;
    let mut insert = connection
        .prepare("INSERT INTO users VALUES (?1, 'user ' || ?1, ?2, ?3, date(?4, '+' || ?5 || ' days'))")?;
    let bar = progress::bar(users).with_prefix("users  ");
    for id in 0..users {
        let random = scramble(id);
        let score = (random >> 40) % 10_000;
        let day = (random >> 20) % DAYS;
        insert.execute((id as i64, cities::of(random), score as f64 / 100.0, FIRST_DAY, day as i64))?;
        if id % ROWS_PER_TICK == 0 {
            bar.set_position(id);
        }
    }
    bar.finish_and_clear();
    drop(insert);
    connection.execute_batch(&format!(
        "COMMIT; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {users}"
    ))?;
    Ok(())
}

/// SplitMix64: a user is the same in every demo.
fn scramble(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}
