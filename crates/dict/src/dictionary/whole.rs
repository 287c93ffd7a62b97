//! Dictionaries that hold all rows: when these are loaded, and who waits for that.

use super::Dictionary;
use crate::config::Storage;
use crate::definition::Lifetime;
use crate::error::{Code, DictError};
use crate::lookup::{Batch, begin, lock};
use crate::whole::{Children, Held, Load, Turn, Whole};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often a watcher looks whether its dictionary is still there, and due.
const PULSE: Duration = Duration::from_secs(1);

impl Dictionary {
    /// All rows. Who needs them first has them loaded; who needs them meanwhile waits for that, too.
    pub(super) fn held(&self, whole: &Whole) -> Result<Arc<Held>, DictError> {
        self.definition.require_attributes()?;
        if let Some(held) = whole.held() {
            return Ok(held);
        }
        let loader = &self.core.loader;
        let is_left_alone = lock(&loader.backoff).wait_until(loader.clock.now()).is_some();
        if let Some(failure) = whole.failure().filter(|_| is_left_alone) {
            return Err(failure);
        }
        let (Turn::Mine(number) | Turn::Another(number)) = self.begin_load(whole);
        let outcome = self.await_load(whole, number);
        // A load that failed behind one that did not is no concern of a lookup.
        whole.held().ok_or_else(|| outcome.err().unwrap_or_else(|| loader.not_started()))
    }

    /// The way down its hierarchy; `None`: it has no hierarchy, or not all rows.
    ///
    /// # Errors
    /// What is wrong with loading the rows, where they are not there yet.
    pub fn children(&self) -> Result<Option<Arc<Children>>, DictError> {
        let loader = &self.core.loader;
        let definition = &self.definition;
        let parent = definition.structure.parent_index();
        let (Some(whole), Storage::Whole(form), Some(parent)) =
            (loader.kept.whole(), &definition.layout.storage, parent)
        else {
            return Ok(None);
        };
        self.core.note_use();
        self.held(whole)?.children(*form, &loader.row_format, parent).map(Some)
    }

    /// Shows rows of a batch.
    pub(super) fn show_held(
        &self,
        batch: &mut Batch<'_>,
        whole: &Whole,
        rows: &[u32],
    ) -> Result<(), DictError> {
        let held = self.held(whole)?;
        let found = batch.show_held(&held, rows)?;
        let counters = &self.core.loader.counters;
        counters.keys_hit.add(rows.len());
        counters.keys_negative.add(rows.len() - found);
        Ok(())
    }

    /// Loads all rows anew and waits for them. Until they are there, lookups show the old ones.
    pub(super) fn reload_whole(&self, whole: &Whole) -> Result<(), DictError> {
        match self.begin_load(whole) {
            Turn::Mine(number) => self.await_load(whole, number),
            Turn::Another(number) => {
                // It may have read rows before they were what they are now.
                let _ = self.await_load(whole, number);
                let (Turn::Mine(number) | Turn::Another(number)) = self.begin_load(whole);
                self.await_load(whole, number)
            }
        }
    }

    /// What cannot be done with a layout that holds all rows: a row of its own cannot be forgotten or renewed.
    pub(super) fn refuse_keys_of_whole(&self) -> Result<(), DictError> {
        match self.core.loader.kept.whole() {
            None => Ok(()),
            Some(_) => Err(DictError::new(
                Code::UnsupportedMethod,
                format!(
                    "Dictionary {} has the layout {}, which holds all rows; SYSTEM RELOAD DICTIONARY loads them anew",
                    self.definition.full_name(),
                    self.definition.layout.name()
                ),
            )),
        }
    }

    /// A load that begins now, unless one is under way.
    fn begin_load(&self, whole: &Whole) -> Turn {
        let turn = whole.turn();
        if let Turn::Mine(_) = turn {
            let load = Load::new(&self.core.loader);
            let update = &self.definition.layout.update;
            // Where it cannot begin, the load is dropped, and has ended.
            let _ = begin(&self.core.readers, &self.core.loader, update, move |_, connection| {
                load.run(connection);
            });
        }
        turn
    }

    fn await_load(&self, whole: &Whole, number: u64) -> Result<(), DictError> {
        let deadline = self.deadline();
        let outcome = self.core.loader.waiting.wait(|| whole.wait(number, deadline));
        let timeout_ms = self.definition.layout.update.query_wait_timeout_ms;
        outcome
            .ok_or_else(|| self.too_many_waiting())?
            .unwrap_or_else(|| Err(self.core.loader.timed_out(timeout_ms)))
    }

    /// Loads the rows anew whenever LIFETIME is over, for as long as the dictionary is there.
    pub(super) fn watch_lifetime(self: &Arc<Self>) {
        if self.core.loader.kept.whole().is_none() || self.definition.lifetime == Lifetime::FOREVER {
            return;
        }
        let watched = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("granary-lifetime".into());
        // Without a thread the rows stay until somebody reloads them.
        let _ = thread.spawn(move || watch(&watched));
    }

    /// Begins to load the rows anew if LIFETIME is over and the source is not to be left alone.
    fn renew_if_due(&self) {
        let loader = &self.core.loader;
        let now = loader.clock.now();
        if let Some(whole) = loader.kept.whole().filter(|whole| whole.is_due(now))
            && lock(&loader.backoff).wait_until(now).is_none()
        {
            self.begin_load(whole);
        }
    }
}

fn watch(watched: &Weak<Dictionary>) {
    while let Some(dictionary) = watched.upgrade() {
        dictionary.renew_if_due();
        drop(dictionary);
        std::thread::sleep(PULSE);
    }
}
