//! A workload that changes: points, then neighbours, then a scan. Fixed divisions of the RAM, and the adaptive one.

use super::contender::{Engine, GRANARY, ROCKSDB};
use super::error::StoreError;
use super::measurement::{Phase, Window};
use super::page::{add_runs, number, reached, size_name};
use super::run::{Job, Runner, Runs, median};
use super::skewed::{ROW_PERCENTS, row_percent};
use super::study::{Size, VALUE_BYTES, job};
use super::workload::PHASES;
use crate::{PlotError, Report, bars};
use std::path::Path;

const BLOCK_BYTES: u64 = 4096;

/// Percent of Granary's RAM for blocks, in the fixed divisions.
const BLOCK_PERCENTS: [u8; 5] = [0, 25, 50, 75, 100];

/// How far above the best fixed division, in percent, the adaptive one may be in a phase.
const WANTED_PERCENT: f64 = 5.0;

/// How far above it, in percent, it may be over all phases.
const WANTED_OF_WHOLE_PERCENT: f64 = 0.0;

/// Places of the fixed divisions among the jobs; the adaptive one is the first job.
const FIXED: std::ops::Range<usize> = 1..1 + BLOCK_PERCENTS.len();

/// Figures of each division.
pub struct Division {
    jobs: Vec<Job>,
    runs: Vec<Runs>,
    budget: u64,
}

impl Division {
    /// Loads the stores in the order of the keys, and reads them with each division.
    pub fn run(runner: &Runner<'_>, size: &Size) -> Result<Self, StoreError> {
        let contents = |engine| runner.contents(engine, size.medium_keys, VALUE_BYTES, BLOCK_BYTES, true);
        for engine in [Engine::Granary, Engine::RocksDb] {
            runner.load(engine, &contents(engine))?;
        }
        let budget = size.medium_cache;
        let granary = |blocks_percent| {
            let mut job =
                job(&GRANARY, contents(Engine::Granary), "phases", [budget, 0], size.phase_operations);
            job.reading.blocks_percent = blocks_percent;
            job
        };
        let mut jobs = vec![granary(None)];
        jobs.extend(BLOCK_PERCENTS.map(|percent| granary(Some(percent))));
        jobs.extend(ROW_PERCENTS.map(|percent| {
            let rows = budget * percent / 100;
            let contents = contents(Engine::RocksDb);
            job(&ROCKSDB, contents, "phases", [budget - rows, rows], size.phase_operations)
        }));
        jobs.iter_mut().for_each(|job| job.reading.windows = size.windows);
        let runs = runner.measure(&jobs)?;
        runner.remove(&[Engine::Granary, Engine::RocksDb]);
        Ok(Self { jobs, runs, budget })
    }

    fn name(job: &Job) -> String {
        match (job.contender.engine, job.reading.blocks_percent) {
            (Engine::Granary, None) => "Granary, divides itself".to_owned(),
            (Engine::Granary, Some(percent)) => format!("Granary, {percent} % blocks"),
            _ => format!("RocksDB, {} % rows", row_percent(job)),
        }
    }

    /// The mean of a figure over all phases, which have the same number of operations.
    fn whole(runs: &Runs, figure: impl Fn(&Phase) -> f64 + Copy) -> f64 {
        (0..PHASES.len()).map(|phase| median(runs, phase, figure)).sum::<f64>() / PHASES.len() as f64
    }

    fn table(&self) -> Report {
        let mut report = Report::new(&[
            "who",
            "points: reads",
            "us",
            "neighbours: reads",
            "us",
            "scan: reads",
            "us",
            "whole: reads",
            "us",
        ]);
        for (job, runs) in self.jobs.iter().zip(&self.runs) {
            let mut cells = vec![Self::name(job)];
            for phase in 0..PHASES.len() {
                cells.push(number(median(runs, phase, Phase::reads_per_operation), 4));
                cells.push(number(median(runs, phase, |phase| phase.mean_us), 2));
            }
            cells.push(number(Self::whole(runs, Phase::reads_per_operation), 4));
            cells.push(number(Self::whole(runs, |phase| phase.mean_us), 2));
            report.row(cells);
        }
        report
    }

