//! The replays: each workload through each policy, and through variations of one.

use granary_lab::Report;
use granary_lab::model::{Budget, Policy, Tally, replay};

use super::inputs::FlashieldInput;
use crate::failure::Result;
use crate::progress::bar;
use crate::replay::{describe, sizes};

/// The scale of the replays.
pub struct Scope {
    /// Requests drawn from statistics.
    pub requests: u64,
    /// Maximum requests of a trace.
    pub limit: usize,
}

/// Policies compared on every workload, at [`PART`] and [`RATIO`].
pub const POLICIES: [&str; 13] = [
    "reuse",
    "flashield",
    "ripq",
    "victim",
    "fifo",
    "reject-first",
    "probability:0.5",
    "probability:1",
    "lru",
    "s3-fifo",
    "lru-dram",
    "s3-fifo-dram",
    "belady",
];

/// How many of the first [`POLICIES`] are in the paper's tables: ours, the paper's, and the baseline of all.
pub const PAPER: usize = 5;

/// DRAM and flash together, as a part of the working set.
pub const PART: f64 = 0.15;

/// Ratio of flash to DRAM.
pub const RATIO: u64 = 7;

/// Thresholds of expected reads.
pub const THRESHOLDS: [u8; 5] = [1, 2, 3, 5, 8];

/// Ratios of flash to DRAM that are compared.
pub const RATIOS: [u64; 3] = [3, 7, 15];

/// Parts of the working set that are compared.
pub const PARTS: [f64; 3] = [0.05, 0.15, 0.4];

/// The results of one workload.
pub struct FlashieldLine {
    pub name: String,
    pub label: String,
    pub description: String,
    /// By policy, in the order of [`POLICIES`].
    pub policies: Vec<Tally>,
    pub thresholds: Vec<Tally>,
    /// In the order of [`RATIOS`], for our policy and for the paper's.
    pub ratios: Vec<Tally>,
    pub paper_ratios: Vec<Tally>,
    /// In the order of [`PARTS`]: ours, and FIFO.
    pub parts: Vec<[Tally; 2]>,
}

impl FlashieldLine {
    /// The tally of one of [`POLICIES`].
    pub fn of(&self, policy: &str) -> &Tally {
        let at = POLICIES.iter().position(|name| *name == policy).expect("one of them");
        &self.policies[at]
    }
}

/// The results of all workloads.
pub struct FlashieldRuns {
    pub lines: Vec<FlashieldLine>,
}

impl FlashieldRuns {
    pub fn all(inputs: &[FlashieldInput], scope: &Scope) -> Result<FlashieldRuns> {
        let a_line = POLICIES.len() + THRESHOLDS.len() + 2 * RATIOS.len() + 2 * PARTS.len();
        let bar = bar((inputs.len() * a_line) as u64);
        let mut lines = Vec::new();
        for input in inputs {
            let workload = input.load(scope)?;
            bar.set_message(workload.name.clone());
            let next_reads = workload.next_reads();
            let working_set = workload.working_set_bytes();
            let run = |policy: &str, part: f64, ratio: u64| {
                let policy: Policy = policy.parse().expect("the names are ours");
                let budget: Budget = sizes(working_set, part, ratio);
                let mut model = policy.model(&budget, workload.keys);
                let tally = replay(&mut *model, &workload, &next_reads, |_| ());
                bar.inc(1);
                tally
            };
            lines.push(FlashieldLine {
                name: workload.name.clone(),
                label: workload.label.to_string(),
                description: describe(&workload),
                policies: POLICIES.map(|policy| run(policy, PART, RATIO)).to_vec(),
                thresholds: THRESHOLDS.map(|n| run(&format!("flashield:{n}"), PART, RATIO)).to_vec(),
                ratios: RATIOS.map(|ratio| run(POLICIES[0], PART, ratio)).to_vec(),
                paper_ratios: RATIOS.map(|ratio| run("flashield", PART, ratio)).to_vec(),
                parts: PARTS
                    .map(|part| [POLICIES[0], "fifo"].map(|policy| run(policy, part, RATIO)))
                    .to_vec(),
            });
        }
        bar.finish_and_clear();
        Ok(FlashieldRuns { lines })
    }

    /// A row for each workload, a column for each of `names`, and the medians.
    fn table<'a, const N: usize>(
        &'a self,
        names: [String; N],
        tallies: impl Fn(&'a FlashieldLine) -> &'a [Tally],
        show: impl Fn(f64) -> String,
        figure: impl Fn(&Tally) -> f64,
    ) -> Report {
        let headings: Vec<&str> =
            ["workload", "input"].into_iter().chain(names.iter().map(String::as_str)).collect();
        let mut report = Report::new(&headings);
        let mut columns = vec![Vec::new(); N];
        for line in &self.lines {
            let figures: Vec<f64> = tallies(line).iter().take(N).map(&figure).collect();
            columns.iter_mut().zip(&figures).for_each(|(column, figure)| column.push(*figure));
            report.row(
                [line.name.clone(), line.label.clone()].into_iter().chain(figures.into_iter().map(&show)),
            );
        }
        let medians = columns.iter().map(|column| show(median(column)));
        report.row(["**median**".to_owned(), String::new()].into_iter().chain(medians));
        report
    }

