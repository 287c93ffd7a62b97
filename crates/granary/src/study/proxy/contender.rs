//! What stands between a query and PostgreSQL, by contender.

use super::size::ProxyStudySize;

/// A way to look keys up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyContender {
    /// ClickHouse's own layouts on PostgreSQL.
    Cache,
    SsdCache,
    Direct,
    /// ClickHouse's layouts over a Granary that has an SSD_CACHE over PostgreSQL.
    DirectOnGranary,
    CacheOnGranary,
    /// No ClickHouse: only the requests that it would send.
    Requests,
}

pub const CONTENDERS: [ProxyContender; 6] = [
    ProxyContender::Cache,
    ProxyContender::SsdCache,
    ProxyContender::Direct,
    ProxyContender::DirectOnGranary,
    ProxyContender::CacheOnGranary,
    ProxyContender::Requests,
];

/// The columns of the table and of every dictionary.
pub const COLUMNS: &str = "id UInt64, name String, city String, balance Int64";
/// The attributes asked for, in one request.
pub const ATTRIBUTES: &str = "('name', 'city', 'balance')";
/// The format between ClickHouse and Granary.
pub const FORMAT: &str = "Native";
const LIFETIME: &str = "LIFETIME(MIN 100000 MAX 100000)";

impl ProxyContender {
    pub fn name(self) -> &'static str {
        match self {
            ProxyContender::Cache => "CACHE on PostgreSQL",
            ProxyContender::SsdCache => "SSD_CACHE on PostgreSQL",
            ProxyContender::Direct => "DIRECT on PostgreSQL",
            ProxyContender::DirectOnGranary => "DIRECT on Granary",
            ProxyContender::CacheOnGranary => "CACHE on Granary",
            ProxyContender::Requests => "Granary without ClickHouse",
        }
    }

    pub fn has_granary(self) -> bool {
        matches!(
            self,
            ProxyContender::DirectOnGranary | ProxyContender::CacheOnGranary | ProxyContender::Requests
        )
    }

    pub fn has_clickhouse(self) -> bool {
        self != ProxyContender::Requests
    }

    /// ClickHouse's dictionary `users`. `postgres` and `granary` are the `SOURCE(...)` for either.
    pub fn statement(self, size: &ProxyStudySize, postgres: &str, granary: &str) -> String {
        let source = if self.has_granary() { granary } else { postgres };
        let layout = match self {
            ProxyContender::Cache | ProxyContender::CacheOnGranary => {
                format!("CACHE(SIZE_IN_CELLS {})", size.cells)
            }
            ProxyContender::SsdCache => clickhouse_ssd_cache(size),
            ProxyContender::Direct | ProxyContender::DirectOnGranary | ProxyContender::Requests => {
                "DIRECT()".to_owned()
            }
        };
        create("users", source, &layout)
    }
}

/// With a write buffer that it does not wait for all the time, a read buffer with which it can read records back (its
/// issue 117991), and one partition, with which it returns no wrong values.
pub fn clickhouse_ssd_cache(size: &ProxyStudySize) -> String {
    format!(
        "SSD_CACHE(BLOCK_SIZE 4096 WRITE_BUFFER_SIZE 1048576 READ_BUFFER_SIZE 16777216 FILE_SIZE {} \
         MAX_PARTITIONS_COUNT 1 PATH './users')",
        size.file_size
    )
}

/// Granary's layout, otherwise with defaults.
pub fn granary_ssd_cache(size: &ProxyStudySize) -> String {
    format!("SSD_CACHE(WRITE_BUFFER_SIZE 1048576 FILE_SIZE {} PATH 'users')", size.file_size)
}

/// A dictionary over the table, or over another dictionary of it.
pub fn create(name: &str, source: &str, layout: &str) -> String {
    let lifetime = if layout.starts_with("DIRECT") { "" } else { LIFETIME };
    format!("CREATE DICTIONARY {name} ({COLUMNS}) PRIMARY KEY id {source} LAYOUT({layout}) {lifetime}")
}

/// `SOURCE(...)` for a ClickHouse that asks Granary's dictionary `users`.
pub fn over_http(url: &str, format: &str) -> String {
    format!("SOURCE(HTTP(URL '{url}/dictionary/users?format={format}' FORMAT '{format}'))")
}
