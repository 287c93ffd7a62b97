//! ClickHouse's settings that plans look at.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;

extensions_options! {
    /// Set by SET and SETTINGS.
    pub struct PlanSettings {
        /// Whether rows without a partner have NULLs for its columns, and not the defaults of their types.
        pub join_use_nulls: bool, default = false
    }
}

impl ConfigExtension for PlanSettings {
    const PREFIX: &'static str = "granary";
}
