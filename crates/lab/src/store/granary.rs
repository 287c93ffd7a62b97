//! Granary's measurements: reads a store one key at a time, as the peers do, or several at once.

use super::device::DeviceReads;
use super::error::StoreError;
use super::load::{BATCH, COMPRESSIBLE, FOUND_IN_THOUSAND, load, options};
use super::measurement::{Contents, Latencies, Measured, Phase, Reading, StoreRequest, WarmUp, Window};
use super::workload::{Keys, PHASES, key_of, pass, value_of};
use granary_cache::{Cache, Io, Key, MemoryDivision, Outcome, Scan};
use std::time::{Duration, Instant};

/// A scan compares one of this many entries with the value that was put.
const CHECKED_ONE_IN: u64 = 256;

/// Added to the measurement's seed for the warm-up's.
const WARM_UP_SEEDS_APART: u64 = 1000;

/// Carries out a request, and returns the line to print.
///
/// # Errors
/// The cache cannot be opened, or a value is wrong.
pub fn serve(request: &str) -> Result<String, StoreError> {
    let request: StoreRequest = serde_json::from_str(request)?;
    Ok(match &request.reading {
        None => serde_json::to_string(&load(&request.contents)?)?,
        Some(reading) => serde_json::to_string(&read(&request.contents, reading)?)?,
    })
}

/// The number after a name in a file of `/proc/self`; 0: the system does not report it.
fn of_process(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn read(contents: &Contents, reading: &Reading) -> Result<Measured, StoreError> {
    let division = match reading.blocks_percent {
        None => MemoryDivision::Measured,
        Some(blocks_percent) => MemoryDivision::Fixed { blocks_percent },
    };
    let options = options(contents, reading.cache_bytes, division);
    let file = contents.folder.join("granary.bin");
    let cache = Cache::open(options)?;
    // A file system answers reads of blocks never written without the device.
    let device = DeviceReads::open(&file, cache.stats().flash_bytes_used(), contents.block_bytes)
        .map_err(|why| StoreError::Process(file.display().to_string(), why.to_string()))?;
    let mut run = GranaryRun { cache: &cache, contents, reading, io: Io::new(), device };
    let names = if reading.workload == "phases" { PHASES.to_vec() } else { vec![&reading.workload[..]] };
    run.warm_up(names[0])?;
    let (mut phases, mut block_bytes) = (Vec::new(), Vec::new());
    for name in names {
        phases.push(if name == "readseq" { run.scan()? } else { run.phase(name)? });
        block_bytes.push(cache.stats().block_bytes);
    }
    let device_us = run.device.mean_us();
    Ok(Measured { phases, memory_bytes: of_process("status", "VmHWM:") << 10, device_us, block_bytes })
}

/// The outcome of looking up a key.
#[derive(Clone, Default)]
struct Found {
    is_hit: bool,
    value: Vec<u8>,
}

struct GranaryRun<'a> {
    cache: &'a Cache,
    contents: &'a Contents,
    reading: &'a Reading,
    io: Io,
    device: DeviceReads,
}

