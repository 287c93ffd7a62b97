//! Panics of libraries, or of bugs, become an error of the request, and nothing else fails.

use crate::error::{Code, DictError};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `call`; its panic is an error that says that `what` failed.
pub(crate) fn caught<T>(what: &str, call: impl FnOnce() -> Result<T, DictError>) -> Result<T, DictError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(|text| text.to_string());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(DictError::new(Code::IncorrectData, format!("{what} failed: {said}")))
    })
}

#[cfg(test)]
mod tests {
    use crate::definition::Lifetime;
    use crate::source::{BatchSink, Source, SourceFactory};
    use crate::{DictError, Dictionary, Environment, parse_create};
    use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
    use std::sync::Arc;

    /// Has a row for each key: the key itself.
    struct Echo;

    impl Source for Echo {
        fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
            Ok(vec![RecordBatch::try_from_iter([("k", keys[0].clone()), ("v", keys[0].clone())]).unwrap()])
        }

        fn load_all(&mut self, _sink: &mut BatchSink<'_>) -> Result<(), DictError> {
            Ok(())
        }
    }

    /// A panic behind the source's client neither ends the thread nor leaves a lookup of the key waiting.
    #[test]
    fn who_waits_for_a_request_that_panics_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let sql = "CREATE DICTIONARY d (id UInt64, v UInt64) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) \
                   LAYOUT(CACHE(SIZE_IN_CELLS 9 MAX_THREADS_FOR_UPDATES 1 QUERY_WAIT_TIMEOUT_MILLISECONDS 2000)) LIFETIME(9)";
        let definition = parse_create(sql).unwrap().definition;
        let factory: SourceFactory = Arc::new(|| Ok(Box::new(Echo)));
        let mut dictionary =
            Dictionary::open_with_source(definition, &Environment::new(folder.path()), factory).unwrap();
        let set = |dictionary: &mut Dictionary, lifetime| {
            let core = Arc::get_mut(&mut dictionary.core).unwrap();
            // The thread of the last request may hold it a moment longer.
            loop {
                if let Some(access) = Arc::get_mut(&mut core.access) {
                    access.lifetime = lifetime;
                    return;
                }
                std::thread::yield_now();
            }
        };
        // No definition has such a lifetime: the remainder of a division by zero is asked for.
        set(&mut dictionary, Lifetime { min_seconds: 1, max_seconds: 0 });
        let keys: [ArrayRef; 1] = [Arc::new(UInt64Array::from(vec![7]))];
        let error = dictionary.has(&keys).unwrap_err();
        assert!(error.message().contains("Taking in what the source answered failed"), "{error}");
        set(&mut dictionary, Lifetime { min_seconds: 5, max_seconds: 9 });
        assert_eq!(dictionary.has(&keys).unwrap().true_count(), 1);
    }
}
