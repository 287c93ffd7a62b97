//! Latency predicted from hits, misses and the device, against measurements.

use super::contender::{Engine, GRANARY};
use super::error::StoreError;
use super::measurement::WarmUp;
use super::page::{add_runs, number, reached, size_name};
use super::run::{Job, Runner, Runs, median, samples};
use super::study::{Size, VALUE_BYTES, job};
use crate::{PlotError, Report, bars};
use std::path::Path;

const BLOCK_BYTES: u64 = 4096;
const WORKLOAD: &str = "zipf";

/// The cost of a miss beside the read of the device is measured with reads that nearly all miss: random keys, and a RAM
/// tier of this size.
const MISSES_WORKLOAD: &str = "readrandom";
const MISSES_CACHE: u64 = 1 << 20;

/// Maximum difference from the model, in percent.
const WANTED_PERCENT: f64 = 10.0;

/// Separate reads of the device, spread evenly among the operations.
const DEVICE_READS: u32 = 2000;
const WINDOWS: u64 = 50;

/// Costs of an operation beside the device, from runs that are not predicted.
#[derive(Clone, Copy)]
struct OperationCosts {
    /// Time of an operation whose key is in RAM.
    hit_us: f64,
    /// Time of an operation that reads the device once, without that read: submitting and completing it, finding the
    /// key in the block, inserting the entry in RAM and evicting another.
    miss_us: f64,
}

impl OperationCosts {
    /// From the mean time of an operation that hits, and a run with mostly misses.
    fn new(hit_us: f64, of_misses: JobFigures) -> Self {
        let JobFigures { reads, device_us, mean_us } = of_misses;
        Self { hit_us, miss_us: (mean_us - (1.0 - reads) * hit_us) / reads - device_us }
    }

    /// The mean time of an operation in a run with `reads` reads per operation.
    fn predicted_us(self, reads: f64, device_us: f64) -> f64 {
        (1.0 - reads) * self.hit_us + reads * (device_us + self.miss_us)
    }

    /// The prediction, in microseconds, if a miss cost no more than a hit and a read of the device.
    fn hits_and_device_us(self, reads: f64, device_us: f64) -> f64 {
        self.hit_us + reads * device_us
    }
}

/// Figures of a job: reads of the device per operation, mean time of a separate read of the device, and of an
/// operation.
#[derive(Clone, Copy)]
struct JobFigures {
    reads: f64,
    device_us: f64,
    mean_us: f64,
}

impl JobFigures {
    fn of(runs: &Runs) -> Self {
        let device = |runs: &Vec<_>| samples(runs, |run| run.device_us.unwrap_or(f64::NAN)).median();
        Self {
            reads: median(runs, 0, |phase| phase.reads_per_operation()),
            device_us: runs.as_ref().map_or(f64::NAN, device),
            mean_us: median(runs, 0, |phase| phase.mean_us),
        }
    }
}

fn difference_percent(measured_us: f64, predicted_us: f64) -> f64 {
    (measured_us / predicted_us - 1.0) * 100.0
}

/// Figures of each cache size. In the first job everything fits; nearly all operations of the second miss.
pub struct LatencyModel {
    jobs: Vec<Job>,
    runs: Vec<Runs>,
}

impl LatencyModel {
    /// Loads a store and reads it with each cache, with one that holds everything, and with one that holds nearly
    /// nothing.
    pub fn run(runner: &Runner<'_>, size: &Size) -> Result<Self, StoreError> {
        let contents = runner.contents(Engine::Granary, size.medium_keys, VALUE_BYTES, BLOCK_BYTES, false);
        runner.load(Engine::Granary, &contents)?;
        let of = |workload, cache| {
            let mut job = job(&GRANARY, contents.clone(), workload, [cache, 0], size.medium_operations);
            (job.reading.windows, job.reading.device_reads) = (WINDOWS, DEVICE_READS);
            job
        };
        let mut all = of(WORKLOAD, 4 * contents.bytes());
        all.reading.warm_up = WarmUp::Rehearsal;
        let misses = of(MISSES_WORKLOAD, MISSES_CACHE);
        let caches = size.model_caches.iter().map(|cache| of(WORKLOAD, *cache));
        let jobs: Vec<Job> = [all, misses].into_iter().chain(caches).collect();
        let runs = runner.measure(&jobs)?;
        runner.remove(&[Engine::Granary]);
        Ok(Self { jobs, runs })
    }

