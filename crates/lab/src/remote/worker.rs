//! A worker: sends the requests for some of the keys over one connection, decides which of them go together, and counts
//! the outcomes.

use super::connection::Connection;
use super::content::Content;
use crate::model::{NEVER, Step, Tally, Workload};
use crate::trace::Operation;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

/// Bytes of values in flight at once, unless a single one is longer: a server that can neither send nor receive must
/// not be written to.
const VALUE_BYTES_MAX: u64 = 64 << 10;

/// Requests that a worker queues, as a multiple of `pipeline`.
const QUEUE_PIPELINES: usize = 8;

/// The state of an object as the clients know it.
#[derive(Clone, Copy)]
pub(super) struct ClientView {
    /// Bytes stored last; 0: nothing was stored since the last deletion.
    bytes: u32,
    /// When its lifetime ends, in the trace's time.
    expires: u32,
    /// How often the object was stored.
    version: u32,
}

impl Default for ClientView {
    fn default() -> Self {
        Self { bytes: 0, expires: NEVER, version: 0 }
    }
}

impl ClientView {
    fn stored(&self) -> Option<(u32, u32)> {
        (self.bytes > 0).then_some((self.version, self.bytes))
    }
}

/// What the clients counted.
#[derive(Default)]
pub(super) struct Counted {
    pub tally: Tally,
    pub refused: u64,
}

/// A command that was sent, with the position of its request in the workload.
#[derive(Clone, Copy)]
enum Sent {
    /// The store after a read that missed.
    Fill(u32),
    Get(u32),
    Set(u32),
    Add(u32),
    /// Deleted by the trace, or at the end of its lifetime.
    Delete,
}

/// Sends the requests for some of the keys over one connection, in the order of the trace.
pub(super) struct Worker {
    connection: Connection,
    pipeline: usize,
    /// Positions of queued requests.
    queue: VecDeque<u32>,
    /// Positions of reads that missed.
    misses: Vec<u32>,
    sent: Vec<Sent>,
    /// Keys of the requests sent together, and whether all of a key's are reads.
    keys: Vec<(u32, bool)>,
}

impl Worker {
    pub fn new(server: SocketAddr, pipeline: usize) -> io::Result<Self> {
        Ok(Self {
            connection: Connection::new(server)?,
            pipeline,
            queue: VecDeque::new(),
            misses: Vec::new(),
            sent: Vec::new(),
            keys: Vec::new(),
        })
    }

    /// Queues a request; `false`: the queue is full.
    pub fn take(&mut self, position: u32) -> bool {
        let has_room = self.queue.len() < self.pipeline * QUEUE_PIPELINES;
        if has_room {
            self.queue.push_back(position);
        }
        has_room
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.misses.is_empty()
    }

    /// Sends the stores after misses, and queued requests.
    pub fn send(
        &mut self,
        workload: &Workload,
        content: &Content<'_>,
        known: &mut [ClientView],
    ) -> io::Result<()> {
        self.sent.clear();
        self.keys.clear();
        for position in self.misses.drain(..) {
            let step = &workload.steps[position as usize];
            store(&mut self.connection, "set", step, content, &mut known[step.key as usize]);
            self.sent.push(Sent::Fill(position));
        }
        let mut bytes = 0;
        while self.keys.len() < self.pipeline
            && let Some(position) = self.queue.front().copied()
        {
            let step = &workload.steps[position as usize];
            bytes += u64::from(step.bytes);
            if !self.keys.is_empty() && bytes > VALUE_BYTES_MAX || !self.goes_along(step, known) {
                break;
            }
            self.queue.pop_front();
            self.add(position, step, content, &mut known[step.key as usize]);
        }
        self.connection.send()
    }

    /// Whether a request may be sent with those before it: a key's outcome must be known before the next command for
    /// it, unless both are reads.
    fn goes_along(&self, step: &Step, known: &[ClientView]) -> bool {
        let reads = step.operation == Operation::Get && !is_over(step, &known[step.key as usize]);
        self.keys.iter().all(|(key, only_reads)| *key != step.key || *only_reads && reads)
    }

