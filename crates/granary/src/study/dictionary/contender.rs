//! The engines, behind one trait.

use std::path::Path;

use granary_lab::ClickHouse;

use crate::client::Client;
use crate::failure::Result;

/// An engine that runs SQL and measures the time.
pub trait Engine {
    /// The seconds, and the answer as TabSeparated.
    fn run(&mut self, sql: &str) -> Result<(f64, String)>;
}

impl Engine for ClickHouse {
    fn run(&mut self, sql: &str) -> Result<(f64, String)> {
        Ok(ClickHouse::run(self, sql)?)
    }
}

/// Granary, in this process; ClickHouse runs in its driver's.
pub struct Granary {
    client: Client,
    /// The program that answers keys, as the source.
    pub source: String,
}

impl Granary {
    pub fn open(folder: &Path, source: &Path) -> Result<Granary> {
        let client = Client::open(folder, true)?;
        Ok(Granary { client, source: source.display().to_string() })
    }
}

impl Engine for Granary {
    fn run(&mut self, sql: &str) -> Result<(f64, String)> {
        let reply = self.client.ask(sql)?;
        Ok((reply.seconds, reply.text))
    }
}

/// Drops the dictionary and creates it with another layout, empty.
pub fn create(engine: &mut dyn Engine, layout: &str, source: &str) -> Result<()> {
    engine.run("DROP DICTIONARY IF EXISTS dict")?;
    engine.run(&format!(
        "CREATE DICTIONARY dict (id UInt64, str String DEFAULT '') PRIMARY KEY id \
         SOURCE(EXECUTABLE(COMMAND '{source}' FORMAT 'RowBinary')) \
         LAYOUT({layout}) LIFETIME(MIN 100000 MAX 100000)"
    ))?;
    Ok(())
}

/// The seed's query that fills an empty cache.
pub fn fill_query(keys: u64) -> String {
    format!("SELECT sum(ignore(dictGetString('dict','str',number))) FROM numbers({keys})")
}

/// The seed's query that reads.
pub fn read_query(keys: u64, lookups: u64) -> String {
    format!(
        "SELECT sum(ignore(dictGetString('dict','str',toUInt64(intHash64(number + 123) % {keys})))) \
         FROM numbers({lookups})"
    )
}

/// Counts the keys with the source's value.
pub fn check_query(keys: u64) -> String {
    format!("SELECT countIf(dictGetString('dict','str',number) = 'testtesttest') FROM numbers({keys})")
}
