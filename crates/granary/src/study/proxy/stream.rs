//! The keys asked for, and the expected answers.

use std::path::Path;

use granary_lab::{ClickHouse, Skewed};

use super::contender::ATTRIBUTES;
use super::size::ProxyStudySize;
use crate::failure::{Failure, Result, at};
use crate::study::postgres::Postgres;

/// Keys that are looked up together.
pub struct Batch {
    /// Name of the file with its keys.
    pub file: String,
    pub keys: Vec<u64>,
    /// The answer of `query` to right values; empty without ClickHouse to compute it.
    pub checksum: String,
}

/// Batches of keys, with Zipf's popularity.
pub struct Stream {
    pub batches: Vec<Batch>,
}

impl Stream {
    /// Draws a stream; `seed` selects the keys.
    pub fn draw(size: &ProxyStudySize, name: &str, seed: u64) -> Self {
        let mut keys = Skewed::new(size.keys, 1.0, seed);
        let batches = (0..size.batches).map(|i| Batch {
            file: format!("{name}-{i}.bin"),
            keys: keys.by_ref().take(size.batch).collect(),
            checksum: String::new(),
        });
        Self { batches: batches.collect() }
    }

    /// Number of different keys.
    pub fn distinct(&self) -> usize {
        let mut keys: Vec<u64> = self.batches.iter().flat_map(|batch| batch.keys.iter().copied()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    }

    /// Writes its keys where ClickHouse reads them.
    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(at(folder))?;
        for batch in &self.batches {
            let path = folder.join(&batch.file);
            std::fs::write(&path, batch.bytes()).map_err(at(&path))?;
        }
        Ok(())
    }

    /// Lets ClickHouse compute the expected checksums, from the rule that the table was made by.
    pub fn check_in(&mut self, clickhouse: &mut ClickHouse, size: &ProxyStudySize) -> Result<()> {
        let rows = size.rows;
        for batch in &mut self.batches {
            let right = format!(
                "SELECT sum(cityHash64(tuple(if(key < {rows}, concat('user ', toString(key)), ''), \
                 if(key < {rows}, concat('city ', toString(key % 10007)), ''), \
                 if(key < {rows}, toInt64(key * 7), 0)))) FROM file('{}', 'RowBinary', 'key UInt64')",
                batch.file
            );
            batch.checksum = clickhouse.run(&right)?.1.trim().to_owned();
        }
        Ok(())
    }
}

impl Batch {
    /// The keys in RowBinary, as ClickHouse sends them.
    pub fn bytes(&self) -> Vec<u8> {
        self.keys.iter().flat_map(|key| key.to_le_bytes()).collect()
    }

    /// A query for a checksum of every value that a dictionary returns for the keys.
    pub fn query(&self, dictionary: &str) -> String {
        format!(
            "SELECT sum(cityHash64(dictGet('{dictionary}', {ATTRIBUTES}, key))) \
             FROM file('{}', 'RowBinary', 'key UInt64')",
            self.file
        )
    }

    /// Checks that rows in RowBinary are those of its keys: one for each key that has a row, with its values.
    pub fn check(&self, size: &ProxyStudySize, rows: &[u8]) -> Result<()> {
        let wanted: Vec<u64> = self.keys.iter().copied().filter(|key| *key < size.rows).collect();
        let mut right = Vec::with_capacity(rows.len());
        for key in wanted {
            right.extend_from_slice(&key.to_le_bytes());
            for text in [format!("user {key}"), format!("city {}", key % 10007)] {
                // Shorter than 128 bytes, so the length takes one byte.
                right.push(text.len() as u8);
                right.extend_from_slice(text.as_bytes());
            }
            right.extend_from_slice(&(key * 7).to_le_bytes());
        }
        match right == rows {
            true => Ok(()),
            false => Err(Failure::Answer(format!(
                "{} bytes that are not the {} of {}",
                rows.len(),
                right.len(),
                self.file
            ))),
        }
    }
}

/// Makes the table.
pub fn fill(postgres: &Postgres, size: &ProxyStudySize) -> Result<()> {
    postgres.ask("CREATE TABLE users (id int8 PRIMARY KEY, name text, city text, balance int8)")?;
    postgres.ask(&format!(
        "INSERT INTO users SELECT i, 'user ' || i, 'city ' || i % 10007, i * 7 FROM generate_series(0, {}) i",
        size.rows - 1
    ))?;
    postgres.ask("VACUUM ANALYZE users")?;
    postgres.ask("CHECKPOINT")?;
    Ok(())
}
