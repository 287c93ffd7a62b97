//! A thread that commits in the background.

use crate::running::Running;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

/// Called with the result of a commit, which several requests may share.
type Done = Box<dyn FnOnce(Result<(), &io::Error>) + Send>;

pub(crate) struct Committer {
    requests: Mutex<Option<Sender<Done>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Committer {
    /// # Errors
    /// The process may start no thread.
    pub fn start(running: Arc<Running>) -> io::Result<Self> {
        let (requests, asked) = channel();
        let thread =
            Builder::new().name("volume-commit".into()).spawn(move || run_committer(&running, &asked))?;
        Ok(Self { requests: Mutex::new(Some(requests)), thread: Mutex::new(Some(thread)) })
    }

    pub fn commit(&self, done: Done) {
        let requests = self.requests.lock().expect("no panic under the lock");
        let refused = match &*requests {
            Some(requests) => requests.send(done).map_err(|refused| refused.0).err(),
            None => Some(done),
        };
        drop(requests);
        if let Some(done) = refused {
            done(Err(&io::Error::other("the volume has ended")));
        }
    }

    /// Answers pending requests, and ends the thread.
    pub fn end(&self) {
        drop(self.requests.lock().expect("no panic under the lock").take());
        let thread = self.thread.lock().expect("no panic under the lock").take();
        // A panic of the thread was printed by it; there is nothing to add.
        let _ = thread.map(JoinHandle::join);
    }
}

fn run_committer(running: &Running, asked: &Receiver<Done>) {
    while let Ok(first) = asked.recv() {
        let all: Vec<Done> = std::iter::once(first).chain(asked.try_iter()).collect();
        let result = running.commit();
        all.into_iter().for_each(|done| done(result.as_ref().copied()));
    }
}
