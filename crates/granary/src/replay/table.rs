//! The results of a replay, for display.

use granary_lab::Report;
use granary_lab::model::Tally;
use granary_lab::remote::Served;
use indicatif::{BinaryBytes, HumanCount};

/// A line for each policy, and for each server.
pub struct Table {
    report: Report,
    csv: Report,
    notes: String,
}

impl Table {
    pub fn new() -> Self {
        let counts = Tally::default().counts();
        let columns: Vec<&str> = std::iter::once("policy")
            .chain(counts.iter().map(|(name, _)| *name))
            .chain(["hit_ratio", "byte_hit_ratio", "clwa"])
            .collect();
        Self {
            report: Report::new(&[
                "policy",
                "hit ratio",
                "byte hit ratio",
                "CLWA",
                "written/read",
                "flash reads/hit",
                "DRAM: objects",
                "DRAM: index",
            ]),
            csv: Report::new(&columns),
            notes: String::new(),
        }
    }

    /// Adds the results of a server.
    pub fn add_served(&mut self, name: &str, served: &Served) {
        self.add(name, &served.tally);
        for (count, what) in [
            (served.refused, "objects were not kept, because the device was behind"),
            (served.left_unseen, "objects left DRAM unseen by the policy, because the device was behind"),
        ] {
            if count > 0 {
                self.notes.push_str(&format!("{name}: {} {what}\n", HumanCount(count)));
            }
        }
    }

    pub fn add(&mut self, policy: &str, tally: &Tally) {
        self.report.row([
            policy.to_owned(),
            percent(tally.hit_ratio()),
            percent(tally.byte_hit_ratio()),
            format!("{:.2}", tally.clwa()),
            format!("{:.3}", tally.written_per_read()),
            format!("{:.2}", tally.flash_reads_per_hit()),
            bytes(tally.dram_bytes),
            bytes(tally.index_bytes),
        ]);
        let counts = tally.counts();
        let ratios = [tally.hit_ratio(), tally.byte_hit_ratio(), tally.clwa()];
        let numbers =
            counts.iter().map(|(_, count)| count.to_string()).chain(ratios.iter().map(f64::to_string));
        self.csv.row(std::iter::once(policy.to_owned()).chain(numbers));
    }

    /// The table and its notes.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.report.text(), self.notes)
    }

    /// Every count, unrounded.
    pub fn csv(&self) -> String {
        self.csv.csv()
    }
}

/// `0.1234` as `12.34 %`.
pub fn percent(ratio: f64) -> String {
    format!("{:.2} %", ratio * 100.0)
}

/// `1536` as `1.50 KiB`.
pub fn bytes(n: u64) -> String {
    BinaryBytes(n).to_string()
}
