//! A small user of the log: numbered keys with versions, indexed in a map.

#![allow(dead_code, reason = "each test uses its part")]

#[path = "../../../log/tests/common/golden.rs"]
pub mod golden;
#[path = "../../../log/tests/common/options.rs"]
pub mod options;
#[path = "../../../log/tests/common/random.rs"]
pub mod random;

use granary_cache::framing::block::{self, payload_size};
use granary_cache::framing::{self, Log, Placed, Records, SharingRule, Summary, has_summary, records_in};
use granary_log::device::Device;
use granary_log::{Consumer, Extent, Geometry, Io, Location, OnWriteError, Options, Recovered};
pub use options::options;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A record: its length (u16), summary entry (u48), version (u64), and bytes that follow from these.
const HEADER: usize = 16;

/// A key's summary entry; the lowest bit marks a deletion.
pub fn summary_entry(key: u64, deletes: bool) -> u64 {
    key << 1 | u64::from(deletes)
}

pub fn record(summary_entry: u64, version: u64, len: usize) -> Vec<u8> {
    let len = len.max(HEADER);
    let mut bytes = (len as u16).to_le_bytes().to_vec();
    bytes.extend_from_slice(&summary_entry.to_le_bytes()[..6]);
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend((HEADER..len).map(|i| filler(summary_entry, version, i)));
    bytes
}

