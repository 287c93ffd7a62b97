//! The events: a Parquet file of user ids, in which few users make up most events.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use granary_lab::Skewed;
use granary_sql::arrow::array::{RecordBatch, UInt64Array};
use granary_sql::arrow::datatypes::{DataType, Field, Schema};
use granary_sql::format::{self, Format};

use super::Made;
use crate::failure::{Result, at};
use crate::progress;

/// The classic Zipf law.
const EXPONENT: f64 = 1.0;
const SEED: u64 = 20_260_101;
/// One event in UNKNOWN_EVERY is of a user that the database does not have.
const UNKNOWN_EVERY: u64 = 100;
/// One unknown user per USERS_PER_UNKNOWN known ones.
const USERS_PER_UNKNOWN: u64 = 50;
const BATCH: u64 = 65_536;

/// Makes the file, unless there is one with these numbers of users and events.
pub fn make(path: &Path, users: u64, events: u64) -> Result<Made> {
    let note = note(path);
    let made_from = format!("{users} users, {events} events, exponent {EXPONENT}, seed {SEED}\n");
    if path.exists() && std::fs::read_to_string(&note).is_ok_and(|text| text == made_from) {
        return Ok(Made::Before);
    }
    let unfinished = path.with_extension("unfinished");
    std::fs::write(&note, "").map_err(at(&note))?;
    write(&unfinished, users, events)?;
    std::fs::rename(&unfinished, path).map_err(at(path))?;
    std::fs::write(&note, made_from).map_err(at(&note))?;
    Ok(Made::Now)
}

/// The file beside the events that says which parameters they were made from; empty as long as they are not made.
pub fn note(path: &Path) -> PathBuf {
    path.with_extension("made-from")
}

fn write(path: &Path, users: u64, events: u64) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![Field::new("user_id", DataType::UInt64, false)]));
    let mut out = BufWriter::new(File::create(path).map_err(at(path))?);
    let mut writer = format::open(Format::Parquet, Arc::clone(&schema), &mut out)?;
    let mut known = Skewed::new(users, EXPONENT, SEED);
    let mut unknown = Skewed::new((users / USERS_PER_UNKNOWN).max(1), EXPONENT, SEED + 1);
    let bar = progress::bar(events).with_prefix("events ");
    for first in (0..events).step_by(BATCH as usize) {
        let ids = (first..events.min(first + BATCH)).map(|event| match event % UNKNOWN_EVERY {
            0 => users + unknown.next().expect("it has no end"),
            _ => known.next().expect("it has no end"),
        });
        let column = Arc::new(UInt64Array::from_iter_values(ids));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]);
        writer.write(&batch.expect("one column, as the schema says"))?;
        bar.set_position(first);
    }
    bar.finish_and_clear();
    Ok(writer.finish(format::Statistics::default())?)
}
