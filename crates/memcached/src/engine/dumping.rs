//! Lists of all items, a bit at a time: other clients are served in between.

use super::Engine;
use super::session::Session;
use crate::commands;
use crate::protocol::{DumpForm, reply};
use granary_cache::Scan;

/// A list that is under way.
#[derive(Debug)]
pub(super) struct Dump {
    scan: Scan,
    form: DumpForm,
}

impl Dump {
    pub fn new(form: DumpForm) -> Self {
        Self { scan: Scan::default(), form }
    }
}

impl Engine {
    /// Goes on with the lists that sessions wait for, each by a step.
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
