//! ClickHouse's settings that plans and their execution depend on.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;

extensions_options! {
    /// Set by SET and SETTINGS. A limit of 0 means none.
    pub struct QuerySettings {
        /// Whether rows without a partner have NULLs for its columns, and not the defaults of their types.
        pub join_use_nulls: bool, default = false
        /// Seconds that a query may take.
        pub max_execution_time: f64, default = 0.0
        /// Rows that a query may answer.
        pub max_result_rows: u64, default = 0
        /// Bytes that a query may answer.
        pub max_result_bytes: u64, default = 0
        /// Bytes that sorting, grouping and joining may hold.
        pub max_memory_usage: u64, default = 0
        /// Microseconds that `sleep` and `sleepEachRow` may take for one block.
        pub function_sleep_max_microseconds_per_block: u64, default = 3_000_000
    }
}

impl ConfigExtension for QuerySettings {
    const PREFIX: &'static str = "granary";
}
