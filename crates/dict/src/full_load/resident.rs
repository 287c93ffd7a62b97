//! All rows of a dictionary that holds them.

use super::Snapshot;
use crate::error::DictError;
use crate::limits;
use crate::lookup::SourceAccess;
use crate::resident::Columns;
use crate::row::{Column, Decoder};
use arrow::array::RecordBatch;
use std::sync::Arc;

/// A read of all rows. A reload meanwhile is not seen.
pub(crate) struct FullLoadRows {
    access: Arc<SourceAccess>,
    columns: Columns,
    snapshot: Arc<Snapshot>,
    next: usize,
}

impl FullLoadRows {
    pub fn new(access: &Arc<SourceAccess>, columns: Columns, snapshot: Arc<Snapshot>) -> FullLoadRows {
        FullLoadRows { access: Arc::clone(access), columns, snapshot, next: 0 }
    }

    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, DictError> {
        let access = &*self.access;
        let all: Vec<usize> = (0..access.row_format.data_types().len()).collect();
        let mut keys: Vec<Column> = access.key_format.data_types().iter().map(Column::new).collect();
        let mut rows = Decoder::new(&access.row_format, &all, 0);
        let mut bytes = 0;
        while self.next < self.snapshot.len()
            && rows.len() < limits::RESIDENT_BATCH_ROWS
            && bytes < limits::RESIDENT_BATCH_BYTES
        {
            let (key, row) = self.snapshot.at(self.next);
            rows.push(row)?;
            access.key_format.decode(key, &mut keys);
            bytes += key.len() + row.len();
            self.next += 1;
        }
        let count = rows.len();
        if count == 0 {
            return Ok(None);
        }
        // As in ClickHouse, where reading a row counts as a lookup.
        access.counters.keys_requested.add(count);
        access.counters.keys_hit.add(count);
        let mut columns = keys.into_iter().map(Column::finish).collect::<Result<Vec<_>, _>>()?;
        columns.extend(rows.finish()?);
        columns.extend(self.columns.times(self.snapshot.loaded_at, count)?);
        self.columns.batch(columns).map(Some)
    }
}
