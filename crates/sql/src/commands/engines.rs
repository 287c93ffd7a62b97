//! What ENGINE of CREATE TABLE means here.

use granary_dialect::statement::Engine;
use granary_dialect::{Error, Result};

/// Engines whose tables keep the rows put into them until they are removed: in RAM they are all the same.
const OF_ROWS: &[&str] = &["Memory", "TinyLog", "Log", "StripeLog", "MergeTree", "ReplicatedMergeTree"];

/// The engine of a view of a dictionary.
pub const DICTIONARY: &str = "Dictionary";

/// ClickHouse's engines whose rows change by themselves, lie elsewhere, or cannot be read.
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

/// Refuses an engine whose tables would differ from ClickHouse's.
///
/// # Errors
/// NOT_IMPLEMENTED, and UNKNOWN_STORAGE for an engine that ClickHouse does not have either.
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