fn filler(summary_entry: u64, version: u64, i: usize) -> u8 {
    (summary_entry ^ version.rotate_left(7) ^ i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes()[7]
}

fn u64_at(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut number = [0; 8];
    number[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(number)
}

/// (summary entry, version, length) of the records that begin in a payload.
fn records(payload: &[u8], count: u16) -> Vec<(u64, u64, usize, usize)> {
    let mut at = 0;
    let mut found = Vec::new();
    for _ in 0..count {
        if at + HEADER > payload.len() {
            break;
        }
        let len = u64_at(payload, at, 2) as usize;
        found.push((u64_at(payload, at + 2, 6), u64_at(payload, at + 8, 8), at, len));
        at += len.max(HEADER);
    }
    found
}

pub fn summary_entries_of(_salt: u64, payload: &[u8], count: u16, summary_entries: &mut Vec<u64>) {
    summary_entries.extend(records(payload, count).iter().map(|record| record.0));
}

/// Records that may share blocks as they please.
pub fn framing() -> Records {
    Records {
        summary_entries_of,
        sharing_rule: SharingRule { ignored_bits: 0 },
        is_dram_first: false,
        entries_to_recover: Arc::new(u64::MAX.into()),
    }
}

#[derive(Default)]
pub struct Index {
    blocks_of_keys: Mutex<HashMap<u64, u64>>,
}

impl Index {
    fn unpublish(&self, summary: &Summary) {
        let mut blocks_of_keys = self.blocks_of_keys.lock().unwrap();
        for (block, summary_entry) in summary.iter() {
            if blocks_of_keys.get(&(summary_entry >> 1)) == Some(&block) {
                blocks_of_keys.remove(&(summary_entry >> 1));
            }
        }
    }
}

impl Consumer<Records> for Index {
    fn reclaim(&self, segment: &Summary) {
        self.unpublish(segment);
    }
    fn reclaim_unread(&self, blocks: Range<u64>) {
        self.blocks_of_keys.lock().unwrap().retain(|_, block| !blocks.contains(block));
    }
    fn on_write_error(&self, segment: &Summary, _: &std::io::Error) -> OnWriteError {
        self.unpublish(segment);
        OnWriteError::Drop
    }
}

/// A log with its flusher and index.
pub struct Store {
    pub log: Arc<Log>,
    pub index: Arc<Index>,
    flusher: JoinHandle<()>,
}

impl Store {
    /// Opens the log and indexes the recovered records, oldest first, as in docs/format.md.
    pub fn open(device: Option<Box<dyn Device>>, options: &Options) -> Self {
        let opened = match device {
            Some(device) => Log::open_on(framing(), device, options),
            None => Log::open(framing(), options),
        };
        let (log, recovered) = opened.unwrap();
        let (log, index) = (Arc::new(log), Arc::new(Index::default()));
        take_in(&recovered, &mut index.blocks_of_keys.lock().unwrap());
        let (served, consumer) = (Arc::clone(&log), Arc::clone(&index));
        log.reclaim_ahead(&*index);
        let flusher = std::thread::spawn(move || served.run_flusher(&*consumer));
        let this = Self { log, index, flusher };
        // Lost changes must stay lost after another start.
        let lost: Vec<u64> = recovered.lost.into_values().flatten().collect();
        let mut keys: Vec<u64> = lost.iter().map(|summary_entry| summary_entry >> 1).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            assert!(this.append(key, true, 0, HEADER), "there is room for what was lost");
        }
        this
    }

    /// Appends a version of a key, or its deletion; `false`: the log has no room, nothing changed.
    pub fn append(&self, key: u64, deletes: bool, version: u64, len: usize) -> bool {
        let summary_entry = summary_entry(key, deletes);
        let record = record(summary_entry, version, len);
        for _ in 0..1_000 {
            {
                let mut writer = self.log.writer();
                if let Some(placed) =
                    framing::append(&mut writer, summary_entry, &[&record[..3], &record[3..]])
                {
                    writer.journal(placed.sequence, &[summary_entry]);
                    let mut blocks_of_keys = self.index.blocks_of_keys.lock().unwrap();
                    if deletes || !self.log.may_index(placed.sequence) {
                        blocks_of_keys.remove(&key);
                    } else {
                        blocks_of_keys.insert(key, placed.block);
                    }
                    return true;
                }
            }
            let _ = self.log.flush();
            std::thread::yield_now();
        }
        false
    }

    /// The version of a key that can be reached.
    pub fn get(&self, io: &mut Io, key: u64) -> Option<u64> {
        let block = *self.index.blocks_of_keys.lock().unwrap().get(&key)?;
        let geometry = *self.log.geometry();
        let size = geometry.block_size();
        let mut wanted = 1;
        loop {
            let mut payloads = Vec::new();
            let count = match self.log.locate(block) {
                Location::WriteBuffer(segment) => {
                    let reader = segment.read();
                    let (count, bytes) = records_in(&reader, block)?;
                    bytes.chunks_exact(size).take(wanted).for_each(|b| payloads.extend(block::payload(b)));
                    count
                }
                Location::Device { sequence } => {
                    let extents: Vec<Extent> = (block..block + wanted as u64)
                        .map(|block| Extent { offset: geometry.offset(block), len: size })
                        .collect();
                    let mut blocks = vec![Vec::new(); wanted];
                    io.read_many(self.log.device(), &extents, |i, result| {
                        blocks[i] = result.map(<[u8]>::to_vec).unwrap_or_default();
                    });
                    let mut count = None;
                    for (bytes, number) in blocks.iter().zip(block..) {
                        if bytes.is_empty() {
                            return None;
                        }
                        let header = block::check(bytes, self.log.instance(), number)?;
                        if header.sequence != sequence {
                            return None;
                        }
                        count.get_or_insert(header.count);
                        payloads.extend(block::payload(bytes));
                    }
                    count?
                }
            };
            let found = records(&payloads, count).into_iter().rfind(|found| found.0 >> 1 == key)?;
            let (summary_entry, version, at, len) = found;
            if at + len > payloads.len() {
                wanted = len.div_ceil(payload_size(&geometry));
                continue;
            }
            assert_eq!(summary_entry & 1, 0, "a deletion is in the index");
            let filled = &payloads[at + HEADER..at + len];
            let right =
                filled.iter().zip(HEADER..).all(|(byte, i)| *byte == filler(summary_entry, version, i));
            assert!(right, "key {key} is torn");
            return Some(version);
        }
    }

    /// The segment that a key lies in.
    pub fn sequence(&self, key: u64) -> Option<u64> {
        let block = *self.index.blocks_of_keys.lock().unwrap().get(&key)?;
        Some(self.log.sequence_of(block))
    }

    /// A clean stop.
    pub fn stop(self) {
        self.try_stop().unwrap();
    }

    /// A clean stop, or, if the device fails, a kill.
    pub fn try_stop(self) -> std::io::Result<()> {
        let stopped = self.log.stop();
        self.flusher.join().unwrap();
        stopped
    }

    /// As a kill.
    pub fn abandon(self) {
        self.log.abandon();
        self.flusher.join().unwrap();
    }
}

/// Replays segments and losses in order.
pub fn take_in(recovered: &Recovered<Records>, blocks_of_keys: &mut HashMap<u64, u64>) {
    let mut lost = recovered.lost.iter().peekable();
    for segment in recovered.segments.iter().map(Some).chain([None]) {
        let until = segment.map_or(u64::MAX, |segment| segment.sequence);
        while let Some((_, summary_entries)) = lost.next_if(|(sequence, _)| **sequence < until) {
            blocks_of_keys
                .retain(|key, _| !summary_entries.iter().any(|summary_entry| summary_entry >> 1 == *key));
        }
        for (block, summary_entry) in segment.iter().flat_map(|segment| segment.iter()) {
            if summary_entry & 1 == 0 {
                blocks_of_keys.insert(summary_entry >> 1, block);
            } else {
                blocks_of_keys.remove(&(summary_entry >> 1));
            }
        }
    }
}

/// Sequence numbers of complete segments on the device, found by reading every block.
pub fn intact(device: &dyn Device, geometry: &Geometry, instance: u64) -> Vec<u64> {
    let size = geometry.block_size();
    let mut found = Vec::new();
    let mut bytes = granary_log::AlignedBuffer::zeroed(geometry.segment_bytes() as usize);
    for slot in 0..geometry.segments() {
        device.read_at(slot * geometry.segment_bytes(), &mut bytes).unwrap();
        let first = slot * u64::from(geometry.blocks_per_segment());
        let headers: Vec<Option<block::BlockHeader>> =
            bytes.chunks_exact(size).zip(first..).map(|(b, n)| block::check(b, instance, n)).collect();
        let Some(last) = headers[headers.len() - 1] else { continue };
        let mut whole: Vec<usize> = (0..headers.len()).collect();
        if has_summary(geometry) {
            let trailer = &bytes[bytes.len() - 16..];
            if trailer[..8] != *b"GRANSUM1" {
                continue;
            }
            let (data, summary_entries) = (u64_at(trailer, 8, 4) as usize, u64_at(trailer, 12, 4) as usize);
            let summary = (2 * data + 6 * summary_entries + 16).div_ceil(payload_size(geometry));
            whole = (0..data).chain(headers.len() - summary..headers.len()).collect();
        }
        let right = |i: &usize| headers[*i].is_some_and(|header| header.sequence == last.sequence);
        if geometry.slot(last.sequence) == slot && whole.iter().all(right) {
            found.push(last.sequence);
        }
    }
    found.sort_unstable();
    found
}

/// Appends to a log by hand.
pub fn append(log: &Log, summary_entry: u64, version: u64, len: usize) -> Placed {
    let mut writer = log.writer();
    let placed =
        framing::append(&mut writer, summary_entry, &[&record(summary_entry, version, len)]).unwrap();
    writer.journal(placed.sequence, &[summary_entry]);
    placed
}
