//! Replays a workload on a memcached server, to compare it with the models.
//!
//! Clients are look-aside, as in [`crate::model::replay`]: an object that a read misses is stored. Keys are dealt out
//! to connections, so that each key's requests keep their order; requests for different keys may overtake each other
//! within the queues. An object whose lifetime ends in the trace's time is deleted when it is next requested: the
//! server's clock is another one. Nor does the server have days to write what the trace's clients store in days: if it
//! reports how much waits to be written, clients wait for the device. Every value returned is compared with the one
//! stored last.

mod connection;
mod content;
mod statistics;
mod worker;

pub use content::{Content, KEY_BYTES};
pub use statistics::Statistics;

use crate::model::{Tally, Workload};
use connection::connect;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use worker::{ClientView, Counted, Worker};

/// The clients' connections.
#[derive(Clone, Copy, Debug)]
pub struct Clients {
    /// Address of the server.
    pub server: SocketAddr,
    /// Number of connections.
    pub connections: usize,
    /// Requests that a connection sends at once, at most.
    pub pipeline: usize,
}

/// Results of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// The clients' counts, and the server's of flash and DRAM; only Granary reports flash. DRAM counts allocated
    /// bytes, including its free reserve.
    pub tally: Tally,
    /// Objects that the server found, in RAM or on flash, including those looked up for deletion.
    pub found: u64,
    /// Objects that the server refused.
    pub refused: u64,
    /// Objects that left DRAM unseen by the policy, because the device was behind.
    pub left_unseen: u64,
}

/// Maximum time between two requests for the server's statistics.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// Bytes that clients store between two checks that the server keeps up.
const ASK_EVERY_BYTES: u64 = 1 << 20;

/// Bytes in write buffers above which clients wait.
const BUFFER_BYTES_MAX: u64 = 16 << 20;

/// How long a device may take to write them.
const WRITING_MAX: Duration = Duration::from_secs(60);

/// How long the server may take to finish the writes it has begun.
const SETTLE_MAX: Duration = Duration::from_secs(10);

/// The server's statistics, including its settings.
///
/// # Errors
/// Errors of the connection.
pub fn statistics(server: SocketAddr) -> io::Result<Statistics> {
    ask(&connect(server)?)
}

fn ask(stream: &TcpStream) -> io::Result<Statistics> {
    Statistics::ask(stream, &["", "settings", "granary"])
}

/// Replays a workload with this content. `progress` is called with the number of requests done.
///
/// # Errors
/// Errors of a connection; a value that is not the one stored last; a malformed reply.
pub fn replay_served(
    workload: &Workload,
    clients: &Clients,
    content: &Content<'_>,
    mut progress: impl FnMut(usize),
) -> io::Result<Served> {
    let mut known = vec![ClientView::default(); workload.keys as usize];
    let mut workers = Vec::new();
    for _ in 0..clients.connections.max(1) {
        workers.push(Worker::new(clients.server, clients.pipeline.max(1))?);
    }
    let watch = connect(clients.server)?;
    let before = ask(&watch)?;
    let mut counted = Counted::default();
    let mut most = Most::default();
    let mut asked = Instant::now();
    let mut asked_at_bytes = 0;
    let mut next = 0;
    loop {
        // In the trace's order, until a worker has enough: no worker gets far ahead of another.
        while let Some(step) = workload.steps.get(next) {
            // Keys are numbered in order of appearance; the hash spreads neighbours over workers.
            let worker = (step.key.wrapping_mul(0x9E37_79B9) >> 16) as usize % workers.len();
            if !workers[worker].take(next as u32) {
                break;
            }
            next += 1;
        }
        if workers.iter().all(Worker::is_idle) {
            break;
        }
        for worker in &mut workers {
            worker.send(workload, content, &mut known)?;
        }
        for worker in &mut workers {
            worker.receive(workload, content, &mut known, &mut counted)?;
        }
        let stored = counted.tally.stored_bytes;
        if stored - asked_at_bytes > ASK_EVERY_BYTES || asked.elapsed() > ASK_EVERY {
            most.note(&when_it_keeps_up(&watch)?);
            (asked, asked_at_bytes) = (Instant::now(), stored);
            progress(next);
        }
    }
    progress(next);
    let after = settled(&watch)?;
    most.note(&after);
    Ok(counted.served(&before, &after, &most))
}

/// The statistics, once few write buffers are in use. These take a part of the server's RAM that a trace at its
/// original speed would not fill.
fn when_it_keeps_up(watch: &TcpStream) -> io::Result<Statistics> {
    let begun = Instant::now();
    loop {
        let said = ask(watch)?;
        let buffers = said.number("granary", "buffer_bytes").unwrap_or(0);
        if buffers <= BUFFER_BYTES_MAX || begun.elapsed() > WRITING_MAX {
            return Ok(said);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Maxima of the DRAM that the server reported.
#[derive(Default)]
struct Most {
    objects: u64,
    index: u64,
}

impl Most {
    fn note(&mut self, said: &Statistics) {
        let sum = |names: [&str; 2]| names.iter().filter_map(|name| said.number("granary", name)).sum();
        let objects: u64 = sum(["memory_bytes", "buffer_bytes"]);
        // Other servers report the bytes of their items as this.
        let objects = if objects == 0 { said.number("", "bytes").unwrap_or(0) } else { objects };
        self.objects = self.objects.max(objects);
        self.index = self.index.max(sum(["index_bytes", "policy_bytes"]));
    }
}

impl Counted {
    fn served(&self, before: &Statistics, after: &Statistics, most: &Most) -> Served {
        let granary = |name: &str| before.counted_until(after, "granary", name);
        Served {
            tally: Tally {
                flash_hits: granary("hits_flash"),
                flash_reads: granary("reads"),
                flash_bytes_written: granary("bytes_written"),
                dram_bytes: most.objects,
                index_bytes: most.index,
                ..self.tally
            },
            found: ["hits_memory", "hits_buffer", "hits_flash"].map(granary).iter().sum(),
            refused: self.refused,
            left_unseen: granary("left_unseen"),
        }
    }
}

/// The statistics, once the server has stopped writing.
fn settled(watch: &TcpStream) -> io::Result<Statistics> {
    let begun = Instant::now();
    let written = |said: &Statistics| said.number("granary", "bytes_written");
    let mut said = ask(watch)?;
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = ask(watch)?;
        if written(&now) == written(&said) || begun.elapsed() > SETTLE_MAX {
            return Ok(now);
        }
        said = now;
    }
}