impl GranaryRun<'_> {
    fn keys(&self, name: &str, seed: u64) -> Result<Keys, StoreError> {
        let keys = Keys::new(name, self.contents.keys, seed);
        keys.filter(|_| name != "seekrandom").ok_or_else(|| StoreError::Wrong(format!("no workload {name}")))
    }

    /// Bytes that the process read from the device, except the separate single reads.
    fn bytes_read(&self) -> u64 {
        of_process("io", "read_bytes:").saturating_sub(self.device.bytes())
    }

    fn warm_up(&mut self, name: &str) -> Result<(), StoreError> {
        let Reading { seed, operations, warm_up, .. } = *self.reading;
        match warm_up {
            WarmUp::Cold => {}
            WarmUp::Operations(count) => {
                let keys = self.keys(name, seed + WARM_UP_SEEDS_APART)?;
                self.read_many(keys.take(count as usize));
            }
            WarmUp::Pass => self.read_many(pass(name, self.contents.keys)),
            WarmUp::Rehearsal => {
                let keys = self.keys(name, seed)?;
                self.read_many(keys.take(operations as usize));
            }
        }
        Ok(())
    }

    fn read_many(&mut self, mut numbers: impl Iterator<Item = u64>) {
        loop {
            let bytes: Vec<[u8; 16]> = numbers.by_ref().take(BATCH as usize).map(key_of).collect();
            if bytes.is_empty() {
                return;
            }
            let batch: Vec<Key<'_>> = bytes.iter().map(|key| self.cache.key(key)).collect();
            self.cache.get_many(&mut self.io, &batch, 1, |_, _| {});
        }
    }

    fn phase(&mut self, name: &str) -> Result<Phase, StoreError> {
        let mut keys = self.keys(name, self.reading.seed)?;
        let (operations, at_once) = (self.reading.operations, self.reading.keys_at_once.max(1));
        let (mut latencies, mut windows, mut hits) = (Latencies::default(), Vec::new(), 0);
        let mut found = vec![Found::default(); at_once as usize];
        let (mut done, device_every) = (0, self.reading.operations_per_device_read());
        for window in 1..=self.reading.windows {
            let (before, bytes) = (self.cache.stats().reads, self.bytes_read());
            let mut time = Duration::ZERO;
            let end = operations * window / self.reading.windows;
            while done < end {
                let count = at_once.min(end - done);
                let numbers: Vec<u64> = keys.by_ref().take(count as usize).collect();
                let took = self.get(&numbers, &mut found);
                time += took;
                latencies.push(took / count as u32);
                hits += self.check(&numbers, &found)?;
                done += count;
                if device_every.is_some_and(|every| done % every == 0) {
                    let failed = |why: std::io::Error| {
                        StoreError::Process("a read of the device".to_owned(), why.to_string())
                    };
                    self.device.read().map_err(failed)?;
                }
            }
            let reads = self.cache.stats().reads - before;
            windows.push(Window(time.as_secs_f64() * 1e6, Some(reads), self.bytes_read() - bytes));
        }
        if hits * 1000 < operations * FOUND_IN_THOUSAND {
            return Err(StoreError::Wrong(format!("{name}: of {operations} keys {hits} were found")));
        }
        Ok(finish(name, operations, hits, latencies, windows))
    }

    /// Looks keys up together, and returns the time until their values were copied.
    fn get(&mut self, numbers: &[u64], found: &mut [Found]) -> Duration {
        let bytes: Vec<[u8; 16]> = numbers.iter().map(|number| key_of(*number)).collect();
        for of in &mut *found {
            of.is_hit = false;
            of.value.clear();
        }
        let mut batch = Vec::with_capacity(numbers.len());
        let start = Instant::now();
        batch.extend(bytes.iter().map(|key| self.cache.key(key)));
        self.cache.get_many(&mut self.io, &batch, 1, |i, outcome| {
            if let Outcome::Hit { value, .. } = outcome {
                found[i].is_hit = true;
                found[i].value.extend_from_slice(value);
            }
        });
        start.elapsed()
    }

    /// Returns how many keys were found; an error if a value is not the one put.
    fn check(&self, numbers: &[u64], found: &[Found]) -> Result<u64, StoreError> {
        let mut wanted = vec![0; self.contents.value_bytes as usize];
        let mut hits = 0;
        for (number, found) in numbers.iter().zip(found).filter(|(_, found)| found.is_hit) {
            value_of(*number, COMPRESSIBLE, &mut wanted);
            if found.value != wanted {
                return Err(StoreError::Wrong(format!("the value of key {number} is wrong")));
            }
            hits += 1;
        }
        Ok(hits)
    }

    /// Visits entries in the order of the log, as many as there are operations.
    fn scan(&mut self) -> Result<Phase, StoreError> {
        let most = self.reading.operations.min(self.contents.keys);
        let (mut scan, mut visited, mut is_wrong) = (Scan::default(), 0, false);
        let bytes = of_process("io", "read_bytes:");
        let mut time = Duration::ZERO;
        let mut sample = Vec::new();
        while visited < most {
            let start = Instant::now();
            let more = self.cache.scan_on(&mut self.io, &mut scan, |key, value, _| {
                visited += 1;
                if let (Some(value), 1) = (value, visited % CHECKED_ONE_IN) {
                    sample.push((key.to_owned(), value.to_owned()));
                }
            });
            time += start.elapsed();
            if !more {
                break;
            }
        }
        let mut wanted = vec![0; self.contents.value_bytes as usize];
        for (key, value) in sample {
            let number = std::str::from_utf8(&key).ok().and_then(|digits| digits.parse().ok());
            value_of(number.unwrap_or(u64::MAX), COMPRESSIBLE, &mut wanted);
            is_wrong |= value != wanted;
        }
        if is_wrong || visited * 1000 < most * FOUND_IN_THOUSAND {
            return Err(StoreError::Wrong(format!(
                "a scan found {visited} entries of {most}, or wrong ones"
            )));
        }
        let bytes = of_process("io", "read_bytes:") - bytes;
        let windows = vec![Window(time.as_secs_f64() * 1e6, None, bytes)];
        Ok(finish("readseq", visited, visited, Latencies::default(), windows))
    }
}

fn finish(name: &str, operations: u64, hits: u64, latencies: Latencies, windows: Vec<Window>) -> Phase {
    let mean_us = windows.iter().map(|window| window.0).sum::<f64>() / operations as f64;
    let [p50_us, p99_us] = latencies.percentiles_us();
    let reads = windows.iter().map(|window| window.1).sum();
    let read_bytes = windows.iter().map(|window| window.2).sum();
    Phase { name: name.to_owned(), operations, mean_us, p50_us, p99_us, hits, reads, read_bytes, windows }
}
