//! A device that fails as devices do, repeatably: a decorator for tests.

use super::Device;
use crate::buffer::AlignedBuffer;
use crate::io::Engine;
use crate::sync::Mutex;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// One way of failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A write that reaches the device only in part, and says it worked.
    Torn,
    /// A write that never reaches the device, and says it worked.
    Lost,
    /// A write that goes one block further, and says it worked.
    Misdirected,
    /// A write that stops half way and says so, or a read by the descriptor that brings fewer bytes than asked for.
    Short,
    /// One bit flipped in what is read.
    FlippedBit,
    /// A read, write or sync refused with EIO.
    Eio,
    /// A write refused with ENOSPC.
    Enospc,
    /// A read, write or sync that takes a millisecond longer.
    Delay,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 8] = [
        Self::Torn,
        Self::Lost,
        Self::Misdirected,
        Self::Short,
        Self::FlippedBit,
        Self::Eio,
        Self::Enospc,
        Self::Delay,
    ];
}

/// The frequency of each fault, in operations of 65 536, and the moment of a loss of power.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Seed of the choices; the same seed and operations give the same faults.
    pub seed: u64,
    /// (fault, chances in 65 536 of each operation that can have it).
    pub chances: Vec<(Fault, u32)>,
    /// Everything after this many writes is dropped, silently: the crash.
    pub crash_after_writes: Option<u64>,
}

struct FaultState {
    faults: Faults,
    random: u64,
    writes: u64,
    struck: u64,
    /// Faults of reads, by engine.
    struck_reads: [u64; 3],
    syncs_failed: u64,
}

impl FaultState {
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn draw(&mut self, possible: &[Fault]) -> Option<Fault> {
        for i in 0..self.faults.chances.len() {
            let (fault, chance) = self.faults.chances[i];
            if possible.contains(&fault) && self.random() % 65_536 < u64::from(chance) {
                self.struck += 1;
                return Some(fault);
            }
        }
        None
    }

    fn draw_for_read(&mut self, engine: Engine, possible: &[Fault]) -> Option<Fault> {
        let fault = self.draw(possible);
        self.struck_reads[engine as usize] += u64::from(fault.is_some());
        fault
    }
}

/// Passes everything on to `inner`, except for the faults, which strike reads by the descriptor, too.
pub struct FaultyDevice<D> {
    inner: D,
    block_size: usize,
    state: Mutex<FaultState>,
}

impl<D: Device> FaultyDevice<D> {
    /// `block_size`: the unit of torn and misdirected writes, bytes.
    pub fn new(inner: D, block_size: usize, faults: Faults) -> Self {
        let state = FaultState {
            random: faults.seed,
            faults,
            writes: 0,
            struck: 0,
            struck_reads: [0; 3],
            syncs_failed: 0,
        };
        Self { inner, block_size, state: Mutex::new(state) }
    }

    /// Replaces the faults; the count of writes goes on.
    pub fn set_faults(&self, faults: Faults) {
        let mut state = self.state.lock().expect("no panic under the lock");
        state.random = faults.seed;
        state.faults = faults;
    }

    /// Writes so far, including those dropped after the crash.
    pub fn writes(&self) -> u64 {
        self.state.lock().expect("no panic under the lock").writes
    }

    /// Faults that struck so far.
    pub fn struck(&self) -> u64 {
        self.state.lock().expect("no panic under the lock").struck
    }

    /// Faults that struck reads through an engine so far.
    pub fn struck_reads(&self, engine: Engine) -> u64 {
        self.state.lock().expect("no panic under the lock").struck_reads[engine as usize]
    }

    /// Syncs that failed so far.
    pub fn syncs_failed(&self) -> u64 {
        self.state.lock().expect("no panic under the lock").syncs_failed
    }

    fn eio() -> io::Error {
        io::Error::from_raw_os_error(5)
    }
}

