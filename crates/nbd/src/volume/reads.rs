//! Background reads of a connection.

use crate::export::Tag;
use crate::limits::{COMMANDS_IN_FLIGHT_MAX, FLIGHT_BYTES_MAX};
use crate::protocol::{Completions, Errno};
use granary_log::{Engine, Extent, Io, ReadQueue};
use granary_volume::{BlockCheck, DeviceBlock, Located, Volume};
use std::ops::Range;
use std::os::fd::BorrowedFd;

/// The READs in progress. They read the device in pieces: blocks that are neighbours in the volume and on the device.
pub(super) struct Reads {
    queue: ReadQueue,
    /// For blocks that have to be looked up again.
    io: Io,
    /// A buffer for one block.
    block: Vec<u8>,
    /// READs by tag.
    commands: Vec<Option<Read>>,
    /// Pieces by their reads' tickets; unused ones have no blocks.
    pieces: Vec<Piece>,
    free: Vec<usize>,
}

/// A READ in progress.
struct Read {
    first: u64,
    /// Its whole blocks if there are several; a single one is answered from the read buffer.
    blocks: Vec<u8>,
    /// The requested part of the blocks.
    part: Range<usize>,
    /// Pieces that were not read yet.
    left: usize,
    failed: Option<Errno>,
}

/// Blocks of a READ that are read at once.
#[derive(Default)]
struct Piece {
    tag: u32,
    /// (index in the READ, place) of each block.
    blocks: Vec<(usize, DeviceBlock)>,
}

impl Reads {
    /// Reads of a volume with blocks of `block_size` bytes.
    pub fn new(block_size: usize) -> Self {
        Self {
            queue: ReadQueue::new(Engine::Ring, FLIGHT_BYTES_MAX.max(block_size)),
            io: Io::new(),
            block: vec![0; block_size],
            commands: (0..COMMANDS_IN_FLIGHT_MAX).map(|_| None).collect(),
            pieces: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Readable after a piece was read; `None`: [`poll`](Self::poll) makes the reads.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.queue.event()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Begins a READ. Returns `true` if all of it was in RAM and it is completed.
    pub fn begin(
        &mut self,
        volume: &Volume,
        tag: Tag,
        offset: u64,
        len: usize,
        completions: &mut Completions,
    ) -> bool {
        let size = self.block.len();
        let (first, within) = (offset / size as u64, (offset % size as u64) as usize);
        let part = within..within + len;
        if part.end <= size {
            return self.begin_one(volume, tag, first, part, completions);
        }
        let mut blocks = vec![0; part.end.next_multiple_of(size)];
        let mut on_device = Vec::new();
        for (i, block) in blocks.chunks_exact_mut(size).enumerate() {
            if let Located::OnDevice(stored) = volume.find(first + i as u64, block) {
                on_device.push((i, stored));
            }
        }
        if on_device.is_empty() {
            completions.data(tag, &blocks[part]);
            return true;
        }
        let (runs, extents) = volume.runs(&on_device, FLIGHT_BYTES_MAX);
        self.commands[tag.0 as usize] = Some(Read { first, blocks, part, left: runs.len(), failed: None });
        for (run, extent) in runs.into_iter().zip(extents) {
            self.begin_piece(tag, &on_device[run], extent);
        }
        false
    }

    /// Like [`begin`](Self::begin), for a block or a part of it.
    fn begin_one(
        &mut self,
        volume: &Volume,
        tag: Tag,
        lba: u64,
        part: Range<usize>,
        completions: &mut Completions,
    ) -> bool {
        let Located::OnDevice(stored) = volume.find(lba, &mut self.block) else {
            completions.data(tag, &self.block[part]);
            return true;
        };
        self.commands[tag.0 as usize] =
            Some(Read { first: lba, blocks: Vec::new(), part, left: 1, failed: None });
        self.begin_piece(tag, &[(0, stored)], volume.extent(stored));
        false
    }

    fn begin_piece(&mut self, tag: Tag, blocks: &[(usize, DeviceBlock)], extent: Extent) {
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.pieces.push(Piece::default());
            self.pieces.len() - 1
        });
        let piece = &mut self.pieces[ticket];
        piece.tag = tag.0;
        piece.blocks.extend_from_slice(blocks);
        self.queue.begin(extent, ticket as u64);
    }

    /// Completes READs whose pieces were all read; `done` is called with each first.
    pub fn poll(&mut self, volume: &Volume, completions: &mut Completions, mut done: impl FnMut(Tag)) {
        let Self { queue, io, block, commands, pieces, free } = self;
        queue.poll(volume.device(), |ticket, bytes| {
            let piece = &mut pieces[ticket as usize];
            let tag = Tag(piece.tag);
            let command = &mut commands[tag.0 as usize];
            let read = command.as_mut().expect("a READ that has pieces under way is known");
            let (size, is_single) = (block.len(), read.blocks.is_empty());
            let whole = match &mut read.blocks[..] {
                [] => &mut block[..],
                blocks => blocks,
            };
            let mut in_place = None;
            for (j, (i, stored)) in piece.blocks.drain(..).enumerate() {
                let lba = read.first + i as u64;
                let bytes = bytes.as_ref().ok().map(|bytes| &bytes[j * size..(j + 1) * size]);
                match bytes.filter(|bytes| volume.check(lba, stored, bytes) == BlockCheck::Valid) {
                    Some(bytes) if is_single => in_place = Some(bytes),
                    Some(bytes) => whole[i * size..(i + 1) * size].copy_from_slice(bytes),
                    // The block was moved meanwhile, or is damaged: this read finds out.
                    None => {
                        let out = &mut whole[i * size..(i + 1) * size];
                        let again = volume.read_again(io, lba, out);
                        read.failed = again.err().map(|error| Errno::from(&error)).or(read.failed);
                    }
                }
            }
            free.push(ticket as usize);
            read.left -= 1;
            if read.left > 0 {
                return;
            }
            done(tag);
            match read.failed {
                None => completions.data(tag, &in_place.unwrap_or(whole)[read.part.clone()]),
                Some(errno) => completions.fail(tag, errno),
            }
            *command = None;
        });
    }
}
