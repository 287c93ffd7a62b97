//! Everything a source has, as it answers it.

use super::Columns;
use crate::config::UpdateSettings;
use crate::environment::WaitPermit;
use crate::error::{Code, DictError};
use crate::lookup::{Pool, SourceAccess, begin, receive};
use crate::source::Source;
use arrow::array::{Array, RecordBatch};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Batches that wait for the reader, beside the one that is being made.
const BATCHES_AHEAD: usize = 1;

/// `None`: the rows are complete. A channel that ends without it breaks off.
type NextBatch = Result<Option<RecordBatch>, DictError>;

/// The batches that are still to come. Dropping this ends the request.
pub(super) struct Answered {
    access: Arc<SourceAccess>,
    batches: Receiver<NextBatch>,
    /// A place among those that wait, until the first answer: what has begun does not end because others wait, nor does
    /// its slow reader take a place.
    place: WaitPermit,
    timeout_ms: u64,
}

impl Answered {
    /// Begins to read, on a thread of `pool`. NULLs where the type has none become defaults.
    ///
    /// # Errors
    /// 159 if too many queries wait for sources, and nothing was asked then; or if the queue of `pool` is full.
    pub fn ask(
        pool: &Pool,
        access: &Arc<SourceAccess>,
        update: &UpdateSettings,
        columns: Columns,
    ) -> Result<Answered, DictError> {
        let place = access.waiting.wait_permit();
        let place =
            place.ok_or_else(|| access.unavailable("too many queries are waiting for sources already"))?;
        let (answers, batches) = sync_channel(BATCHES_AHEAD);
        begin(pool, access, update, move |access, connection| read(access, connection, &columns, &answers))?;
        Ok(Answered { access: Arc::clone(access), batches, place, timeout_ms: update.query_wait_timeout_ms })
    }

    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, DictError> {
        let answer = match self.batches.try_recv() {
            Ok(answer) => answer,
            Err(_) => {
                let timeout = Duration::from_millis(self.timeout_ms);
                receive(&self.access, &self.place, &self.batches, timeout, self.timeout_ms)?
            }
        };
        self.place.give_back();
        answer
    }
}

/// Sends what the source has. The connection may hold rows that were not taken: it is not kept.
fn read(
    access: &SourceAccess,
    connection: &mut Option<Box<dyn Source>>,
    columns: &Columns,
    answers: &SyncSender<NextBatch>,
) {
    let mut is_given_up = false;
    let outcome = access.ask(connection, |source| {
        let outcome = source.load_all(&mut |batch| {
            access.count_rows(std::slice::from_ref(&batch));
            let batch = shown(access, columns, &batch)?;
            is_given_up = answers.send(Ok(Some(batch))).is_err();
            match is_given_up {
                true => Err(DictError::new(Code::TimeoutExceeded, "Nobody takes any more rows")),
                false => Ok(()),
            }
        });
        // A reader that gives up is no failure of the source.
        if is_given_up { Ok(()) } else { outcome }
    });
    *connection = None;
    // The reader may have stopped waiting.
    let _ = answers.send(outcome.map(|()| None));
}

/// A batch as lookups would show it.
fn shown(access: &SourceAccess, columns: &Columns, answered: &RecordBatch) -> Result<RecordBatch, DictError> {
    let mut arrays = access.with_defaults(answered)?;
    let rows = arrays.first().map_or(0, |column| column.len());
    // Rows just answered are of now.
    arrays.extend(columns.times(access.clock.now(), rows)?);
    columns.batch(arrays)
}
