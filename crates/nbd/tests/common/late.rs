//! An export whose commands are completed late, and in an order of their own.

use super::random::Random;
use granary_nbd::{Command, Completions, Export, Session, Tag};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub struct LateExport {
    pub inner: Arc<dyn Export>,
    /// Whether the session has an event.
    pub has_event: bool,
    /// The greatest number of commands that were in flight at once.
    pub most_in_flight: AtomicUsize,
    /// Nothing is completed while this is set.
    pub is_held: AtomicBool,
}

impl LateExport {
    pub fn new(inner: Arc<dyn Export>, has_event: bool) -> Self {
        Self { inner, has_event, most_in_flight: AtomicUsize::new(0), is_held: AtomicBool::new(false) }
    }
}

impl Export for LateExport {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn size(&self) -> u64 {
        self.inner.size()
    }
    fn read_only(&self) -> bool {
        self.inner.read_only()
    }
    fn minimum_block(&self) -> u32 {
        self.inner.minimum_block()
    }
    fn preferred_block(&self) -> u32 {
        self.inner.preferred_block()
    }
    fn session(self: Arc<Self>) -> io::Result<Box<dyn Session>> {
        let inner = Arc::clone(&self.inner).session()?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Box::new(LateSession { export: self, inner, held: Vec::new(), event, random: Random(7) }))
    }
}

struct LateSession {
    export: Arc<LateExport>,
    inner: Box<dyn Session>,
    /// Commands with their data.
    held: Vec<(Tag, Command<'static>, Vec<u8>)>,
    event: OwnedFd,
    random: Random,
}

impl LateSession {
    fn complete(&mut self, completions: &mut Completions) {
        let (tag, command, data) = self.held.swap_remove(self.random.below(self.held.len() as u64) as usize);
        let command = match command {
            Command::Write { offset, fua, .. } => Command::Write { offset, data: &data, fua },
            other => other,
        };
        self.inner.begin(tag, command, completions);
    }
}

impl Session for LateSession {
    fn begin(&mut self, tag: Tag, command: Command<'_>, completions: &mut Completions) {
        self.export.most_in_flight.fetch_max(completions.in_flight(), Ordering::Relaxed);
        let (command, data) = match command {
            Command::Write { offset, data, fua } => {
                (Command::Write { offset, data: &[], fua }, data.to_owned())
            }
            Command::Read { offset, len } => (Command::Read { offset, len }, Vec::new()),
            Command::Flush => (Command::Flush, Vec::new()),
            Command::Trim { offset, len, fua } => (Command::Trim { offset, len, fua }, Vec::new()),
            Command::WriteZeroes { offset, len, may_trim, fast, fua } => {
                (Command::WriteZeroes { offset, len, may_trim, fast, fua }, Vec::new())
            }
            Command::Cache { offset, len } => (Command::Cache { offset, len }, Vec::new()),
            Command::BlockStatus { offset, len, one } => {
                (Command::BlockStatus { offset, len, one }, Vec::new())
            }
        };
        self.held.push((tag, command, data));
        rustix::io::write(&self.event, &1_u64.to_ne_bytes()).unwrap();
    }

    fn poll(&mut self, completions: &mut Completions) {
        // The event stays readable, so `poll` is called again.
        if self.export.is_held.load(Ordering::Relaxed) {
            return;
        }
        for _ in 0..self.random.below(self.held.len() as u64 + 1) {
            self.complete(completions);
        }
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        if !self.held.is_empty() {
            rustix::io::write(&self.event, &1_u64.to_ne_bytes()).unwrap();
        }
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        self.export.has_event.then(|| self.event.as_fd())
    }
}
