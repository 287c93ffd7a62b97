//! A store that is much larger than its caches.

use super::contender::{Contender, Engine, GRANARY, LEVELDB, LEVELDB_READ, ROCKSDB};
use super::error::StoreError;
use super::page::{add_runs, number, reached, size_name};
use super::run::{Job, Runner, Runs, median, samples};
use super::study::{Size, VALUE_BYTES, job};
use crate::{PlotError, Report, bars};
use std::path::Path;

const CONTENDERS: [&Contender; 4] = [&LEVELDB, &LEVELDB_READ, &ROCKSDB, &GRANARY];
const WORKLOADS: [&str; 4] = ["readrandom", "readhot", "readseq", "seekrandom"];
const BLOCK_BYTES: u64 = 4096;

/// readseq visits so many entries for each operation of the others.
const ENTRIES_OF_READSEQ: u64 = 40;

/// How many times faster than LevelDB random reads are to be.
const WANTED: f64 = 5.0;

/// Figures of every workload, cache size and contender.
pub struct Large {
    keys: u64,
    jobs: Vec<Job>,
    runs: Vec<Runs>,
    caches: Vec<u64>,
    /// Engines, bytes on the device, and seconds of loading.
    loads: Vec<(Engine, u64, f64)>,
}

impl Large {
    /// Loads the stores and reads them with each cache.
    pub fn run(runner: &Runner<'_>, size: &Size) -> Result<Self, StoreError> {
        let contents = |engine| runner.contents(engine, size.large_keys, VALUE_BYTES, BLOCK_BYTES, false);
        let engines = [Engine::Granary, Engine::LevelDb, Engine::RocksDb];
        let mut loads = Vec::new();
        for engine in engines {
            let loaded = runner.load(engine, &contents(engine))?;
            loads.extend(loaded.map(|loaded| (engine, loaded.disk_bytes, loaded.seconds)));
        }
        let mut jobs = Vec::new();
        for cache in &size.large_caches {
            for workload in WORKLOADS {
                let possible =
                    |contender: &&&Contender| contender.engine != Engine::Granary || workload != "seekrandom";
                jobs.extend(CONTENDERS.iter().filter(possible).map(|contender| {
                    let entries = if workload == "readseq" { ENTRIES_OF_READSEQ } else { 1 };
                    let operations = size.large_operations * entries;
                    job(contender, contents(contender.engine), workload, [*cache, 0], operations)
                }));
            }
        }
        let runs = runner.measure(&jobs)?;
        runner.remove(&engines);
        Ok(Self { keys: size.large_keys, jobs, runs, caches: size.large_caches.clone(), loads })
    }

    fn runs(&self, contender: &Contender, workload: &str, cache: u64) -> Option<&Runs> {
        let found = self.jobs.iter().position(|job| {
            job.contender.name == contender.name
                && job.reading.workload == workload
                && job.reading.cache_bytes == cache
        });
        found.map(|place| &self.runs[place])
    }

    fn mean_us(&self, contender: &Contender, workload: &str, cache: u64) -> f64 {
        let runs = self.runs(contender, workload, cache);
        runs.map_or(f64::NAN, |runs| median(runs, 0, |phase| phase.mean_us))
    }

    fn table(&self, workload: &str) -> Report {
        let mut report = Report::new(&["cache", "LevelDB", "LevelDB, pread", "RocksDB", "Granary"]);
        for cache in &self.caches {
            let cells = CONTENDERS.map(|contender| match self.runs(contender, workload, *cache) {
                None => "not possible".to_owned(),
                Some(_) => number(self.mean_us(contender, workload, *cache), 2),
            });
            report.row([size_name(*cache)].into_iter().chain(cells));
        }
        report
    }

    fn times_leveldb(&self) -> Report {
        let mut report =
            Report::new(&["readrandom", "LevelDB / Granary", "5x", "LevelDB, pread / Granary", "5x"]);
        for cache in &self.caches {
            let granary = self.mean_us(&GRANARY, WORKLOADS[0], *cache);
            let cells = [&LEVELDB, &LEVELDB_READ].map(|contender| {
                let times = self.mean_us(contender, WORKLOADS[0], *cache) / granary;
                [number(times, 2), reached(times, times >= WANTED)]
            });
            report.row([size_name(*cache)].into_iter().chain(cells.into_iter().flatten()));
        }
        report
    }

    /// The most RAM that each process had while it read at random.
    fn memory(&self) -> Report {
        let mut report = Report::new(&["cache", "LevelDB", "LevelDB, pread", "RocksDB", "Granary"]);
        for cache in &self.caches {
            let cells = CONTENDERS.map(|contender| {
                let runs = self.runs(contender, WORKLOADS[0], *cache).and_then(Option::as_ref);
                let bytes = runs
                    .map_or(f64::NAN, |runs| samples(runs, |measured| measured.memory_bytes as f64).median());
                number(bytes / 1e6, 0)
            });
            report.row([size_name(*cache)].into_iter().chain(cells));
        }
        report
    }

    /// Its tables.
    pub fn text(&self) -> String {
        let mut loads = Report::new(&["engine", "MB on the device", "loaded in, s"]);
        for (engine, bytes, seconds) in &self.loads {
            loads.row([engine.name().to_owned(), number(*bytes as f64 / 1e6, 0), number(*seconds, 0)]);
        }
        let mut text = format!("{} keys.\n\n{}\n", self.keys, loads.markdown());
        for workload in WORKLOADS {
            text += &format!("\n### {workload}: us an operation\n\n{}\n", self.table(workload).markdown());
        }
        let (times, memory) = (self.times_leveldb().markdown(), self.memory().markdown());
        text + &format!(
            "\n### Random reads beside LevelDB's\n\n{times}\n\n### RAM of the process, MB\n\n{memory}\n"
        )
    }

    /// Its lines of the CSV.
    pub fn csv(&self, report: &mut Report) {
        for (job, runs) in self.jobs.iter().zip(&self.runs) {
            add_runs(report, "large", job.contender.name, job, runs);
        }
    }

    /// Draws latency over cache sizes.
    pub fn plot(&self, path: &Path) -> Result<(), PlotError> {
        let group = |cache: &u64| {
            let at = |contender: &&Contender| self.mean_us(contender, WORKLOADS[0], *cache);
            (size_name(*cache), CONTENDERS.iter().map(at).collect())
        };
        let groups: Vec<(String, Vec<f64>)> = self.caches.iter().map(group).collect();
        let names = CONTENDERS.map(|contender| contender.name);
        let title = format!("readrandom on {} keys", self.keys);
        bars(path, &title, "us an operation", &names, &groups)
    }
}
