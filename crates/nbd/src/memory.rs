//! A disk in memory.

use crate::export::{Command, Export, ExtentState, Session, Tag};
use crate::protocol::Completions;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes that are allocated, and locked, together.
const CHUNK_BYTES: usize = 64 << 10;

type MemoryChunk = Option<Box<[u8]>>;

/// A disk in memory, which allocates chunks as they are written. A read beside a write sees each chunk of 64 KiB old or
/// new.
pub struct MemoryExport {
    name: String,
    size: u64,
    minimum_block: u32,
    read_only: bool,
    chunks: Vec<RwLock<MemoryChunk>>,
}

impl MemoryExport {
    /// An empty disk.
    pub fn new(name: impl Into<String>, size: u64) -> Self {
        let count = size.div_ceil(CHUNK_BYTES as u64);
        let chunks = (0..count).map(|_| RwLock::new(None)).collect();
        Self { name: name.into(), size, minimum_block: 1, read_only: false, chunks }
    }

    /// Sets the block size, in bytes, that requests must be aligned to.
    pub fn with_minimum_block(mut self, minimum_block: u32) -> Self {
        self.minimum_block = minimum_block;
        self
    }

    /// Makes the disk read-only for clients.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    fn locked(&self, index: usize) -> RwLockWriteGuard<'_, MemoryChunk> {
        // A chunk is valid even after a panic.
        self.chunks[index].write().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self, index: usize) -> RwLockReadGuard<'_, MemoryChunk> {
        self.chunks[index].read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts of a range: a chunk, the first byte in it, the number of bytes.
    fn parts(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let (mut at, end) = (offset, offset + len as u64);
        std::iter::from_fn(move || {
            let (index, within) = ((at / CHUNK_BYTES as u64) as usize, (at % CHUNK_BYTES as u64) as usize);
            let part = (CHUNK_BYTES - within).min((end - at) as usize);
            at += part as u64;
            (part > 0).then_some((index, within, part))
        })
    }

    fn write(&self, offset: u64, mut data: &[u8]) {
        for (index, within, part) in Self::parts(offset, data.len()) {
            let (bytes, rest) = data.split_at(part);
            let mut chunk = self.locked(index);
            let chunk = chunk.get_or_insert_with(|| vec![0; CHUNK_BYTES].into_boxed_slice());
            chunk[within..within + part].copy_from_slice(bytes);
            data = rest;
        }
    }

    fn zero(&self, offset: u64, len: u32, may_trim: bool) {
        for (index, within, part) in Self::parts(offset, len as usize) {
            let mut chunk = self.locked(index);
            if may_trim && part == CHUNK_BYTES {
                *chunk = None;
            } else if !may_trim {
                chunk.get_or_insert_with(|| vec![0; CHUNK_BYTES].into_boxed_slice())[within..within + part]
                    .fill(0);
            } else if let Some(chunk) = chunk.as_mut() {
                chunk[within..within + part].fill(0);
            }
        }
    }
}

impl Export for MemoryExport {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn minimum_block(&self) -> u32 {
        self.minimum_block
    }

    fn description(&self) -> Option<String> {
        Some(format!("{} bytes of memory", self.size))
    }

    fn session(self: Arc<Self>) -> io::Result<Box<dyn Session>> {
        Ok(Box::new(MemorySession(self)))
    }
}

/// A session that completes each command at once.
struct MemorySession(Arc<MemoryExport>);

impl Session for MemorySession {
    fn begin(&mut self, tag: Tag, command: Command<'_>, completions: &mut Completions) {
        let disk = &*self.0;
        match command {
            Command::Read { offset, len } => {
                let mut reply = completions.read(tag);
                for (index, within, part) in MemoryExport::parts(offset, len as usize) {
                    match &*disk.shared(index) {
                        Some(chunk) => reply.data(&chunk[within..within + part]),
                        None => reply.zeroes(part as u32),
                    }
                }
                reply.finish();
                return;
            }
            Command::BlockStatus { offset, len, .. } => {
                let mut reply = completions.extents(tag);
                for (index, _, part) in MemoryExport::parts(offset, len as usize) {
                    let state =
                        if disk.shared(index).is_some() { ExtentState::Data } else { ExtentState::Hole };
                    if !reply.push(part as u64, state) {
                        break;
                    }
                }
                reply.finish();
                return;
            }
            Command::Write { offset, data, .. } => disk.write(offset, data),
            Command::WriteZeroes { offset, len, may_trim, .. } => disk.zero(offset, len, may_trim),
            Command::Trim { offset, len, .. } => disk.zero(offset, len, true),
            Command::Flush | Command::Cache { .. } => {}
        }
        completions.finish(tag, Ok(()));
    }

    fn poll(&mut self, _: &mut Completions) {}

    fn event(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
