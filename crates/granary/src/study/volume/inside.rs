//! Random reads and writes of a volume on the device within this process: like fio on a file, without a server.

use std::path::Path;
use std::time::{Duration, Instant};

use fastrand::Rng;
use granary_lab::FioFigures;
use granary_volume::{BlockCheck, Config, DeviceBlock, Engine, Io, Located, ReadQueue, Volume};

use super::contender::BLOCK;
use crate::failure::{Failure, Result, at};

/// A volume whose first `used` bytes are written.
pub struct Inside {
    volume: Volume,
    used: u64,
}

/// A read under way.
struct Pending {
    block: u64,
    stored: DeviceBlock,
    began: Instant,
}

impl Inside {
    /// A volume of `size` bytes in `folder`, whose first `used` bytes are written.
    pub fn new(folder: &Path, size: u64, used: u64) -> Result<Self> {
        Volume::create(folder, "inside", &Config::new(size))?;
        let volume = Volume::open(folder, "inside", &mut |_, _| {})?;
        let (mut io, piece) = (Io::new(), vec![1; 1 << 20]);
        for offset in (0..used).step_by(piece.len()) {
            volume.write(&mut io, offset, &piece).map_err(at(folder))?;
        }
        volume.commit().map_err(at(folder))?;
        Ok(Self { volume, used })
    }

    /// Reads at random for `seconds`, `depth` blocks at a time. Each is compared with its checksum.
    pub fn read(&self, depth: usize, seconds: f64) -> Result<FioFigures> {
        let volume = &self.volume;
        let (mut random, mut io, mut block) = (Rng::with_seed(5), Io::new(), vec![0; BLOCK]);
        let mut queue = ReadQueue::new(Engine::Ring, BLOCK);
        let mut pending: Vec<Option<Pending>> = (0..depth).map(|_| None).collect();
        let mut times = Vec::new();
        let began = Instant::now();
        let end = began + Duration::from_secs_f64(seconds);
        let failed = |error| Failure::File("a volume in process".to_owned(), error);
        let mut next = |block: &mut [u8], times: &mut Vec<Duration>| loop {
            let (lba, began) = (random.u64(..self.used / BLOCK as u64), Instant::now());
            match volume.find(lba, block) {
                Located::Copied => times.push(began.elapsed()),
                Located::OnDevice(stored) => break Pending { block: lba, stored, began },
            }
        };
        for (read, number) in pending.iter_mut().zip(0..) {
            let read = read.insert(next(&mut block, &mut times));
            queue.begin(volume.extent(read.stored), number);
        }
        while Instant::now() < end {
            let mut result = Ok(());
            queue.poll_next(volume.device(), |number, bytes| {
                let read = pending[number as usize].take().expect("a read that is under way is known");
                let right = bytes.is_ok_and(|bytes| {
                    block.copy_from_slice(bytes);
                    volume.check(read.block, read.stored, bytes) == BlockCheck::Valid
                });
                if !right && result.is_ok() {
                    // It was moved meanwhile.
                    result = volume.read(&mut io, read.block * BLOCK as u64, &mut block);
                }
                times.push(read.began.elapsed());
                let read = pending[number as usize].insert(next(&mut block, &mut times));
                Some((volume.extent(read.stored), number))
            });
            result.map_err(failed)?;
            queue.wait();
        }
        Ok(figures(times, began.elapsed()))
    }

    /// Writes at random for `seconds`, and syncs at the end, which counts.
    pub fn write(&self, seconds: f64) -> Result<FioFigures> {
        let (mut random, mut io, block) = (Rng::with_seed(6), Io::new(), [2; BLOCK]);
        let mut times = Vec::new();
        let began = Instant::now();
        let mut now = began;
        while (now - began).as_secs_f64() < seconds {
            let lba = random.u64(..self.used / BLOCK as u64);
            let written = self.volume.write(&mut io, lba * BLOCK as u64, &block);
            written.map_err(|error| Failure::File("a volume in process".to_owned(), error))?;
            let after = Instant::now();
            times.push(after - now);
            now = after;
        }
        let committed = self.volume.commit();
        committed.map_err(|error| Failure::File("a volume in process".to_owned(), error))?;
        Ok(figures(times, began.elapsed()))
    }
}

fn figures(mut times: Vec<Duration>, took: Duration) -> FioFigures {
    times.sort_unstable();
    let count = times.len().max(1) as f64;
    let microseconds = |time: &Duration| time.as_secs_f64() * 1e6;
    FioFigures {
        iops: times.len() as f64 / took.as_secs_f64(),
        operations: times.len() as f64,
        latency_us_mean: times.iter().map(microseconds).sum::<f64>() / count,
        latency_us_p99: times.get(times.len() * 99 / 100).map_or(f64::NAN, microseconds),
    }
}
