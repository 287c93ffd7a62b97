//! Accepting connections, each of which gets a thread.

use super::Counters;
use super::connection::{Connection, Context, End};
use super::listener::Listener;
use super::wire::Wire;
use crate::limits::ACCEPT_PAUSE_MILLISECONDS;
use crate::protocol::Ending;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(super) struct Acceptor {
    pub listeners: Vec<Listener>,
    pub context: Context,
    pub connections_max: usize,
    pub counters: Arc<Counters>,
    pub threads: Vec<JoinHandle<()>>,
}

impl Acceptor {
    /// Accepts until the server stops, then waits for the connections.
    pub fn run(mut self) {
        while !self.context.stop.is_given() {
            let mut fds = vec![PollFd::from_borrowed_fd(self.context.stop.event(), PollFlags::IN)];
            fds.extend(self.listeners.iter().map(|it| PollFd::from_borrowed_fd(it.fd(), PollFlags::IN)));
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "no more connections are accepted");
                    break;
                }
            }
            self.threads.retain(|thread| !thread.is_finished());
            (0..self.listeners.len()).for_each(|listener| self.accept(listener));
        }
        // No new connections while the rest is served.
        self.listeners.clear();
        for thread in self.threads {
            // A panic of the thread was printed by it; there is nothing to add.
            let _ = thread.join();
        }
    }

    fn accept(&mut self, listener: usize) {
        while !self.context.stop.is_given() {
            let failed = match self.listeners[listener].accept() {
                Ok(socket) => self.serve(socket).err(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_of_the_client(&error) => None,
                Err(error) => Some(error),
            };
            if let Some(error) = failed {
                tracing::warn!(%error, "a connection was not accepted");
                thread::sleep(Duration::from_millis(ACCEPT_PAUSE_MILLISECONDS));
                return;
            }
        }
    }

    /// Gives a connection its thread.
    fn serve(&mut self, socket: OwnedFd) -> io::Result<()> {
        let counters = &self.counters;
        if counters.connections.load(Ordering::Relaxed) >= self.connections_max as u64 {
            counters.refused.fetch_add(1, Ordering::Relaxed);
            if let Some(untold) = counters.refusals.take() {
                let limit = self.connections_max;
                tracing::warn!(limit, untold, "a connection was refused: there are too many");
            }
            return Ok(());
        }
        counters.accepted.fetch_add(1, Ordering::Relaxed);
        let (wire, context) = (Wire::new(socket, None)?, self.context.clone());
        let place = ConnectionPermit::new(Arc::clone(counters));
        let run = move || {
            let end = Connection::new(wire, context).run();
            place.note(&end);
        };
        self.threads.push(thread::Builder::new().name("granary-nbd".into()).spawn(run)?);
        Ok(())
    }
}

/// A connection's share of the allowed number.
struct ConnectionPermit(Arc<Counters>);

impl ConnectionPermit {
    fn new(counters: Arc<Counters>) -> Self {
        counters.connections.fetch_add(1, Ordering::Relaxed);
        Self(counters)
    }

    fn note(&self, end: &End) {
        match end {
            End::Protocol(Ending::Violation(reason)) | End::Slow(reason) => {
                self.0.disconnected.fetch_add(1, Ordering::Relaxed);
                if let Some(untold) = self.0.disconnections.take() {
                    tracing::warn!(reason, untold, "a client was disconnected");
                }
            }
            end => tracing::debug!(?end, "a connection has ended"),
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the client went away before it was accepted, or a signal came.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}