impl<D: Device> Device for FaultyDevice<D> {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let (fault, at) = {
            let mut state = self.state.lock().expect("no panic under the lock");
            let possible = [Fault::Eio, Fault::FlippedBit, Fault::Delay];
            (state.draw_for_read(Engine::Plain, &possible), state.random() as usize)
        };
        match fault {
            Some(Fault::Eio) => return Err(Self::eio()),
            Some(Fault::Delay) => crate::sync::thread::sleep(Duration::from_millis(1)),
            _ => {}
        }
        self.inner.read_at(offset, bytes)?;
        if fault == Some(Fault::FlippedBit) {
            let len = bytes.len();
            bytes[at / 8 % len] ^= 1 << (at % 8);
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        // Aligned, as the device below may require.
        let len: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let mut bytes = AlignedBuffer::zeroed(len.max(1));
        let mut rest = &mut bytes[..];
        for buffer in buffers {
            let (now, later) = rest.split_at_mut(buffer.len());
            now.copy_from_slice(buffer);
            rest = later;
        }
        let bytes = &bytes[..len];
        let (fault, at) = {
            let mut state = self.state.lock().expect("no panic under the lock");
            state.writes += 1;
            if state.faults.crash_after_writes.is_some_and(|n| state.writes > n) {
                return Ok(());
            }
            let possible = [
                Fault::Torn,
                Fault::Lost,
                Fault::Misdirected,
                Fault::Short,
                Fault::Eio,
                Fault::Enospc,
                Fault::Delay,
            ];
            (state.draw(&possible), state.random() as usize)
        };
        let blocks = bytes.len() / self.block_size;
        let part = &bytes[..at % (blocks + 1) * self.block_size];
        match fault {
            None => self.inner.write_at(offset, &[bytes]),
            Some(Fault::Torn) => self.inner.write_at(offset, &[part]),
            Some(Fault::Short) => {
                self.inner.write_at(offset, &[part])?;
                Err(io::Error::new(io::ErrorKind::WriteZero, "short write"))
            }
            Some(Fault::Misdirected) => {
                let further = offset + self.block_size as u64;
                let room = (self.size() - further.min(self.size())) as usize;
                self.inner.write_at(further.min(self.size()), &[&bytes[..bytes.len().min(room)]])
            }
            Some(Fault::Delay) => {
                crate::sync::thread::sleep(Duration::from_millis(1));
                self.inner.write_at(offset, &[bytes])
            }
            Some(Fault::Enospc) => Err(io::Error::from_raw_os_error(28)),
            Some(Fault::Eio) => Err(Self::eio()),
            Some(Fault::Lost | Fault::FlippedBit) => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let fault = {
            let mut state = self.state.lock().expect("no panic under the lock");
            let fault = state.draw(&[Fault::Eio, Fault::Delay]);
            state.syncs_failed += u64::from(fault == Some(Fault::Eio));
            fault
        };
        match fault {
            Some(Fault::Eio) => return Err(Self::eio()),
            Some(_) => crate::sync::thread::sleep(Duration::from_millis(1)),
            None => {}
        }
        self.inner.sync()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }

    fn complete_read(
        &self,
        engine: Engine,
        offset: u64,
        bytes: &mut [u8],
        answer: io::Result<usize>,
    ) -> io::Result<usize> {
        let read = self.inner.complete_read(engine, offset, bytes, answer)?;
        let (fault, at) = {
            let mut state = self.state.lock().expect("no panic under the lock");
            let possible = [Fault::Eio, Fault::Short, Fault::FlippedBit, Fault::Delay];
            (state.draw_for_read(engine, &possible), state.random() as usize)
        };
        match fault {
            Some(Fault::Eio) => return Err(Self::eio()),
            Some(Fault::Delay) => crate::sync::thread::sleep(Duration::from_millis(1)),
            Some(Fault::Short) => {
                let short = at % (read / self.block_size).max(1) * self.block_size;
                // Bytes beyond the short read must not be there by chance.
                bytes[short..].iter_mut().for_each(|byte| *byte = !*byte);
                return Ok(short);
            }
            Some(_) if read > 0 => bytes[at / 8 % read] ^= 1 << (at % 8),
            _ => {}
        }
        Ok(read)
    }
}

impl<D: Device + ?Sized> Device for std::sync::Arc<D> {
    fn size(&self) -> u64 {
        (**self).size()
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, bytes)
    }
    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        (**self).write_at(offset, buffers)
    }
    fn sync(&self) -> io::Result<()> {
        (**self).sync()
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }
    fn complete_read(
        &self,
        engine: Engine,
        offset: u64,
        bytes: &mut [u8],
        answer: io::Result<usize>,
    ) -> io::Result<usize> {
        (**self).complete_read(engine, offset, bytes, answer)
    }
}