    /// The fixed division with the smallest figure, and that figure.
    fn best(&self, figure: impl Fn(&Runs) -> f64) -> (usize, f64) {
        let all = FIXED.map(|place| (place, figure(&self.runs[place])));
        all.min_by(|one, other| one.1.total_cmp(&other.1)).expect("there are fixed divisions")
    }

    fn differences(&self) -> Report {
        let mut report = Report::new(&[
            "phase",
            "best fixed",
            "reads",
            "Granary, divides itself",
            "difference",
            "wanted",
            "reached",
            "MB read until within 5 %",
            "of the budget",
        ]);
        for (phase, name) in PHASES.iter().enumerate() {
            let reads = |runs: &Runs| median(runs, phase, Phase::reads_per_operation);
            let (best, least) = self.best(reads);
            let own = reads(&self.runs[0]);
            let until = self.bytes_until_near(phase, best);
            report.row(self.difference(name, [least, own], 4, best, WANTED_PERCENT).into_iter().chain([
                number(until / 1e6, 1),
                format!("{} %", number(until / self.budget as f64 * 100.0, 0)),
            ]));
        }
        let reads = |runs: &Runs| Self::whole(runs, Phase::reads_per_operation);
        let (best, least) = self.best(reads);
        let own = reads(&self.runs[0]);
        let whole = self.difference("whole", [least, own], 4, best, WANTED_OF_WHOLE_PERCENT);
        report.row(whole.into_iter().chain(["-".to_owned(), "-".to_owned()]));
        report
    }

    /// The adaptive division against the fastest fixed one, by time, which includes the cost of adapting.
    fn differences_of_time(&self) -> Report {
        let mut report = Report::new(&[
            "phase",
            "fastest fixed",
            "us",
            "Granary, divides itself",
            "difference",
            "wanted",
            "reached",
        ]);
        for (phase, name) in PHASES.iter().enumerate() {
            let us = |runs: &Runs| median(runs, phase, |phase| phase.mean_us);
            let (best, least) = self.best(us);
            report.row(self.difference(name, [least, us(&self.runs[0])], 2, best, WANTED_PERCENT));
        }
        let us = |runs: &Runs| Self::whole(runs, |phase| phase.mean_us);
        let (best, least) = self.best(us);
        report.row(self.difference("whole", [least, us(&self.runs[0])], 2, best, WANTED_OF_WHOLE_PERCENT));
        report
    }

    /// The cells of a comparison of the best fixed division's figure with the adaptive one's.
    fn difference(
        &self,
        name: &str,
        [least, own]: [f64; 2],
        digits: usize,
        best: usize,
        wanted: f64,
    ) -> Vec<String> {
        let (percent, verdict) = verdict(least, own, wanted);
        vec![
            name.to_owned(),
            Self::name(&self.jobs[best]),
            number(least, digits),
            number(own, digits),
            format!("{percent:+.1} %"),
            format!("{wanted:+.0} %"),
            verdict,
        ]
    }

    /// Bytes that the adaptive division reads in a phase until the rest of the phase takes at most 5 % more reads than
    /// with a fixed division; the median, NaN if that never happens.
    fn bytes_until_near(&self, phase: usize, fixed: usize) -> f64 {
        let (Some(own), Some(fixed)) = (&self.runs[0], &self.runs[fixed]) else { return f64::NAN };
        let mut until = crate::Samples::default();
        for (own, fixed) in own.iter().zip(fixed) {
            until.push(bytes_until_near(&own.phases[phase].windows, &fixed.phases[phase].windows));
        }
        until.median()
    }

