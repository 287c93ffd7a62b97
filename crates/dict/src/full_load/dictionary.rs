//! Dictionaries that hold all rows: when rows are loaded, and which lookups wait for that.

use super::{Children, FullLoad, FullLoadRows, Load, LoadTicket, Snapshot};
use crate::config::LayoutKind;
use crate::definition::Lifetime;
use crate::dictionary::Dictionary;
use crate::environment::WaitPermit;
use crate::error::DictError;
use crate::lookup::{Batch, begin};
use crate::resident::Columns;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often a watcher checks whether its dictionary still exists and is due.
const PULSE: Duration = Duration::from_secs(1);

impl Dictionary {
    /// The children of its keys; `None`: it has no hierarchy, or does not hold all rows.
    ///
    /// # Errors
    /// The errors of loading the rows, if they are not there yet.
    pub fn children(&self) -> Result<Option<Arc<Children>>, DictError> {
        let access = &self.core.access;
        let parent = self.definition.structure.parent_index();
        let (Some(full_load), LayoutKind::FullLoad(layout), Some(parent)) =
            (access.storage.full_load(), &self.definition.layout.kind, parent)
        else {
            return Ok(None);
        };
        self.core.note_use();
        full_load.rows(self)?.children(*layout, &access.row_format, parent).map(Some)
    }

    /// The load whose rows lookups show, if the dictionary holds all rows and has loaded them.
    pub fn shown_load(&self) -> ShownLoad {
        ShownLoad(self.core.access.storage.full_load().and_then(FullLoad::snapshot))
    }

    /// Begins to load the rows anew if LIFETIME is over and the source is not left alone after a failure.
    fn renew_if_due(&self) {
        let access = &self.core.access;
        if let Some(full_load) =
            access.storage.full_load().filter(|full_load| full_load.is_due(&access.clock))
            && access.backoff_remaining().is_none()
        {
            full_load.begin(self, full_load.ticket());
        }
    }
}

/// Identity of a loaded snapshot. Lookups between two equal values saw one snapshot.
pub struct ShownLoad(Option<Arc<Snapshot>>);

impl PartialEq for ShownLoad {
    fn eq(&self, other: &Self) -> bool {
        // The Arc is held, so no later snapshot can have its address: comparing pointers is safe.
        self.0.as_ref().map(Arc::as_ptr) == other.0.as_ref().map(Arc::as_ptr)
    }
}

impl FullLoad {
    /// All rows. The first caller has them loaded; callers meanwhile wait for that load.
    pub(super) fn rows(&self, dictionary: &Dictionary) -> Result<Arc<Snapshot>, DictError> {
        dictionary.definition.require_attributes()?;
        if let Some(snapshot) = self.snapshot() {
            return Ok(snapshot);
        }
        let access = &dictionary.core.access;
        let is_left_alone = access.backoff_remaining().is_some();
        if let Some(failure) = self.failure().filter(|_| is_left_alone) {
            return Err(failure);
        }
        // The place is taken first: a lookup that may not wait begins no load.
        let place = dictionary.wait_permit()?;
        let number = self.begin(dictionary, self.ticket());
        let outcome = self.end_of(dictionary, &place, number);
        // A lookup ignores a failed load if an earlier one succeeded.
        self.snapshot().ok_or_else(|| outcome.err().unwrap_or_else(|| access.not_started()))
    }

    /// Shows rows of a batch.
    pub fn show(
        &self,
        dictionary: &Dictionary,
        batch: &mut Batch<'_>,
        rows: &[u32],
    ) -> Result<(), DictError> {
        let snapshot = self.rows(dictionary)?;
        let found = batch.show(&snapshot, rows)?;
        let counters = &dictionary.core.access.counters;
        counters.keys_hit.add(rows.len());
        counters.keys_negative.add(rows.len() - found);
        Ok(())
    }

    /// All rows, a batch at a time.
    pub fn resident(&self, dictionary: &Dictionary, columns: Columns) -> Result<FullLoadRows, DictError> {
        Ok(FullLoadRows::new(&dictionary.core.access, columns, self.rows(dictionary)?))
    }

    /// Loads all rows anew and waits for them. Until they are there, lookups show the old ones.
    pub fn reload(&self, dictionary: &Dictionary) -> Result<(), DictError> {
        let place = dictionary.wait_permit()?;
        let ticket = self.ticket_anew();
        let may_be_older = matches!(ticket, LoadTicket::Join(_));
        let mut number = self.begin(dictionary, ticket);
        if may_be_older {
            let _ = self.wait_for(dictionary, &place, number)?;
            number = self.begin(dictionary, self.ticket_after(number));
        }
        self.end_of(dictionary, &place, number)
    }

    /// Begins the load of a ticket, unless it is under way. Returns its number.
    fn begin(&self, dictionary: &Dictionary, ticket: LoadTicket) -> u64 {
        let number = match ticket {
            LoadTicket::Join(number) => return number,
            LoadTicket::Begin(number) => number,
        };
        let core = &dictionary.core;
        let load = Load::new(&core.access);
        let update = &dictionary.definition.layout.update;
        // If it cannot begin, the load is dropped, which ends it.
        let _ = begin(&core.readers, &core.access, update, move |_, connection| load.run(connection));
        number
    }

    /// Waits for the end of a load, and returns its outcome.
    fn end_of(&self, dictionary: &Dictionary, place: &WaitPermit, number: u64) -> Result<(), DictError> {
        self.wait_for(dictionary, place, number)?
    }

    /// Waits for the end of a load. The inner result is its outcome.
    ///
    /// # Errors
    /// The load has not ended in time.
    fn wait_for(
        &self,
        dictionary: &Dictionary,
        place: &WaitPermit,
        number: u64,
    ) -> Result<Result<(), DictError>, DictError> {
        let deadline = dictionary.deadline();
        let access = &dictionary.core.access;
        let outcome = place.wait(|| self.wait(number, deadline));
        let timeout_ms = dictionary.definition.layout.update.query_wait_timeout_ms;
        outcome.ok_or_else(|| access.not_started())?.ok_or_else(|| access.timed_out(timeout_ms))
    }

    /// Loads the rows anew whenever LIFETIME is over, for as long as the dictionary is there.
    pub fn watch_lifetime(&self, dictionary: &Arc<Dictionary>) {
        if dictionary.definition.lifetime == Lifetime::FOREVER {
            return;
        }
        let watched = Arc::downgrade(dictionary);
        let thread = std::thread::Builder::new().name("granary-lifetime".into());
        // Without a thread the rows stay until a reload.
        let _ = thread.spawn(move || watch(&watched));
    }
}

impl Batch<'_> {
    /// Looks `rows` up among all the rows that the source has; returns how many are there.
    fn show(&mut self, snapshot: &Snapshot, rows: &[u32]) -> Result<usize, DictError> {
        let first = self.decoder.len();
        for &row in rows {
            if let Some(bytes) = snapshot.get(self.keys.get(row as usize)) {
                self.decoder.push(bytes)?;
                self.places[row as usize] = self.decoder.len() as u32 - 1;
            }
        }
        Ok(self.decoder.len() - first)
    }
}

fn watch(watched: &Weak<Dictionary>) {
    while let Some(dictionary) = watched.upgrade() {
        dictionary.renew_if_due();
        drop(dictionary);
        std::thread::sleep(PULSE);
    }
}
