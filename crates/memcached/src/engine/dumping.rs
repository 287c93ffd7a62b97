//! Lists of all items, made in steps: other clients are served in between.

use super::Engine;
use super::session::Session;
use crate::commands;
use crate::limits::DUMPS_MAX;
use crate::protocol::{DumpForm, reply};
use granary_cache::Scan;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A list that is under way.
#[derive(Debug)]
pub(super) struct Dump {
    scan: Scan,
    form: DumpForm,
    _turn: DumpPermit,
}

/// The lists that are under way, of all threads.
#[derive(Clone, Debug, Default)]
pub struct Dumps(Arc<AtomicUsize>);

/// One of the [`DUMPS_MAX`] lists that may be under way, until it is dropped.
#[derive(Debug)]
struct DumpPermit(Dumps);

impl Dumps {
    /// Begins a list; `None`: [`DUMPS_MAX`] are under way, and this one has to wait.
    pub(super) fn begin(&self, form: DumpForm) -> Option<Dump> {
        let one_more = |underway: usize| (underway < DUMPS_MAX).then_some(underway + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Dump { scan: Scan::default(), form, _turn: DumpPermit(self.clone()) })
    }
}

impl Drop for DumpPermit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Engine {
    /// Continues each list that a session waits for by one step.
    pub(super) fn dump(&mut self, sessions: &mut [Session], now: u32) {
        for session in sessions.iter_mut().filter(|session| session.output.has_room()) {
            let Session { dump: dumping, output, .. } = session;
            let Some(dump) = dumping else { continue };
            let Engine { shared, context, .. } = self;
            let (store, out) = (&shared.store, &mut output.bytes);
            let more = store.scan_on(context, &mut dump.scan, now, |key, item| match dump.form {
                DumpForm::Metadata => {
                    commands::metadata(key, item, store.last_read(store.key(key)), out);
                }
                DumpForm::Requests => commands::request_for(key, item.header.key_form, out),
            });
            if !more {
                reply::line(out, if dump.form == DumpForm::Metadata { "END" } else { "EN" });
                *dumping = None;
            }
        }
    }
}
