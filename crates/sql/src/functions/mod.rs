//! The functions that look into dictionaries and files.

mod dictionary;
mod file;

use std::sync::Arc;

use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::ScalarUDF;

use crate::catalogue::Catalogue;
pub use dictionary::{ColumnOfRow, LazyDefaults, RowLookup};

/// Makes them known to a session.
pub fn register(context: &SessionContext, catalogue: &Arc<Catalogue>) {
    context.register_udf(ScalarUDF::from(file::ReadFile::new(Arc::clone(catalogue))));
    dictionary::register(context, catalogue);
}