    fn add(&mut self, position: u32, step: &Step, content: &Content<'_>, known: &mut ClientView) {
        let key = content.key(step.key);
        let over = is_over(step, known);
        self.keys.push((step.key, step.operation == Operation::Get && !over));
        if over && step.operation != Operation::Delete {
            self.connection.ask("delete", &key);
            self.sent.push(Sent::Delete);
            known.bytes = 0;
        }
        let sent = match step.operation {
            Operation::Get => {
                self.connection.ask("get", &key);
                Sent::Get(position)
            }
            Operation::Set => {
                store(&mut self.connection, "set", step, content, known);
                Sent::Set(position)
            }
            // `known` changes when the server replies that it was stored.
            Operation::Add => {
                store(&mut self.connection, "add", step, content, &mut { *known });
                Sent::Add(position)
            }
            Operation::Delete => {
                self.connection.ask("delete", &key);
                known.bytes = 0;
                Sent::Delete
            }
        };
        self.sent.push(sent);
    }

    /// Receives the replies to all commands sent.
    pub fn receive(
        &mut self,
        workload: &Workload,
        content: &Content<'_>,
        known: &mut [ClientView],
        counted: &mut Counted,
    ) -> io::Result<()> {
        let mut again = Vec::new();
        for sent in std::mem::take(&mut self.sent) {
            match sent {
                Sent::Get(position) => {
                    let step = &workload.steps[position as usize];
                    let stored = known[step.key as usize].stored();
                    let found = self.connection.found(content, step.key, stored)?;
                    // A client that asks while another one fetches the object waits for that.
                    if self.misses.iter().any(|miss| workload.steps[*miss as usize].key == step.key) {
                        again.push(position);
                        continue;
                    }
                    let tally = &mut counted.tally;
                    tally.reads += 1;
                    tally.read_bytes += u64::from(step.bytes);
                    if found {
                        tally.hits += 1;
                        tally.hit_bytes += u64::from(step.bytes);
                    } else {
                        self.misses.push(position);
                    }
                }
                Sent::Fill(position) | Sent::Set(position) | Sent::Add(position) => {
                    let step = &workload.steps[position as usize];
                    let known = &mut known[step.key as usize];
                    self.stored(sent, step, known, counted)?;
                }
                Sent::Delete => match self.connection.line()? {
                    b"DELETED" | b"NOT_FOUND" => {}
                    other => return Err(unexpected("delete", other)),
                },
            }
        }
        again.into_iter().rev().for_each(|position| self.queue.push_front(position));
        Ok(())
    }

    /// The reply to a store.
    fn stored(
        &mut self,
        sent: Sent,
        step: &Step,
        known: &mut ClientView,
        counted: &mut Counted,
    ) -> io::Result<()> {
        let adds = matches!(sent, Sent::Add(_));
        match self.connection.line()? {
            b"STORED" => {
                if adds {
                    note(step, known);
                }
            }
            b"NOT_STORED" if adds => return Ok(()),
            line if line.starts_with(b"SERVER_ERROR") => {
                // The server has dropped the key's earlier value as well.
                known.bytes = 0;
                counted.refused += 1;
            }
            other => return Err(unexpected("set", other)),
        }
        // A client has written the object, even if it was refused.
        counted.tally.stored_bytes += u64::from(step.bytes);
        Ok(())
    }
}

/// Whether the known object is not the one requested: its lifetime has ended, or it has another size. The source
/// changed it, and the trace does not tell when.
fn is_over(step: &Step, known: &ClientView) -> bool {
    let other = step.operation == Operation::Get && known.bytes != step.bytes;
    known.bytes > 0 && (known.expires <= step.seconds || other)
}

fn note(step: &Step, known: &mut ClientView) {
    *known = ClientView { bytes: step.bytes, expires: step.end(), version: known.version.wrapping_add(1) };
}

fn store(
    connection: &mut Connection,
    command: &str,
    step: &Step,
    content: &Content<'_>,
    known: &mut ClientView,
) {
    note(step, known);
    connection.store(command, &content.key(step.key), content.value(step.key, known.version, known.bytes));
}

fn unexpected(command: &str, reply: &[u8]) -> io::Error {
    io::Error::other(format!("no reply to {command}: {:?}", String::from_utf8_lossy(reply)))
}
