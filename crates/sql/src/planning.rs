//! What a query is planned with. DataFusion's state names hundreds of functions, and copying their names
//! takes as long as planning a short query, so a session keeps a copy from one query to the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::execution::context::SessionContext;
use datafusion::execution::{SessionState, TaskContext};

/// The copies that no query is using: one at most, and none that is older than the last change.
#[derive(Default)]
pub struct Planning {
    spare: Mutex<Spare>,
}

#[derive(Default)]
struct Spare {
    changes: u64,
    state: Option<SessionState>,
}

/// A state on loan, as the session was after so many changes.
pub struct Loan {
    pub state: SessionState,
    changes: u64,
}

impl Planning {
    fn lock(&self) -> MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A state for one query, whose clock starts now.
    pub fn lend(&self, context: &SessionContext) -> Loan {
        let (changes, kept) = {
            let mut spare = self.lock();
            (spare.changes, spare.state.take())
        };
        let mut state = kept.unwrap_or_else(|| context.state());
        state.mark_start_execution();
        Loan { state, changes }
    }

    /// Takes a state back that is as it was lent.
    pub fn take_back(&self, loan: Loan) {
        let mut spare = self.lock();
        if spare.changes == loan.changes {
            spare.state = Some(loan.state);
        }
    }

    /// The session's own state has changed: older copies are of no use.
    pub fn changed(&self) {
        let mut spare = self.lock();
        spare.changes += 1;
        spare.state = None;
    }
}

/// What a plan runs with. Its functions are in the plan, so the context names none.
pub fn task_context(state: &SessionState) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        None,
        state.session_id().to_owned(),
        state.config().clone(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        Arc::clone(state.runtime_env()),
    ))
}
