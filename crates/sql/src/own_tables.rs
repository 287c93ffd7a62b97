//! This process's own tables as a source of its dictionaries: SOURCE(CLICKHOUSE(TABLE 't')).

use std::sync::{Arc, OnceLock, Weak};

use granary_dialect::statement::split;
use granary_dialect::{Error, Result};
use granary_dict::{DictError, OwnTables};
use tokio::runtime::Runtime;

use crate::engine::Engine;
use crate::format::Format;
use crate::limits::STACK_BYTES;
use crate::session::Session;
use crate::settings::is_known;

/// The engine, set once it exists: dictionaries are opened while it is made.
#[derive(Clone, Default)]
pub struct EngineHandle(Arc<OnceLock<Weak<Engine>>>);

impl EngineHandle {
    /// Sets the engine.
    pub fn set(&self, engine: &Arc<Engine>) {
        // Set once, by the thread that made it.
        let _ = self.0.set(Arc::downgrade(engine));
    }

    /// The tables, for the dictionaries' environment.
    pub fn tables(&self) -> OwnTables {
        let later = self.clone();
        OwnTables(Arc::new(move |sql, settings| {
            let engine = later.0.get().and_then(Weak::upgrade);
            let answer = match engine {
                Some(engine) => answer(engine, sql, settings),
                None => Err(Error::logical_error("The tables are being closed")),
            };
            answer.map_err(|error| DictError::passed_on(error.code, error.name, error.message))
        }))
    }
}

/// Threads for queries of dictionaries, whose own threads have no runtime. Dropping it does not wait: the dropping
/// thread may not.
#[derive(Default)]
pub struct OwnRuntime(OnceLock<Runtime>);

impl OwnRuntime {
    fn get(&self) -> Result<&Runtime> {
        if self.0.get().is_none() {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let made = builder.worker_threads(2).thread_stack_size(STACK_BYTES).enable_time().build()?;
            if let Err(second) = self.0.set(made) {
                second.shutdown_background();
            }
        }
        self.0.get().ok_or_else(|| Error::logical_error("There is no runtime"))
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn answer(engine: Arc<Engine>, sql: &str, settings: &[(String, String)]) -> Result<Vec<u8>> {
    let session = Session::of_engine(Arc::clone(&engine));
    // A dictionary's SETTINGS may include some that are unknown here, such as those of formats.
    session.set(settings.iter().filter(|(name, _)| is_known(name)).cloned().collect())?;
    let statements = split(sql)?;
    let [statement] = statements.as_slice() else {
        return Err(Error::syntax_error("A dictionary's source is one query"));
    };
    let runtime = engine.own_runtime.get()?;
    let mut output = runtime.block_on(session.execute(statement))?;
    let (mut bytes, format) = (Vec::new(), output.format.unwrap_or(Format::RowBinary));
    output.write(runtime.handle(), format, &mut bytes)?;
    Ok(bytes)
}
