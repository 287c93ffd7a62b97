//! The load on a contender in process: threads that do one turn of requests after the other.

use std::io;
use std::time::{Duration, Instant};

use fastrand::Rng;
use granary_volume::Io;

use super::contender::{BLOCK, BlockRequest, VolumeContender};

/// A load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of a request.
    pub bytes: usize,
    /// Percent of requests that are reads.
    pub reads_percent: u32,
    /// Threads.
    pub jobs: usize,
    /// Requests per turn.
    pub depth: usize,
    /// Whether requests are sequential rather than random.
    pub is_sequential: bool,
}

/// Results of a load.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Requests a second.
    pub iops: f64,
    /// Mean time of a turn, in microseconds.
    pub mean_us: f64,
    /// 99th percentile of the time of a turn, in microseconds.
    pub p99_us: f64,
}

impl Load {
    /// Runs the load on a contender, over its first `used` bytes.
    pub fn run(&self, contender: &VolumeContender, used: u64, time: Duration) -> io::Result<Figures> {
        let began = Instant::now();
        let turns: io::Result<Vec<Vec<u32>>> = std::thread::scope(|scope| {
            let job = |seed: u64| scope.spawn(move || self.job(contender, used, began + time, seed));
            let jobs: Vec<_> = (0..self.jobs as u64).map(job).collect();
            jobs.into_iter().map(|job| job.join().expect("a job does not panic")).collect()
        });
        let seconds = began.elapsed().as_secs_f64();
        let mut turns = turns?.concat();
        turns.sort_unstable();
        let mean = turns.iter().map(|nanoseconds| f64::from(*nanoseconds)).sum::<f64>() / turns.len() as f64;
        let p99 = turns.get(turns.len() * 99 / 100).copied().unwrap_or(0);
        Ok(Figures {
            iops: (turns.len() * self.depth) as f64 / seconds,
            mean_us: mean / 1e3,
            p99_us: f64::from(p99) / 1e3,
        })
    }

    /// Runs one thread's turns until `end`; returns the nanoseconds of each.
    fn job(&self, contender: &VolumeContender, used: u64, end: Instant, seed: u64) -> io::Result<Vec<u32>> {
        let mut random = Rng::with_seed(seed);
        let mut io = Io::new();
        let blocks_each = (self.bytes / BLOCK) as u64;
        let places = used / self.bytes as u64;
        let mut next = random.u64(..places);
        let mut buffer = vec![0; self.bytes * self.depth];
        let mut requests = Vec::with_capacity(self.depth);
        let mut turns = Vec::new();
        let mut before = Instant::now();
        while before < end {
            requests.clear();
            for _ in 0..self.depth {
                next = if self.is_sequential { (next + 1) % places } else { random.u64(..places) };
                let is_read = random.u64(..100) < u64::from(self.reads_percent);
                requests.push(BlockRequest { block: next * blocks_each, is_read });
            }
            contender.turn(&mut io, &requests, self.bytes, &mut buffer)?;
            let now = Instant::now();
            turns.push(u32::try_from((now - before).as_nanos()).unwrap_or(u32::MAX));
            before = now;
        }
        Ok(turns)
    }
}
