//! Documents of a collection. The official driver queries the servers with an `$in` or an `$or` of keys; only the
//! fields that are columns are sent.

use super::fields::DocumentFields;
use super::server::{MongodbServer, SharedClient, error, runtime};
use super::{filter, updates};
use crate::definition::Structure;
use crate::error::DictError;
use crate::limits;
use crate::source::rows::Rows;
use crate::source::sql::no_updates;
use crate::source::{BatchSink, Changes, NewestChange, Source};
use ::mongodb::Cursor;
use ::mongodb::bson::{Document, RawDocumentBuf};
use arrow::array::{ArrayRef, RecordBatch};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// One user of the client, which has a connection of its own whenever it asks.
pub(super) struct Mongodb {
    pub server: Arc<MongodbServer>,
    pub connected: Arc<SharedClient>,
    pub structure: Structure,
    fields: DocumentFields,
}

/// How many documents are to be read.
#[derive(Clone, Copy)]
pub(super) enum ReadLimit {
    All,
    Documents(usize),
    /// A batch of a whole read, bounded in rows and bytes.
    Batch,
}

/// Whether there are more.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Rest {
    None,
    Unknown,
}

impl Mongodb {
    /// The servers are spoken to only when something is asked of them.
    pub fn connect(server: &Arc<MongodbServer>, structure: &Structure) -> Result<Mongodb, DictError> {
        let connected = server.connected()?;
        let (structure, fields) = (structure.clone(), DocumentFields::new(structure));
        Ok(Mongodb { server: Arc::clone(server), connected, structure, fields })
    }

    pub fn deadline(&self) -> Instant {
        Instant::now() + self.server.timeout
    }

    /// Runs `work`; after an error the next connection gets a new client.
    pub fn ask<T>(
        &self,
        deadline: Instant,
        work: impl Future<Output = Result<T, DictError>>,
    ) -> Result<T, DictError> {
        self.server.ask(deadline, work).inspect_err(|_| self.server.forget(&self.connected))
    }

    /// A find that the server ends at the deadline, if there is one.
    pub async fn find(
        &self,
        filter: Document,
        fields: &DocumentFields,
        batch: usize,
        deadline: Option<Instant>,
    ) -> Result<Cursor<RawDocumentBuf>, DictError> {
        let collection = self.connected.collection(&self.server.collection);
        let mut find = collection.find(filter).projection(fields.projection()).batch_size(batch as u32);
        if let Some(deadline) = deadline {
            find = find.max_time(left(deadline));
        }
        find.await.map_err(|e| error(&e))
    }
}

/// The time until a deadline, at least 1 ms: for the server 0 is no limit.
pub(super) fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

/// Adds the documents of a cursor to the rows.
pub(super) async fn fill(
    cursor: &mut Cursor<RawDocumentBuf>,
    fields: &DocumentFields,
    most: ReadLimit,
    rows: &mut Rows,
) -> Result<Rest, DictError> {
    let (mut read, mut bytes) = (0, 0);
    while cursor.advance().await.map_err(|e| error(&e))? {
        fields.push(cursor.current(), rows)?;
        rows.check_bytes()?;
        read += 1;
        bytes += cursor.current().as_bytes().len();
        let is_enough = match most {
            ReadLimit::All => false,
            ReadLimit::Documents(most) => read >= most,
            ReadLimit::Batch => read >= limits::RESIDENT_BATCH_ROWS || bytes >= limits::RESIDENT_BATCH_BYTES,
        };
        if is_enough {
            return Ok(Rest::Unknown);
        }
    }
    Ok(Rest::None)
}

impl Source for Mongodb {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let deadline = self.deadline();
        let mut rows = Rows::new(&self.structure).at_most(self.server.answer_bytes_max);
        for filter in filter::filters(&self.structure, keys)? {
            self.ask(deadline, async {
                let batch = limits::MONGODB_KEYS_MAX;
                let mut cursor = self.find(filter, &self.fields, batch, Some(deadline)).await?;
                fill(&mut cursor, &self.fields, ReadLimit::All, &mut rows).await
            })?;
        }
        Ok(vec![rows.finish(&[])?])
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        let mut rows = Rows::new(&self.structure).at_most(self.server.answer_bytes_max);
        // The cursor is dropped inside, whatever happens: that tells the server.
        let _inside = runtime()?.enter();
        let found = self.find(Document::new(), &self.fields, limits::RESIDENT_BATCH_ROWS, None);
        let mut cursor = self.ask(self.deadline(), found)?;
        loop {
            // A slow reader's time is not the server's: each batch has a time of its own.
            let filled = fill(&mut cursor, &self.fields, ReadLimit::Batch, &mut rows);
            let rest = self.ask(self.deadline(), filled)?;
            rows.flush(sink)?;
            if rest == Rest::None {
                return Ok(());
            }
        }
    }

    fn newest_change(&mut self, watermark: Option<&str>) -> Result<NewestChange, DictError> {
        let updates = self.server.updates.as_ref().ok_or_else(no_updates)?;
        updates::newest_change(self, updates, watermark)
    }

    fn changes(&mut self, watermark: &str) -> Result<Changes, DictError> {
        let updates = self.server.updates.as_ref().ok_or_else(no_updates)?;
        updates::changes(self, updates, watermark)
    }
}
