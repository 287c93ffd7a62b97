//! Blocks of a volume: what was flushed is there, and no block is older than its last flush.

use crate::history::History;
use crate::nbd::Client;
use crate::process::Process;
use fastrand::Rng;

pub const NAME: &str = "disk";
pub const SIZE: &str = "4MiB";
const BLOCKS: u64 = 1024;
const BLOCK: u64 = 4096;

/// What a block was from an operation on.
#[derive(Clone, Copy, Debug)]
struct Version {
    operation: usize,
    /// The operation that wrote it; `None`: it is zero.
    written: Option<usize>,
    /// It was durable when it was answered.
    is_durable: bool,
}

pub struct Blocks {
    versions: Vec<Vec<Version>>,
    /// Operations that made all before them durable.
    flushes: Vec<usize>,
}

/// A block that tells which it is and who wrote it.
fn stamped(block: u64, operation: usize) -> Vec<u8> {
    [block.to_le_bytes(), (operation as u64).to_le_bytes()].concat().repeat(BLOCK as usize / 16)
}

impl Blocks {
    pub fn new() -> Self {
        let zero = Version { operation: 0, written: None, is_durable: true };
        Self { versions: vec![vec![zero]; BLOCKS as usize], flushes: Vec::new() }
    }

    /// All of them are durable, as the server was stopped.
    pub fn stopped(&mut self, operation: usize) {
        self.flushes.push(operation);
    }

    pub fn change(&mut self, client: &mut Client, history: &mut History, random: &mut Rng) {
        let operation = history.len();
        let count = random.u64(1..=48);
        let first = random.u64(..=BLOCKS - count);
        let kind = random.u8(..10);
        let is_durable = kind == 8;
        match kind {
            0..3 => {
                history.note("a volume's FLUSH", || client.flush());
                self.flushes.push(operation);
                return;
            }
            9 => history.note("a volume's TRIM", || client.trim(first * BLOCK, (count * BLOCK) as usize)),
            _ => {
                let data: Vec<u8> =
                    (first..first + count).flat_map(|block| stamped(block, operation)).collect();
                let name = if is_durable { "a volume's write with FUA" } else { "a volume's write" };
                history.note(name, || client.write(first * BLOCK, &data, is_durable));
            }
        }
        for block in first..first + count {
            let written = (kind != 9).then_some(operation);
            self.versions[block as usize].push(Version { operation, written, is_durable });
        }
    }

    /// The server was started by the last operation, after a kill: what had not been flushed may be lost.
    pub fn restarted(&mut self, client: &mut Client, history: &History) {
        let operation = history.len() - 1;
        let content = content(client);
        for (block, found) in content.chunks(BLOCK as usize).enumerate() {
            let shown = self.shown(block, found, operation, operation);
            let versions = &mut self.versions[block];
            if versions.last().is_some_and(|newest| newest.written != shown) {
                versions.push(Version { operation, written: shown, is_durable: false });
            }
        }
    }

    /// Compares the volume with what `done` operations, and maybe the next one, have made of it.
    pub fn check(&self, process: &Process, done: usize) {
        let mut client = Client::new(process.nbd(), NAME);
        assert_eq!(client.size(), BLOCKS * BLOCK);
        for (block, found) in content(&mut client).chunks(BLOCK as usize).enumerate() {
            self.shown(block, found, done, done + 1);
        }
    }

    /// Which operation wrote what is found of a block, after `done` operations and maybe those up to another one.
    fn shown(&self, block: usize, found: &[u8], done: usize, begun: usize) -> Option<usize> {
        let versions = &self.versions[block];
        let flushed = self.flushes.iter().copied().filter(|flush| *flush < done).max().unwrap_or(0);
        let is_durable = |version: &Version| {
            version.operation <= flushed || version.is_durable && version.operation < done
        };
        let oldest = versions.iter().rposition(is_durable).expect("the first one");
        let newest = versions.partition_point(|version| version.operation < begun);
        let is = |version: &&Version| match version.written {
            None => found.iter().all(|byte| *byte == 0),
            Some(operation) => found == stamped(block as u64, operation),
        };
        let allowed = &versions[oldest..newest];
        let shown = allowed.iter().find(is);
        shown.unwrap_or_else(|| panic!("block {block}: {:?}, not of {allowed:?}", &found[..16])).written
    }
}

fn content(client: &mut Client) -> Vec<u8> {
    let mut content = vec![0; (BLOCKS * BLOCK) as usize];
    client.read(0, &mut content);
    content
}
