//! What ENGINE of CREATE TABLE means here.

use granary_dialect::statement::Engine;
use granary_dialect::{Error, Result};

/// Engines whose tables have the rows that were put into them, until they are taken out: in RAM that is one and the same.
const OF_ROWS: &[&str] = &["Memory", "TinyLog", "Log", "StripeLog", "MergeTree", "ReplicatedMergeTree"];

/// The engine of a view of a dictionary.
pub const DICTIONARY: &str = "Dictionary";

/// ClickHouse's engines whose rows change by themselves, are elsewhere, or are not there to be read.
const REFUSED: &[&str] = &[
    "AggregatingMergeTree",
    "AzureBlobStorage",
    "Buffer",
    "CoalescingMergeTree",
    "CollapsingMergeTree",
    "DeltaLake",
    "Distributed",
    "EmbeddedRocksDB",
    "Executable",
    "ExecutablePool",
    "File",
    "FileLog",
    "FuzzJSON",
    "GenerateRandom",
    "GraphiteMergeTree",
    "HDFS",
    "Hive",
    "Hudi",
    "Iceberg",
    "JDBC",
    "Join",
    "Kafka",
    "KeeperMap",
    "LiveView",
    "Merge",
    "MongoDB",
    "MySQL",
    "NATS",
    "Null",
    "ODBC",
    "PostgreSQL",
    "RabbitMQ",
    "Redis",
    "ReplacingMergeTree",
    "S3",
    "S3Queue",
    "SQLite",
    "Set",
    "SummingMergeTree",
    "TimeSeries",
    "URL",
    "VersionedCollapsingMergeTree",
    "WindowView",
];

/// Refuses an engine whose tables would not be what they are in ClickHouse.
///
/// # Errors
/// NOT_IMPLEMENTED, and UNKNOWN_STORAGE for what ClickHouse does not have either.
pub fn check(engine: &Engine) -> Result<()> {
    let name = engine.name.as_str();
    if OF_ROWS.contains(&name) || name == DICTIONARY {
        return Ok(());
    }
    if REFUSED.contains(&name.trim_start_matches("Replicated")) {
        return Err(Error::not_implemented(format!(
            "ENGINE = {name}: Granary's tables are in RAM and hold the rows that were put into them. There are {} \
             and {DICTIONARY}",
            OF_ROWS.join(", ")
        )));
    }
    Err(Error::unknown_storage(format!("Unknown table engine {name}")))
}