    pub fn clwa(&self) -> Report {
        let names: [String; 8] = std::array::from_fn(|at| POLICIES[at].to_owned());
        self.table(names, |line| &line.policies, |x| format!("{x:.2}"), Tally::clwa)
    }

    pub fn hit_ratio(&self) -> Report {
        let names = POLICIES.map(str::to_owned);
        self.table(names, |line| &line.policies, |x| format!("{:.2}", x * 100.0), Tally::hit_ratio)
    }

    pub fn byte_hit_ratio(&self) -> Report {
        let names = POLICIES.map(str::to_owned);
        self.table(names, |line| &line.policies, |x| format!("{:.2}", x * 100.0), Tally::byte_hit_ratio)
    }

    pub fn written_per_read(&self) -> Report {
        let names: [String; 8] = std::array::from_fn(|at| POLICIES[at].to_owned());
        self.table(names, |line| &line.policies, |x| format!("{x:.3}"), Tally::written_per_read)
    }

    pub fn index(&self) -> Report {
        let names: [String; PAPER] = std::array::from_fn(|at| POLICIES[at].to_owned());
        let parts = |tally: &Tally| tally.index_bytes as f64 / tally.dram_bytes.max(1) as f64;
        self.table(names, |line| &line.policies, |x| format!("{:.1} %", x * 100.0), parts)
    }

    pub fn thresholds(&self) -> (Report, Report) {
        let names = || THRESHOLDS.map(|n| format!("n = {n}"));
        self.pair(names, |line| &line.thresholds)
    }

    pub fn ratios(&self) -> (Report, Report) {
        self.pair(|| RATIOS.map(|ratio| format!("1:{ratio}")), |line| &line.ratios)
    }

    pub fn paper_ratios(&self) -> (Report, Report) {
        self.pair(|| RATIOS.map(|ratio| format!("1:{ratio}")), |line| &line.paper_ratios)
    }

    /// CLWA and hit ratio of the same runs.
    fn pair<'a, const N: usize>(
        &'a self,
        names: impl Fn() -> [String; N],
        tallies: impl Fn(&'a FlashieldLine) -> &'a [Tally],
    ) -> (Report, Report) {
        (
            self.table(names(), &tallies, |x| format!("{x:.2}"), Tally::clwa),
            self.table(names(), &tallies, |x| format!("{:.2}", x * 100.0), Tally::hit_ratio),
        )
    }

    pub fn parts(&self) -> Report {
        let mut report = Report::new(&["workload", "space", "CLWA", "hit ratio", "FIFO's", "difference"]);
        for line in &self.lines {
            for (part, [ours, fifo]) in PARTS.iter().zip(&line.parts) {
                let (hits, fifo) = (ours.hit_ratio() * 100.0, fifo.hit_ratio() * 100.0);
                report.row([
                    line.name.clone(),
                    format!("{:.0} %", part * 100.0),
                    format!("{:.2}", ours.clwa()),
                    format!("{hits:.2}"),
                    format!("{fifo:.2}"),
                    format!("{:+.2}", hits - fifo),
                ]);
            }
        }
        report
    }

    /// A line for each run, unrounded.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "workload,input,policy,part,ratio,hit_ratio,byte_hit_ratio,clwa,written_per_read,flash_reads_per_hit,dram_bytes,index_bytes\n",
        );
        for line in &self.lines {
            let mut add = |policy: &str, part: f64, ratio: u64, t: &Tally| {
                text.push_str(&format!(
                    "{},\"{}\",{policy},{part},{ratio},{},{},{},{},{},{},{}\n",
                    line.name,
                    line.label,
                    t.hit_ratio(),
                    t.byte_hit_ratio(),
                    t.clwa(),
                    t.written_per_read(),
                    t.flash_reads_per_hit(),
                    t.dram_bytes,
                    t.index_bytes
                ));
            };
            POLICIES.iter().zip(&line.policies).for_each(|(policy, t)| add(policy, PART, RATIO, t));
            let thresholds = THRESHOLDS.iter().zip(&line.thresholds);
            thresholds.for_each(|(n, t)| add(&format!("flashield:{n}"), PART, RATIO, t));
            RATIOS.iter().zip(&line.ratios).for_each(|(ratio, t)| add(POLICIES[0], PART, *ratio, t));
            RATIOS.iter().zip(&line.paper_ratios).for_each(|(ratio, t)| add("flashield", PART, *ratio, t));
            for (part, [ours, fifo]) in PARTS.iter().zip(&line.parts) {
                add(POLICIES[0], *part, RATIO, ours);
                add("fifo", *part, RATIO, fifo);
            }
        }
        text
    }

    /// For a plot: the paper's policies on each workload.
    pub fn bars(&self, figure: impl Fn(&Tally) -> f64) -> (Vec<&'static str>, Vec<(String, Vec<f64>)>) {
        let groups = self
            .lines
            .iter()
            .map(|line| (short(&line.name), line.policies[..PAPER].iter().map(&figure).collect()));
        (POLICIES[..PAPER].to_vec(), groups.collect())
    }
}

/// A name short enough to fit under its bars.
fn short(name: &str) -> String {
    name.split('_').next().unwrap_or_default().chars().take(11).collect()
}

/// The median (the mean of the two in the middle).
pub fn median(values: &[f64]) -> f64 {
    let mut samples = granary_lab::Samples::default();
    values.iter().for_each(|value| samples.push(*value));
    samples.median()
}
