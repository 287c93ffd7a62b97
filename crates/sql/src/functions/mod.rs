//! The functions that read dictionaries and files.

mod dictionary;
mod file;

use std::sync::Arc;

use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::ScalarUDF;

use crate::catalogue::Catalogue;
pub use dictionary::{ColumnOfRow, LazyDefaults, RowLookup};

/// Registers them with a session's context.
pub fn register(context: &SessionContext, catalogue: &Arc<Catalogue>) {
    context.register_udf(ScalarUDF::from(file::ReadFile::new(Arc::clone(catalogue))));
    dictionary::register(context, catalogue);
}
