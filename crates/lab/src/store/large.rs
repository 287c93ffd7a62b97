//! A store much larger than its caches.

use super::contender::{Contender, Engine, GRANARY, LEVELDB, LEVELDB_READ, ROCKSDB};
use super::error::StoreError;
use super::measurement::Phase;
use super::page::{add_runs, number, reached, size_name};
use super::run::{Job, Runner, Runs, median, samples};
use super::study::{Size, VALUE_BYTES, job};
use crate::{PlotError, Report, bars};
use std::path::Path;

const CONTENDERS: [&Contender; 4] = [&LEVELDB, &LEVELDB_READ, &ROCKSDB, &GRANARY];
const WORKLOADS: [&str; 4] = ["readrandom", "readhot", "readseq", "seekrandom"];
const BLOCK_BYTES: u64 = 4096;

/// Entries that readseq visits for each operation of the other workloads.
const ENTRIES_OF_READSEQ: u64 = 40;

/// Wanted speed of random reads, as a multiple of LevelDB's.
const WANTED: f64 = 5.0;

/// A figure of the operations' times.
#[derive(Clone, Copy)]
enum LatencyStatistic {
    Mean,
    Median,
}

/// Figures of every workload, cache size and contender.
pub struct Large {
    keys: u64,
    jobs: Vec<Job>,
    runs: Vec<Runs>,
    caches: Vec<u64>,
    /// Engine, bytes on the device, and seconds of loading.
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

    fn figure_us(&self, figure: LatencyStatistic, contender: &Contender, workload: &str, cache: u64) -> f64 {
        let of = |phase: &Phase| match figure {
            LatencyStatistic::Mean => phase.mean_us,
            LatencyStatistic::Median => phase.p50_us.unwrap_or(f64::NAN),
        };
        self.runs(contender, workload, cache).map_or(f64::NAN, |runs| median(runs, 0, of))
    }

    fn table(&self, figure: LatencyStatistic, workload: &str) -> Report {
        let mut report = Report::new(&["cache", "LevelDB", "LevelDB, pread", "RocksDB", "Granary"]);
        for cache in &self.caches {
            let cells = CONTENDERS.map(|contender| match self.runs(contender, workload, *cache) {
                None => "not possible".to_owned(),
                Some(_) => number(self.figure_us(figure, contender, workload, *cache), 2),
            });
            report.row([size_name(*cache)].into_iter().chain(cells));
        }
        report
    }

    fn times_leveldb(&self) -> Report {
        let mut report = Report::new(&[
            "readrandom",
            "by",
            "LevelDB",
            "LevelDB, pread",
            "Granary",
            "LevelDB's better one / Granary",
            "5x",
        ]);
        for cache in &self.caches {
            for (figure, name) in
                [(LatencyStatistic::Mean, "mean, us"), (LatencyStatistic::Median, "median, us")]
            {
                let [mapped, read, ours] = [&LEVELDB, &LEVELDB_READ, &GRANARY]
                    .map(|contender| self.figure_us(figure, contender, WORKLOADS[0], *cache));
                let (times, verdict) = verdict([mapped, read], ours);
                let cells = [mapped, read, ours, times].map(|value| number(value, 2));
                report.row([size_name(*cache), name.to_owned()].into_iter().chain(cells).chain([verdict]));
            }
        }
        report
    }

    /// Maximum RAM of each process during random reads.
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

    /// The tables, as Markdown.
    pub fn text(&self) -> String {
        let mut loads = Report::new(&["engine", "MB on the device", "loaded in, s"]);
        for (engine, bytes, seconds) in &self.loads {
            loads.row([engine.name().to_owned(), number(*bytes as f64 / 1e6, 0), number(*seconds, 0)]);
        }
        let mut text = format!("{} keys.\n\n{}\n", self.keys, loads.markdown());
        for workload in WORKLOADS {
            let means = self.table(LatencyStatistic::Mean, workload).markdown();
            text += &format!("\n### {workload}: us an operation\n\n{means}\n");
            // Single operations of readseq are not timed.
            if workload != "readseq" {
                let medians = self.table(LatencyStatistic::Median, workload).markdown();
                text += &format!("\nThe median operation:\n\n{medians}\n");
            }
        }
        let (times, memory) = (self.times_leveldb().markdown(), self.memory().markdown());
        text + &format!(
            "\n### Random reads beside LevelDB's\n\n{times}\n\n### RAM of the process, MB\n\n{memory}\n"
        )
    }

    /// Adds the part's lines to the CSV.
    pub fn csv(&self, report: &mut Report) {
        for (job, runs) in self.jobs.iter().zip(&self.runs) {
            add_runs(report, "large", job.contender.name, job, runs);
        }
    }

    /// Draws latency over cache sizes.
    pub fn plot(&self, path: &Path) -> Result<(), PlotError> {
        let group = |cache: &u64| {
            let at = |contender: &&Contender| {
                self.figure_us(LatencyStatistic::Mean, contender, WORKLOADS[0], *cache)
            };
            (size_name(*cache), CONTENDERS.iter().map(at).collect())
        };
        let groups: Vec<(String, Vec<f64>)> = self.caches.iter().map(group).collect();
        let names = CONTENDERS.map(|contender| contender.name);
        let title = format!("readrandom on {} keys", self.keys);
        bars(path, &title, "us an operation", &names, &groups)
    }
}

/// How many times Granary's time LevelDB's better one is, and whether that is as wanted.
fn verdict(leveldb: [f64; 2], granary: f64) -> (f64, String) {
    let times = leveldb[0].min(leveldb[1]) / granary;
    (times, reached(times, times >= WANTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leveldb_is_judged_by_its_better_setting() {
        let said = |leveldb, granary| verdict(leveldb, granary).1;
        assert_eq!(said([900.0, 654.0], 62.0), "yes");
        assert_eq!(said([484.0, 220.0], 60.0), "no");
        assert_eq!(said([281.0, 115.0], 63.7), "no");
        assert_eq!(
            (said([f64::NAN, 500.0], 60.0), said([f64::NAN, f64::NAN], 60.0)),
            ("yes".into(), "-".into())
        );
    }
}
