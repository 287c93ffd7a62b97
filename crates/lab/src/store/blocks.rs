//! Block sizes and cache sizes on a small store, with and without a bound on memory.

use super::contender::{
    Contender, Engine, GRANARY, LEVELDB, LEVELDB_READ, LEVELDB_UNLIMITED, ROCKSDB, ROCKSDB_UNLIMITED,
};
use super::error::StoreError;
use super::page::{add_runs, number, size_name};
use super::run::{Job, Runner, Runs, median};
use super::study::{Size, VALUE_BYTES, job};
use crate::{PlotError, Report, bars};
use std::path::Path;

const CONTENDERS: [&Contender; 6] =
    [&LEVELDB_UNLIMITED, &ROCKSDB_UNLIMITED, &LEVELDB, &LEVELDB_READ, &ROCKSDB, &GRANARY];

const WORKLOADS: [&str; 2] = ["readrandom", "readhot"];

/// The block size in the plot.
const PLOTTED_BLOCK_BYTES: u64 = 4096;

/// Figures of every block size, cache size, workload and contender.
pub struct Blocks {
    jobs: Vec<Job>,
    runs: Vec<Runs>,
    block_bytes: Vec<u64>,
    caches: Vec<u64>,
}

impl Blocks {
    /// Loads a store for each block size, and reads it with each cache.
    pub fn run(runner: &Runner<'_>, size: &Size) -> Result<Self, StoreError> {
        let engines = [Engine::Granary, Engine::LevelDb, Engine::RocksDb];
        let (mut jobs, mut runs) = (Vec::new(), Vec::new());
        for block_bytes in &size.block_bytes {
            let contents =
                |engine| runner.contents(engine, size.small_keys, VALUE_BYTES, *block_bytes, false);
            for engine in engines {
                runner.load(engine, &contents(engine))?;
            }
            let mut some = Vec::new();
            for cache in &size.small_caches {
                for workload in WORKLOADS {
                    some.extend(CONTENDERS.map(|contender| {
                        let contents = contents(contender.engine);
                        job(contender, contents, workload, [*cache, 0], size.small_operations)
                    }));
                }
            }
            runs.extend(runner.measure(&some)?);
            jobs.extend(some);
            runner.remove(&engines);
        }
        Ok(Self { jobs, runs, block_bytes: size.block_bytes.clone(), caches: size.small_caches.clone() })
    }

    fn mean_us(&self, contender: &Contender, workload: &str, block_bytes: u64, cache: u64) -> f64 {
        let found = self.jobs.iter().position(|job| {
            job.contender.name == contender.name
                && job.reading.workload == workload
                && job.contents.block_bytes == block_bytes
                && job.reading.cache_bytes == cache
        });
        found.map_or(f64::NAN, |place| median(&self.runs[place], 0, |phase| phase.mean_us))
    }

    fn table(&self, contender: &Contender, workload: &str) -> Report {
        let headings: Vec<String> = std::iter::once("cache".to_owned())
            .chain(self.block_bytes.iter().map(|bytes| format!("{} KiB", bytes >> 10)))
            .collect();
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let mut report = Report::new(&headings);
        for cache in &self.caches {
            let cells = self
                .block_bytes
                .iter()
                .map(|block_bytes| number(self.mean_us(contender, workload, *block_bytes, *cache), 2));
            report.row(std::iter::once(size_name(*cache)).chain(cells));
        }
        report
    }

    /// How many times faster the largest cache is than the smallest.
    fn trend(&self) -> Report {
        let mut report = Report::new(&["readrandom, blocks of 4 KiB", "smallest cache", "largest", "times"]);
        let (Some(small), Some(large)) = (self.caches.first(), self.caches.last()) else { return report };
        for contender in CONTENDERS {
            let at = |cache| self.mean_us(contender, WORKLOADS[0], PLOTTED_BLOCK_BYTES, cache);
            let (small, large) = (at(*small), at(*large));
            let cells = [number(small, 2), number(large, 2), number(small / large, 1)];
            report.row([contender.name.to_owned()].into_iter().chain(cells));
        }
        report
    }

    /// The tables, as Markdown.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.trend().markdown());
        for workload in WORKLOADS {
            for contender in CONTENDERS {
                let table = self.table(contender, workload).markdown();
                text += &format!("\n### {workload}, {}: us an operation\n\n{table}\n", contender.name);
            }
        }
        text
    }

    /// Adds the part's lines to the CSV.
    pub fn csv(&self, report: &mut Report) {
        for (job, runs) in self.jobs.iter().zip(&self.runs) {
            add_runs(report, "blocks", job.contender.name, job, runs);
        }
    }

    /// Draws latency over cache sizes.
    pub fn plot(&self, path: &Path) -> Result<(), PlotError> {
        let group = |cache: &u64| {
            let at =
                |contender: &Contender| self.mean_us(contender, WORKLOADS[0], PLOTTED_BLOCK_BYTES, *cache);
            (size_name(*cache), CONTENDERS.iter().map(|contender| at(contender)).collect())
        };
        let groups: Vec<(String, Vec<f64>)> = self.caches.iter().map(group).collect();
        let names = CONTENDERS.map(|contender| contender.name);
        bars(path, "readrandom on the small store, blocks of 4 KiB", "us an operation", &names, &groups)
    }
}
