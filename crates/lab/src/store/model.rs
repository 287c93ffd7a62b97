//! Latency as it follows from hits and from the device, beside what was measured.

use super::contender::{Engine, GRANARY};
use super::error::StoreError;
use super::page::{add_runs, number, reached, size_name};
use super::run::{Job, Runner, Runs, median, samples};
use super::study::{Size, VALUE_BYTES, job};
use crate::{PlotError, Report, bars};
use std::path::Path;

const BLOCK_BYTES: u64 = 4096;
const WORKLOAD: &str = "zipf";

/// How far from the model, in percent, latency may be.
const WANTED_PERCENT: f64 = 10.0;

/// Single reads of the device, which take turns with parts of the operations.
const DEVICE_READS: u32 = 2000;
const WINDOWS: u64 = 50;

/// One cache size.
struct Prediction {
    cache: u64,
    reads: f64,
    device_us: f64,
    predicted_us: f64,
    measured_us: f64,
}

impl Prediction {
    fn difference_percent(&self) -> f64 {
        (self.measured_us / self.predicted_us - 1.0) * 100.0
    }
}

/// Figures of each cache size; the first job has room for all.
pub struct Model {
    jobs: Vec<Job>,
    runs: Vec<Runs>,
}

impl Model {
    /// Loads a store and reads it with each cache, and with one that holds all.
    pub fn run(runner: &Runner<'_>, size: &Size) -> Result<Self, StoreError> {
        let contents = runner.contents(Engine::Granary, size.medium_keys, VALUE_BYTES, BLOCK_BYTES, false);
        runner.load(Engine::Granary, &contents)?;
        let of = |cache| {
            let mut job = job(&GRANARY, contents.clone(), WORKLOAD, [cache, 0], size.medium_operations);
            (job.reading.windows, job.reading.device_reads) = (WINDOWS, DEVICE_READS);
            job
        };
        let mut all = of(4 * contents.bytes());
        all.reading.is_rehearsed = true;
        all.reading.warm_up = size.medium_operations;
        let jobs: Vec<Job> =
            [all].into_iter().chain(size.model_caches.iter().map(|cache| of(*cache))).collect();
        let runs = runner.measure(&jobs)?;
        runner.remove(&[Engine::Granary]);
        Ok(Self { jobs, runs })
    }

    fn hit_us(&self) -> f64 {
        median(&self.runs[0], 0, |phase| phase.mean_us)
    }

    fn predictions(&self) -> Vec<Prediction> {
        let predict = |(job, runs): (&Job, &Runs)| {
            let reads = median(runs, 0, |phase| phase.reads_per_operation());
            let device = |runs: &Vec<_>| samples(runs, |run| run.device_us.unwrap_or(f64::NAN)).median();
            let device_us = runs.as_ref().map_or(f64::NAN, device);
            Prediction {
                cache: job.reading.cache_bytes,
                reads,
                device_us,
                predicted_us: self.hit_us() + reads * device_us,
                measured_us: median(runs, 0, |phase| phase.mean_us),
            }
        };
        self.jobs.iter().zip(&self.runs).skip(1).map(predict).collect()
    }

    /// Its table.
    pub fn text(&self) -> String {
        let mut report = Report::new(&[
            "RAM tier",
            "reads an operation",
            "device, us",
            "predicted, us",
            "measured, us",
            "difference",
            "within 10 %",
        ]);
        for prediction in self.predictions() {
            let difference = prediction.difference_percent();
            report.row([
                size_name(prediction.cache),
                number(prediction.reads, 3),
                number(prediction.device_us, 1),
                number(prediction.predicted_us, 2),
                number(prediction.measured_us, 2),
                format!("{difference:+.1} %"),
                reached(difference, difference.abs() <= WANTED_PERCENT),
            ]);
        }
        let reads = median(&self.runs[0], 0, |phase| phase.reads_per_operation());
        format!(
            "With all in RAM an operation takes {} us ({} reads of the device an operation).\n\n{}\n",
            number(self.hit_us(), 2),
            number(reads, 4),
            report.markdown()
        )
    }

    /// Its lines of the CSV.
    pub fn csv(&self, report: &mut Report) {
        for (job, runs) in self.jobs.iter().zip(&self.runs) {
            add_runs(report, "model", job.contender.name, job, runs);
        }
    }

    /// Draws both.
    pub fn plot(&self, path: &Path) -> Result<(), PlotError> {
        let group = |of: Prediction| (size_name(of.cache), vec![of.predicted_us, of.measured_us]);
        let groups: Vec<(String, Vec<f64>)> = self.predictions().into_iter().map(group).collect();
        bars(path, "Latency of skewed reads", "us an operation", &["predicted", "measured"], &groups)
    }
}
