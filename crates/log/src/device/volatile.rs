//! A device in RAM with a write cache, to simulate power losses: each unsynced unit may be kept or lost independently.

use super::Device;
use crate::sync::Mutex;
use std::io;

/// A device that can lose unsynced writes on command.
pub struct VolatileDevice {
    content: Mutex<DeviceContent>,
    /// The bytes of a unit: a power loss keeps or loses each unit as a whole.
    unit: usize,
}

struct DeviceContent {
    /// The content that reads return.
    newest: Vec<u8>,
    /// The content at the last sync, which every power loss leaves.
    synced: Vec<u8>,
    /// The operations since that sync.
    recent: Vec<Operation>,
    /// Whether syncs are recorded in `recent` and leave `synced` as it is.
    records: bool,
    /// Writes of units, and syncs, so far.
    operations: u64,
    /// Writes and syncs fail from this one on.
    fails_from: Option<u64>,
    /// The next sync fails, and keeps these units.
    failing_sync: Option<u64>,
}

enum Operation {
    Write(usize, Vec<u8>),
    Sync,
}

impl VolatileDevice {
    /// `size` zero bytes. Writes are kept or lost in units of `unit` bytes.
    pub fn new(size: u64, unit: usize) -> Self {
        Self::of(vec![0; size as usize], unit)
    }

    fn of(bytes: Vec<u8>, unit: usize) -> Self {
        let content = DeviceContent {
            newest: bytes.clone(),
            synced: bytes,
            recent: Vec::new(),
            records: false,
            operations: 0,
            fails_from: None,
            failing_sync: None,
        };
        Self { content: Mutex::new(content), unit }
    }

    /// Remembers all operations from here on, for [`after_power_cut_at`](Self::after_power_cut_at).
    pub fn record(&self) {
        self.lock().records = true;
    }

    /// The number of operations that are remembered: writes of units since the last sync, or everything since
    /// [`record`](Self::record).
    pub fn recent(&self) -> usize {
        self.lock().recent.len()
    }

    /// Writes of units, and syncs, so far.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Makes all writes and syncs fail from a number on, or none.
    pub fn fail_from(&self, operation: Option<u64>) {
        self.lock().fails_from = operation;
    }

    /// Makes the next sync fail and, as the kernel does, give up all but some unsynced units: reads still show them, a
    /// loss of power loses them, and no later sync reports it. Unsynced unit `i` is kept if bit `i % 64` of `kept` is
    /// set.
    pub fn fail_next_sync(&self, kept: u64) {
        self.lock().failing_sync = Some(kept);
    }

    /// A device with the content that a power loss now would leave: see
    /// [`after_power_cut_at`](Self::after_power_cut_at).
    pub fn after_power_cut(&self, keeps: impl FnMut(usize) -> bool) -> Self {
        self.after_power_cut_at(usize::MAX, keeps)
    }

    /// The number of unsynced units after the first `recent` remembered operations.
    pub fn unsynced_at(&self, recent: usize) -> usize {
        let content = self.lock();
        let until = recent.min(content.recent.len());
        let since = content.recent[..until].iter().rev();
        since.take_while(|operation| matches!(operation, Operation::Write(..))).count()
    }

    /// A device with the content that a power loss leaves after the first `recent` remembered operations: what was
    /// synced, and the unsynced units that `keeps` selects, numbered in the order of writing.
    pub fn after_power_cut_at(&self, recent: usize, mut keeps: impl FnMut(usize) -> bool) -> Self {
        let content = self.lock();
        let mut left = content.synced.clone();
        let until = recent.min(content.recent.len());
        let synced =
            content.recent[..until].iter().rposition(|operation| matches!(operation, Operation::Sync));
        let certain = synced.map_or(0, |sync| sync + 1);
        for (i, operation) in content.recent[..until].iter().enumerate() {
            if let Operation::Write(offset, bytes) = operation
                && (i < certain || keeps(i - certain))
            {
                left[*offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        }
        Self::of(left, self.unit)
    }

    fn lock(&self) -> crate::sync::MutexGuard<'_, DeviceContent> {
        self.content.lock().expect("no panic under the lock")
    }
}

impl DeviceContent {
    fn begin(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.fails_from.is_some_and(|from| self.operations > from) {
            return Err(rustix::io::Errno::IO.into());
        }
        Ok(())
    }
}

impl Device for VolatileDevice {
    fn size(&self) -> u64 {
        self.lock().newest.len() as u64
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let (content, start) = (self.lock(), offset as usize);
        let found = content.newest.get(start..start + bytes.len());
        bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        let mut content = self.lock();
        content.begin()?;
        let mut start = offset as usize;
        for unit in buffers.iter().flat_map(|buffer| buffer.chunks(self.unit)) {
            let room = content.newest.get_mut(start..start + unit.len());
            room.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(unit);
            content.recent.push(Operation::Write(start, unit.to_vec()));
            start += unit.len();
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut content = self.lock();
        content.begin()?;
        if let Some(kept) = content.failing_sync.take() {
            assert!(!content.records, "what is remembered is what was written");
            let mut units = 0..;
            content.recent.retain(|_| units.next().is_some_and(|unit: u32| kept >> (unit % 64) & 1 == 1));
            return Err(rustix::io::Errno::IO.into());
        }
        if content.records {
            content.recent.push(Operation::Sync);
            return Ok(());
        }
        for operation in std::mem::take(&mut content.recent) {
            if let Operation::Write(offset, bytes) = operation {
                content.synced[offset..offset + bytes.len()].copy_from_slice(&bytes);
            }
        }
        Ok(())
    }
}
