//! Calls of the source that are no lookup: on a source thread, waited for.

use super::load::SourceAccess;
use super::pool::{JobInput, Pool, Refused};
use crate::config::UpdateSettings;
use crate::environment::WaitPermit;
use crate::error::DictError;
use crate::source::Source;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Calls the source, and waits for it as long as a lookup would, on a thread that serves nothing else. A failure does
/// not keep lookups from asking: they ask for something else.
pub(crate) fn call_source<T: Send + 'static>(
    pool: &Pool,
    access: &Arc<SourceAccess>,
    update: &UpdateSettings,
    call: impl FnMut(&mut dyn Source) -> Result<T, DictError> + Send + 'static,
) -> Result<T, DictError> {
    let (answer, answers) = channel();
    let deadline = begin(pool, access, update, move |access, connection| {
        // The query may have timed out, and wait no longer.
        let _ = answer.send(access.call_uncounted(connection, call));
    })?;
    let timeout = deadline.saturating_duration_since(Instant::now());
    receive(access, &WaitPermit::unlimited(), &answers, timeout, update.query_wait_timeout_ms)?
}

/// Has a thread of `pool` run `job` with its connection in its turn, unless that comes later than a lookup would wait.
/// Returns the deadline.
pub(crate) fn begin(
    pool: &Pool,
    access: &Arc<SourceAccess>,
    update: &UpdateSettings,
    job: impl FnOnce(&SourceAccess, &mut Option<Box<dyn Source>>) + Send + 'static,
) -> Result<Instant, DictError> {
    let deadline = Instant::now() + Duration::from_millis(update.query_wait_timeout_ms);
    let worker = Arc::clone(access);
    let job = move |input: JobInput<'_>| {
        if let JobInput::Run(connection) = input
            && worker.await_turn(deadline).is_ok()
        {
            job(&worker, connection);
        }
    };
    let timeout = Duration::from_millis(update.update_queue_push_timeout_ms);
    pool.push(Box::new(job), 0, timeout).map_err(|refused| match refused {
        Refused::Full(_) | Refused::FullOfKeys(_) | Refused::Closed => {
            access.unavailable("its queue is full or closed")
        }
        Refused::NoThread(e) => access.unavailable(&format!("no thread can be started: {e}")),
    })?;
    Ok(deadline)
}

/// Waits for what a job sends, `timeout` at most; the error names `timeout_ms`.
pub(crate) fn receive<T: Send>(
    access: &SourceAccess,
    place: &WaitPermit,
    answers: &Receiver<T>,
    timeout: Duration,
    timeout_ms: u64,
) -> Result<T, DictError> {
    let answer = place.wait(|| answers.recv_timeout(timeout));
    answer.ok_or_else(|| access.not_started())?.map_err(|_| access.timed_out(timeout_ms))
}
