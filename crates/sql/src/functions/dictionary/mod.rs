//! `dictGet` and its family.

mod all;
mod call;
mod converted;
mod function;
mod hierarchy;
mod keys;
mod lazy;
mod reverse;
mod row;

use std::sync::Arc;

use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{ScalarUDF, Volatility};
use granary_dialect::rewrite::CONSTANT_SUFFIX;

use crate::catalogue::Catalogue;
use all::GetAllFunction;
use function::{DictionaryFunction, FunctionKind};
use hierarchy::HierarchyFunction;
pub use lazy::LazyDefaults;
use reverse::GetKeysFunction;
pub use row::{ColumnOfRow, RowLookup};

/// The types that have a `dictGet<Type>` of their own.
const TYPES: &[&str] = &[
    "UInt8", "UInt16", "UInt32", "UInt64", "Int8", "Int16", "Int32", "Int64", "Float32", "Float64", "Date",
    "DateTime", "UUID", "String", "IPv4", "IPv6",
];

/// All names, with their kind and the type they demand.
fn names() -> impl Iterator<Item = (String, FunctionKind, Option<&'static str>)> {
    let plain = [
        ("dictGet", FunctionKind::Get),
        ("dictGetOrDefault", FunctionKind::GetOrDefault),
        ("dictGetOrNull", FunctionKind::GetOrNull),
        ("dictHas", FunctionKind::Has),
    ];
    let plain = plain.into_iter().map(|(name, kind)| (name.to_owned(), kind, None));
    let typed = TYPES.iter().flat_map(|&name| {
        [
            (format!("dictGet{name}"), FunctionKind::Get, Some(name)),
            (format!("dictGet{name}OrDefault"), FunctionKind::GetOrDefault, Some(name)),
        ]
    });
    plain.chain(typed)
}

/// Registers each function twice. Within a query a dictionary answers the same question the same way: Stable says so,
/// and lets equal calls be merged. But DataFusion evaluates a stable function of constants during planning, again in
/// each pass if that fails, and for EXPLAIN too; a source must not be asked then, so calls with constant arguments use
/// a second, volatile form.
pub fn register(context: &SessionContext, catalogue: &Arc<Catalogue>) {
    for (name, kind, demanded) in names() {
        for (suffix, volatility) in [("", Volatility::Stable), (CONSTANT_SUFFIX, Volatility::Volatile)] {
            let name = format!("{name}{suffix}");
            let function = DictionaryFunction::new(name, kind, demanded, volatility, Arc::clone(catalogue));
            context.register_udf(ScalarUDF::from(function));
        }
    }
    for (suffix, volatility) in [("", Volatility::Stable), (CONSTANT_SUFFIX, Volatility::Volatile)] {
        let function =
            GetAllFunction::new(format!("{}{suffix}", all::NAME), volatility, Arc::clone(catalogue));
        context.register_udf(ScalarUDF::from(function));
        let name = format!("{}{suffix}", reverse::NAME);
        context.register_udf(ScalarUDF::from(GetKeysFunction::new(name, volatility, Arc::clone(catalogue))));
    }
    for (name, question) in hierarchy::FUNCTIONS {
        for (suffix, volatility) in [("", Volatility::Stable), (CONSTANT_SUFFIX, Volatility::Volatile)] {
            let name = format!("{name}{suffix}");
            let function = HierarchyFunction::new(name, question, volatility, Arc::clone(catalogue));
            context.register_udf(ScalarUDF::from(function));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::session::{Options, Session};

    /// The dialect and this crate have the same dictionary functions.
    #[test]
    fn what_can_be_called_is_there() {
        let session = Session::open(Options::default()).unwrap();
        let state = session.state().unwrap();
        let registered = |name: &&str| state.scalar_functions().contains_key(*name);
        let missing: Vec<&str> =
            granary_dialect::functions::of_dictionaries().filter(|name| !registered(name)).collect();
        assert_eq!(missing, [""; 0]);
        let named = |name: &&String| !name.contains('/') && name.starts_with("dict");
        let count = state.scalar_functions().keys().filter(named).count();
        assert_eq!(count, granary_dialect::functions::of_dictionaries().count());
    }
}
