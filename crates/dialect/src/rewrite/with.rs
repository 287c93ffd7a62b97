//! Queries of a WITH are planned anew wherever others select from them: nested, and as often.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{With, visit_relations};

use crate::error::{Error, Result};
use crate::limits::{WITH_DEEP_MAX, WITH_EXPANSIONS_MAX};

/// The size of a WITH query, including those that it selects from.
#[derive(Clone, Copy)]
struct Size {
    depth: usize,
    queries: usize,
}

/// Refuses a WITH whose queries nest too deep, expand too often, or select from themselves.
///
/// # Errors
/// TOO_DEEP_AST, TOO_BIG_AST, NOT_IMPLEMENTED.
pub fn check(with: &With) -> Result<()> {
    if with.recursive {
        return Err(Error::not_implemented("WITH RECURSIVE is not implemented"));
    }
    let mut known: HashMap<&str, Size> = HashMap::new();
    for table in &with.cte_tables {
        let mut size = Size { depth: 1, queries: 1 };
        let _: ControlFlow<()> = visit_relations(&table.query, |name| {
            let name = name.0.last().and_then(|part| part.as_ident());
            if let Some(selected) = name.and_then(|name| known.get(name.value.as_str())) {
                size.depth = size.depth.max(selected.depth + 1);
                size.queries = size.queries.saturating_add(selected.queries);
            }
            ControlFlow::Continue(())
        });
        if size.depth > WITH_DEEP_MAX {
            let message = format!("Queries of WITH are more than {WITH_DEEP_MAX} deep within each other");
            return Err(Error::too_deep_ast(message));
        }
        if size.queries > WITH_EXPANSIONS_MAX {
            let message = format!("Queries of WITH are selected from more than {WITH_EXPANSIONS_MAX} times");
            return Err(Error::too_big_ast(message));
        }
        known.insert(&table.alias.name.value, size);
    }
    Ok(())
}
