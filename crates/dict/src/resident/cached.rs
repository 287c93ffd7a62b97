//! Found and fresh entries of the cache.

use super::{Columns, time_type};
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup::{SourceAccess, ends_after};
use crate::row::{Column, Decoder, KeyFormat};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{sort_to_indices, take};
use granary_cache::Scan;
use std::sync::Arc;

/// A scan of the cache's entries.
pub(super) struct Cached {
    access: Arc<SourceAccess>,
    columns: Columns,
    /// `None`: the scan has ended.
    scan: Option<Scan>,
    /// Whether the next batch is the first one.
    is_first: bool,
}

impl Cached {
    pub fn new(access: &Arc<SourceAccess>, columns: Columns) -> Cached {
        Cached { access: Arc::clone(access), columns, scan: Some(Scan::default()), is_first: true }
    }

    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, DictError> {
        let (access, shows_times) = (&*self.access, self.columns.shows_times);
        let Some(store) = access.storage.store() else { return Ok(None) };
        let now = access.clock.now();
        let latest = access.latest_end(now);
        let all: Vec<usize> = (0..access.row_format.data_types().len()).collect();
        let mut keys: Vec<Column> = access.key_format.data_types().iter().map(Column::new).collect();
        let mut rows = Decoder::new(&access.row_format, &all, 0);
        let mut updated = Column::new(&time_type());
        let mut bytes = 0;
        while let Some(scan) = &mut self.scan
            && rows.len() < limits::RESIDENT_BATCH_ROWS
            && bytes < limits::RESIDENT_BATCH_BYTES
        {
            let more = store.scan_on(scan, |key, value, expires_at| {
                let Some(value) = value else { return };
                // As for a lookup.
                let has_ended = expires_at != 0 && u64::from(expires_at) < now;
                if has_ended || ends_after(expires_at, latest) {
                    return;
                }
                if !access.key_format.is_whole(key) || rows.push(value).is_err() {
                    access.counters.rows_bad.add(1);
                    return;
                }
                bytes += key.len() + value.len();
                access.key_format.decode(key, &mut keys);
                if shows_times {
                    match access.updated_at(key, expires_at) {
                        Some(seconds) => updated.push_fixed(&seconds.to_le_bytes()),
                        None => updated.push_null(),
                    }
                }
            });
            if !more {
                self.scan = None;
            }
        }
        if rows.len() == 0 {
            return Ok(None);
        }
        let mut columns = keys.into_iter().map(Column::finish).collect::<Result<Vec<_>, _>>()?;
        columns.extend(rows.finish()?);
        if shows_times {
            columns.push(updated.finish()?);
        }
        // A few rows are read by people: they are sorted by their keys, if these are numbers.
        if std::mem::replace(&mut self.is_first, false)
            && self.scan.is_none()
            && matches!(access.key_format, KeyFormat::Simple)
        {
            columns = in_order(columns)?;
        }
        self.columns.batch(columns).map(Some)
    }
}

/// Rows in the order of the first column.
fn in_order(columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>, DictError> {
    let order = sort_to_indices(&columns[0], None, None);
    let sorted = order.and_then(|order| columns.iter().map(|column| take(column, &order, None)).collect());
    sorted.map_err(|e| DictError::new(Code::LimitExceeded, e.to_string()))
}