    /// The tables, as Markdown.
    pub fn text(&self) -> String {
        let table = self.table().markdown();
        let (by_reads, by_time) = (self.differences().markdown(), self.differences_of_time().markdown());
        let block_bytes: Vec<String> = (0..PHASES.len())
            .map(|phase| {
                let share = |runs: &Vec<super::measurement::Measured>| {
                    let part = |run: &super::measurement::Measured| {
                        run.block_bytes[phase] as f64 / self.budget as f64 * 100.0
                    };
                    super::run::samples(runs, part).median()
                };
                let percent = self.runs[0].as_ref().map_or(f64::NAN, share);
                format!("{} % after {}", number(percent, 0), PHASES[phase])
            })
            .collect();
        format!(
            "{} of RAM. Reads of the device and microseconds, both an operation:\n\n{table}\n\n\
             By reads of the device:\n\n{by_reads}\n\nBy time:\n\n{by_time}\n\n\
             What blocks have of the RAM that divides itself: {}.\n",
            size_name(self.budget),
            block_bytes.join(", ")
        )
    }

    /// Adds the part's lines to the CSV.
    pub fn csv(&self, report: &mut Report) {
        for (job, runs) in self.jobs.iter().zip(&self.runs) {
            add_runs(report, "division", &Self::name(job), job, runs);
        }
    }

    /// Draws reads of the device in each phase.
    pub fn plot(&self, path: &Path) -> Result<(), PlotError> {
        let names: Vec<String> = self.jobs.iter().map(Self::name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let group = |(phase, name): (usize, &&str)| {
            let reads = |runs: &Runs| median(runs, phase, Phase::reads_per_operation);
            ((*name).to_owned(), self.runs.iter().map(reads).collect())
        };
        let groups: Vec<(String, Vec<f64>)> = PHASES.iter().enumerate().map(group).collect();
        bars(path, "Reads of the device", "reads an operation", &names, &groups)
    }
}

/// By how many percent `own` is above `least`, and whether that is no more than wanted.
fn verdict(least: f64, own: f64, wanted_percent: f64) -> (f64, String) {
    let percent = (own / least - 1.0) * 100.0;
    (percent, reached(percent, percent <= wanted_percent))
}

fn bytes_until_near(own: &[Window], fixed: &[Window]) -> f64 {
    let reads = |windows: &[Window]| windows.iter().map(|window| window.1.unwrap_or(0)).sum::<u64>() as f64;
    let is_near =
        |first: &usize| reads(&own[*first..]) <= (1.0 + WANTED_PERCENT / 100.0) * reads(&fixed[*first..]);
    let first = (0..own.len().min(fixed.len())).find(is_near);
    first.map_or(f64::NAN, |first| own[..first].iter().map(|window| window.2).sum::<u64>() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_division_is_judged_by_the_best_fixed_one() {
        let said = |least, own, wanted| verdict(least, own, wanted).1;
        assert_eq!([said(100.0, 104.9, 5.0), said(100.0, 105.1, 5.0)], ["yes", "no"]);
        assert_eq!([said(9.34, 9.34, 0.0), said(9.34, 11.17, 0.0)], ["yes", "no"]);
        assert_eq!(said(100.0, f64::NAN, 5.0), "-");
    }

    #[test]
    fn adaptation_ends_where_the_rest_is_as_good_as_fixed() {
        let windows = |reads: &[u64]| -> Vec<Window> {
            reads.iter().map(|reads| Window(1.0, Some(*reads), reads * 4096)).collect()
        };
        let fixed = windows(&[10, 10, 10, 10]);
        assert_eq!(bytes_until_near(&windows(&[10, 10, 11, 10]), &fixed), 0.0);
        assert_eq!(bytes_until_near(&windows(&[30, 20, 10, 10]), &fixed), 50.0 * 4096.0);
        assert!(bytes_until_near(&windows(&[10, 10, 10, 20]), &fixed).is_nan());
    }
}
