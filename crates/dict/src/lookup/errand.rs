//! A call of the source that is no lookup, nor kept from lookups: on a source thread, waited for.

use super::load::Loader;
use super::pool::{Pool, Turn};
use crate::config::UpdateSettings;
use crate::error::DictError;
use crate::source::Source;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Calls the source, and waits for it as long as a lookup would. Whatever comes of it, lookups go on asking: what was
/// asked is not what they ask.
pub(crate) fn errand<T: Send + 'static>(
    pool: &Pool,
    loader: &Arc<Loader>,
    update: &UpdateSettings,
    call: impl FnOnce(&mut dyn Source) -> Result<T, DictError> + Send + 'static,
) -> Result<T, DictError> {
    let (answer, answers) = channel();
    let worker = loader.clone();
    let timeout_ms = update.query_wait_timeout_ms;
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    let job = move |turn: Turn<'_>| {
        if let Turn::Run(source) = turn
            && worker.await_turn(deadline).is_ok()
        {
            // Nobody waits any longer if the query timed out.
            let _ = answer.send(worker.ask_apart(source, call));
        }
    };
    let patience = Duration::from_millis(update.update_queue_push_timeout_ms);
    pool.push(Box::new(job), patience).map_err(|_| loader.unavailable("its queue is full or closed"))?;
    let answer =
        loader.waiting.wait(|| answers.recv_timeout(deadline.saturating_duration_since(Instant::now())));
    answer
        .ok_or_else(|| loader.unavailable("too many queries are waiting for sources already"))?
        .map_err(|_| loader.unavailable(&format!("{timeout_ms} ms timeout exceeded")))?
}
