//! What ENGINE of CREATE TABLE means here.

use datafusion::arrow::datatypes::SchemaRef;

use super::create::one_text;
use crate::catalogue::{JoinKeys, Target};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::statement::Engine;

/// Clusters of ClickHouse's own configurations that are one server: this one.
const OWN_CLUSTERS: [&str; 2] = ["default", "test_shard_localhost"];

/// Those whose tables have the rows that were put into them, until they are taken out: in RAM that is one and the same.
const OF_ROWS: &[&str] =
    &["Memory", "TinyLog", "Log", "StripeLog", "MergeTree", "ReplicatedMergeTree", "Join", "Set"];

/// Those that are something else, and are that here, too.
const OTHERS: &[&str] = &["Null", "Distributed", "Buffer", "Dictionary"];

/// Those of ClickHouse's whose rows change by themselves, or are elsewhere.
const REFUSED: &[&str] = &[
    "AggregatingMergeTree",
    "AzureBlobStorage",
    "CoalescingMergeTree",
    "CollapsingMergeTree",
    "DeltaLake",
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
    "Kafka",
    "KeeperMap",
    "LiveView",
    "Merge",
    "MongoDB",
    "MySQL",
    "NATS",
    "ODBC",
    "PostgreSQL",
    "RabbitMQ",
    "Redis",
    "ReplacingMergeTree",
    "S3",
    "S3Queue",
    "SQLite",
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
    if OF_ROWS.contains(&name) || OTHERS.contains(&name) {
        return Ok(());
    }
    if REFUSED.contains(&name.trim_start_matches("Replicated")) {
        return Err(Error::not_implemented(format!(
            "ENGINE = {name}: tables are in RAM and hold the rows that were put into them. There are {} and {}",
            OF_ROWS.join(", "),
            OTHERS.join(", ")
        )));
    }
    Err(Error::unknown_storage(format!("Unknown table engine {name}")))
}

/// The table that has the rows: of ENGINE = Distributed(cluster, database, table), if the cluster is this server, and of
/// Buffer(database, table, ..), which here passes them on at once.
pub async fn target(session: &Session, engine: &Engine) -> Result<Option<Target>> {
    let (database, table) = match (engine.name.as_str(), engine.arguments.as_slice()) {
        ("Distributed", [cluster, database, table, ..]) => {
            let cluster = word_or_text(session, cluster).await?;
            if !OWN_CLUSTERS.contains(&cluster.as_str()) {
                return Err(Error::cluster_doesnt_exist(format!(
                    "Requested cluster '{cluster}' not found: this server is alone, as {}",
                    OWN_CLUSTERS.join(" or ")
                )));
            }
            (database, table)
        }
        ("Buffer", [database, table, ..]) => (database, table),
        _ => return Ok(None),
    };
    let database = Some(word_or_text(session, database).await?).filter(|database| !database.is_empty());
    let table = word_or_text(session, table).await?;
    Ok(Some(Target::Table((database.unwrap_or_else(|| session.database()), table))))
}

/// ENGINE = Join(strictness, kind, key, ..).
pub fn join_keys(engine: &Engine, schema: &SchemaRef) -> Result<Option<JoinKeys>> {
    let ("Join", [strictness, _, keys @ ..]) = (engine.name.as_str(), engine.arguments.as_slice()) else {
        return Ok(None);
    };
    let place = |key: &String| {
        let name = key.replace('`', "");
        schema
            .index_of(&name)
            .map_err(|_| Error::no_such_column(format!("Key column ({name}) does not exist")))
    };
    let columns = keys.iter().map(place).collect::<Result<Vec<_>>>()?;
    if columns.is_empty() {
        return Err(Error::bad_arguments("Storage Join requires at least one key column"));
    }
    Ok(Some(JoinKeys { columns, is_any: strictness.eq_ignore_ascii_case("ANY") }))
}

/// A name as it stands, or what a constant expression is.
async fn word_or_text(session: &Session, expression: &str) -> Result<String> {
    let is_name = expression.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '`');
    if is_name { Ok(expression.replace('`', "")) } else { one_text(session, expression).await }
}
