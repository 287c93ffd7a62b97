//! State that all sessions share: the dictionaries, and the state that queries are planned with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::execution::context::SessionContext;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use granary_dialect::Result;
use granary_dialect::plan::{QuerySettings, planning};
use granary_dict::{Environment, WaitLimit};
use tempfile::TempDir;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::catalogue::{Catalogue, Databases, FolderLock};
use crate::functions::{self, LazyDefaults};
use crate::limits::SPARE_STATES;
use crate::memory::{QueryMemory, QueryPool};
use crate::own_tables::{EngineHandle, OwnRuntime};
use crate::session::Options;
use crate::settings::configuration;
use crate::tables::keyed_parquet;
use crate::tables::numbers::NumbersFunction;
use crate::tables::session_tables::SessionTables;

/// State that all sessions share; dictionaries are open while it lives.
pub struct Engine {
    pub catalogue: Arc<Catalogue>,
    pub session_tables: Arc<SessionTables>,
    /// What every query begins with. DataFusion's state names hundreds of functions, and copying their names
    /// takes as long as planning a short query, so copies go from one query to the next.
    template: SessionState,
    spare: Mutex<Vec<SessionState>>,
    pub own_runtime: OwnRuntime,
    /// The memory that all queries take.
    pub memory: Arc<QueryMemory>,
    /// Last, so that it is removed after the dictionaries in it are closed.
    temporary: Option<TempDir>,
}

impl Engine {
    /// Opens the catalogue and readies DataFusion.
    pub fn open(options: Options) -> Result<Arc<Engine>> {
        let (folder, temporary) = match options.path {
            Some(path) => (path, None),
            None => {
                let folder = TempDir::with_prefix("granary-")?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let handle = EngineHandle::default();
        let environment = Environment {
            own_tables: Some(handle.tables()),
            parquet: Some(keyed_parquet::reader()),
            allow_executable: options.allow_executable,
            user_files: options.user_files,
            memory_folder: options.memory_folder,
            waiting: WaitLimit::new(options.waiting.unwrap_or(give_way)),
            ..Environment::new(&folder)
        };
        let lock = match options.lock {
            Some(lock) => lock,
            None => FolderLock::take(&folder)?,
        };
        let catalogue = Arc::new(Catalogue::open(&folder, lock, environment)?);
        let session_tables = Arc::new(SessionTables::default());
        let template = state(&catalogue, &session_tables)?;
        let (spare, own_runtime) = (Mutex::default(), OwnRuntime::default());
        let memory = QueryMemory::new(options.memory);
        memory.set_catalogue(&catalogue);
        let engine =
            Arc::new(Engine { catalogue, session_tables, template, spare, own_runtime, memory, temporary });
        handle.set(&engine);
        Ok(engine)
    }

    /// A state for one query, whose clock has not started.
    pub fn take_state(&self) -> SessionState {
        let kept = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| self.template.clone())
    }

    /// Takes a state back. A query changes only its configuration, which is reset.
    pub fn return_state(&self, mut state: SessionState) {
        state.config_mut().clone_from(self.template.config());
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_STATES {
            spare.push(state);
        }
    }

    /// Closes dictionaries once no statement uses them, waiting at most `timeout`; removes a temporary folder.
    pub fn close(&self, timeout: Duration) {
        self.catalogue.close(timeout);
        if let Some(folder) = &self.temporary {
            // Nobody can act on a failure here.
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
}

fn state(catalogue: &Arc<Catalogue>, session_tables: &Arc<SessionTables>) -> Result<SessionState> {
    // A query that exceeds its memory fails, as in ClickHouse, and never spills to disk.
    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let state = SessionStateBuilder::new()
        .with_config(configuration())
        .with_runtime_env(RuntimeEnvBuilder::new().with_disk_manager_builder(disk).build_arc()?);
    let lazy = LazyDefaults { catalogue: Arc::clone(catalogue) };
    let context = SessionContext::new_with_state(planning(state, vec![Arc::new(lazy)]).build());
    context.register_catalog(
        "granary",
        Arc::new(Databases::new(Arc::clone(catalogue), Arc::clone(session_tables))),
    );
    context.register_udtf("numbers", Arc::new(NumbersFunction));
    granary_dialect::functions::register(&context, catalogue.waiting())?;
    functions::register(&context, catalogue);
    Ok(context.state())
}

/// The context that a plan runs with, and its memory pool. The plan holds its functions, so the context names none.
pub fn task_context(state: &SessionState, memory: &Arc<QueryMemory>) -> (Arc<TaskContext>, Arc<QueryPool>) {
    let settings = state.config_options().extensions.get::<QuerySettings>();
    let limit = settings.map_or(0, |settings| settings.max_memory_usage);
    let pool = Arc::new(QueryPool::new(limit, Arc::clone(memory)));
    let memory_pool: Arc<dyn MemoryPool> = Arc::clone(&pool) as _;
    let runtime = Arc::new(RuntimeEnv { memory_pool, ..state.runtime_env().as_ref().clone() });
    let context = Arc::new(TaskContext::new(
        None,
        state.session_id().to_owned(),
        state.config().clone(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        runtime,
    ));
    (context, pool)
}

/// Waits for a source on a runtime's thread that runs a query: the thread's other tasks (connections among them) move
/// elsewhere meanwhile.
pub fn give_way(wait: &mut dyn FnMut()) {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        // No other tasks to move.
        _ => wait(),
    }
}