    fn costs(&self) -> OperationCosts {
        OperationCosts::new(JobFigures::of(&self.runs[0]).mean_us, JobFigures::of(&self.runs[1]))
    }

    /// The sizes of the caches that are predicted, and their measurements.
    fn rows(&self) -> impl Iterator<Item = (u64, JobFigures)> {
        let row = |(job, runs): (&Job, &Runs)| (job.reading.cache_bytes, JobFigures::of(runs));
        self.jobs.iter().zip(&self.runs).skip(2).map(row)
    }

    /// The table, as Markdown.
    pub fn text(&self) -> String {
        let mut report = Report::new(&[
            "RAM tier",
            "reads an operation",
            "device, us",
            "measured, us",
            "predicted, us",
            "difference",
            "within 10 %",
            "hit ratio x device, us",
            "difference",
        ]);
        let costs = self.costs();
        for (cache, run) in self.rows() {
            let predicted_us = costs.predicted_us(run.reads, run.device_us);
            let naive_us = costs.hits_and_device_us(run.reads, run.device_us);
            let difference = difference_percent(run.mean_us, predicted_us);
            report.row([
                size_name(cache),
                number(run.reads, 3),
                number(run.device_us, 1),
                number(run.mean_us, 2),
                number(predicted_us, 2),
                format!("{difference:+.1} %"),
                reached(difference, difference.abs() <= WANTED_PERCENT),
                number(naive_us, 2),
                format!("{:+.1} %", difference_percent(run.mean_us, naive_us)),
            ]);
        }
        let [all, misses] = [0, 1].map(|place: usize| JobFigures::of(&self.runs[place]));
        format!(
            "A hit takes {} us ({} reads of the device an operation, all being in RAM). A miss takes {} us beside \
             its read of the device ({} reads an operation, {} us each, in {} us).\n\n{}\n",
            number(costs.hit_us, 2),
            number(all.reads, 4),
            number(costs.miss_us, 2),
            number(misses.reads, 3),
            number(misses.device_us, 1),
            number(misses.mean_us, 2),
            report.markdown()
        )
    }

    /// Adds the part's lines to the CSV.
    pub fn csv(&self, report: &mut Report) {
        for (job, runs) in self.jobs.iter().zip(&self.runs) {
            add_runs(report, "model", job.contender.name, job, runs);
        }
    }

    /// Draws the measurement and both predictions.
    pub fn plot(&self, path: &Path) -> Result<(), PlotError> {
        let costs = self.costs();
        let group = |(cache, run): (u64, JobFigures)| {
            let naive_us = costs.hits_and_device_us(run.reads, run.device_us);
            let predicted_us = costs.predicted_us(run.reads, run.device_us);
            (size_name(cache), vec![naive_us, predicted_us, run.mean_us])
        };
        let groups: Vec<(String, Vec<f64>)> = self.rows().map(group).collect();
        let names = ["hit ratio x device", "predicted", "measured"];
        bars(path, "Latency of skewed reads", "us an operation", &names, &groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_follows_from_hits_misses_and_the_device() {
        let misses = JobFigures { reads: 0.9, device_us: 50.0, mean_us: 49.6 };
        let costs = OperationCosts::new(1.0, misses);
        assert!((costs.miss_us - 5.0).abs() < 1e-9, "{}", costs.miss_us);
        // The costs predict the runs that they were derived from.
        assert!((costs.predicted_us(misses.reads, misses.device_us) - misses.mean_us).abs() < 1e-9);
        // Another device time and other hits: 3 of 4 hit, the fourth takes 40 us and 5.
        assert!((costs.predicted_us(0.25, 40.0) - 12.0).abs() < 1e-9);
        assert!((costs.hits_and_device_us(0.25, 40.0) - 11.0).abs() < 1e-9);
        assert!((costs.predicted_us(0.0, 40.0) - costs.hit_us).abs() < 1e-9);
        assert!((difference_percent(11.0, 10.0) - 10.0).abs() < 1e-9);
    }
}
