//! Skewed point reads: Granary beside RocksDB with every split of its RAM.

use super::contender::{Engine, GRANARY, ROCKSDB};
use super::error::StoreError;
use super::page::{add_runs, number, reached};
use super::run::{Job, Runner, Runs, median};
use super::study::{Size, VALUE_BYTES, job};
use crate::Report;

const BLOCK_BYTES: u64 = 4096;

/// Percent of RocksDB's RAM that are for rows.
pub(super) const ROW_PERCENTS: [u64; 5] = [0, 25, 50, 75, 100];

/// Figures of Granary, and of RocksDB's splits.
pub struct Skewed {
    jobs: Vec<Job>,
    runs: Vec<Runs>,
}

impl Skewed {
    /// Loads the stores and reads them.
    pub fn run(runner: &Runner<'_>, size: &Size) -> Result<Self, StoreError> {
        let contents = |engine| runner.contents(engine, size.medium_keys, VALUE_BYTES, BLOCK_BYTES, false);
        let of = |contender, engine, caches| {
            job(contender, contents(engine), "zipf", caches, size.medium_operations)
        };
        for engine in [Engine::Granary, Engine::RocksDb] {
            runner.load(engine, &contents(engine))?;
        }
        let mut jobs = vec![of(&GRANARY, Engine::Granary, [size.medium_cache, 0])];
        jobs.extend(ROW_PERCENTS.map(|percent| {
            let rows = size.medium_cache * percent / 100;
            of(&ROCKSDB, Engine::RocksDb, [size.medium_cache - rows, rows])
        }));
        let runs = runner.measure(&jobs)?;
        runner.remove(&[Engine::Granary, Engine::RocksDb]);
        Ok(Self { jobs, runs })
    }

    fn name(job: &Job) -> String {
        match job.contender.engine {
            Engine::Granary => "Granary, divides itself".to_owned(),
            _ => format!("RocksDB, {} % rows", row_percent(job)),
        }
    }

    /// Its table.
    pub fn text(&self) -> String {
        let mut report =
            Report::new(&["who", "mean, us", "median, us", "p99, us", "reads an operation", "MB of RAM"]);
        for (job, runs) in self.jobs.iter().zip(&self.runs) {
            let memory = runs.as_ref().map_or(f64::NAN, |runs| {
                super::run::samples(runs, |measured| measured.memory_bytes as f64).median()
            });
            report.row([
                Self::name(job),
                number(median(runs, 0, |phase| phase.mean_us), 2),
                number(median(runs, 0, |phase| phase.p50_us.unwrap_or(f64::NAN)), 2),
                number(median(runs, 0, |phase| phase.p99_us.unwrap_or(f64::NAN)), 1),
                number(median(runs, 0, |phase| phase.reads_per_operation()), 3),
                number(memory / 1e6, 0),
            ]);
        }
        let mean_us = |runs: &Runs| median(runs, 0, |phase| phase.mean_us);
        let (granary, best) =
            (mean_us(&self.runs[0]), self.runs[1..].iter().map(mean_us).fold(f64::NAN, f64::min));
        format!(
            "{}\n\nAt or below RocksDB's best split ({} us): {}.\n",
            report.markdown(),
            number(best, 2),
            reached(best, granary <= best)
        )
    }

    /// Its lines of the CSV.
    pub fn csv(&self, report: &mut Report) {
        for (job, runs) in self.jobs.iter().zip(&self.runs) {
            add_runs(report, "skewed", &Self::name(job), job, runs);
        }
    }
}

/// Percent of a job's RAM that are for rows.
pub(super) fn row_percent(job: &Job) -> u64 {
    let reading = &job.reading;
    reading.row_cache_bytes * 100 / (reading.cache_bytes + reading.row_cache_bytes).max(1)
}
