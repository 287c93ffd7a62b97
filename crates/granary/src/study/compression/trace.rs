//! A memcached server with and without compression on a trace, with the same RAM and flash, against the model.

use std::path::Path;

use granary_lab::Report;
use granary_lab::compression::{Values, stored_by_zstd};
use granary_lab::model::{Budget, Policy, Workload, replay};
use granary_lab::remote::{Content, KEY_BYTES};
use granary_lab::trace::Source;
use granary_lab::trace::generate::Scale;
use granary_memcached::Compression;

use crate::failure::{Result, at};
use crate::replay::{DRAWN, Serving, describe, exact_model, load};
use crate::study::replay::{budget, on_disk};

const TEXT: &str = include_str!("trace.md");

const POLICIES: [&str; 2] = ["flashield", "reuse"];

/// Hit ratios of reads: predicted by the model, and measured on the server.
#[derive(Clone, Copy)]
struct Hits {
    model: f64,
    server: f64,
}

struct TraceLine {
    values: String,
    policy: &'static str,
    times_smaller: f64,
    none: Hits,
    zstd: Hits,
}

/// Results of the replays.
#[derive(Default)]
pub struct TraceFindings {
    /// By kind of values: a description of the workload with them, and the server's space.
    workloads: Vec<(String, Budget)>,
    lines: Vec<TraceLine>,
}

/// Replays the trace with the values of each file, on the disk of a folder.
pub fn run(trace: &Path, copies: u32, values: &[&Path], disk: &Path) -> Result<TraceFindings> {
    let scale = Scale { requests: DRAWN, keys: None, seed: 1 };
    let source = Source { path: trace.to_owned(), format: None, scale, cluster: None };
    let workload = load(&source, Workload::REQUESTS_MAX, copies)?;
    let (on_disk, mut findings) = (on_disk(disk), TraceFindings::default());
    for path in values {
        let Values { name, train, test } = Values::load(path).map_err(at(path))?;
        let values = [train, test].concat();
        let (stored, codec_bytes) = stored_by_zstd(&values);
        let place = |key| Content::place_of(key, values.len());
        let raw = workload.clone().with_object_bytes(|key| (KEY_BYTES + values[place(key)].len()) as u32);
        let compressed = raw.clone().with_object_bytes(|key| (KEY_BYTES + stored[place(key)]) as u32);
        let budget = budget(&raw);
        let beside = Budget { dram_bytes: budget.dram_bytes.saturating_sub(codec_bytes), ..budget };
        let bytes = |values: &[usize]| values.iter().sum::<usize>() as f64;
        let lengths: Vec<usize> = values.iter().map(Vec::len).collect();
        for policy in POLICIES {
            let hits = |compression, budget: &Budget, as_stored: &Workload| -> Result<Hits> {
                let parsed: Policy = policy.parse().expect("the names are ours");
                let admission = parsed.admission().expect("the server has it").clone();
                let mut model = exact_model(&parsed, budget, raw.keys).expect("the server has it");
                let model = replay(&mut *model, as_stored, &[], |_| ()).hit_ratio();
                let name = format!("{name}, {policy}, {compression}");
                let serving = Serving { admission, compression };
                let served = on_disk.replay(&name, &serving, budget, &raw, &Content::given(&values))?;
                Ok(Hits { model, server: served.tally.hit_ratio() })
            };
            findings.lines.push(TraceLine {
                values: name.clone(),
                policy,
                times_smaller: bytes(&lengths) / bytes(&stored),
                none: hits(Compression::None, &budget, &raw)?,
                zstd: hits(Compression::Zstd, &beside, &compressed)?,
            });
        }
        findings.workloads.push((format!("{name}: {}", describe(&raw)), budget));
    }
    Ok(findings)
}

impl TraceFindings {
    fn table(&self) -> Report {
        let mut report = Report::new(&[
            "values",
            "policy",
            "times smaller",
            "none: model",
            "server",
            "zstd: model",
            "server",
            "rise: model",
            "server",
        ]);
        let percent = |ratio: f64| format!("{:.1} %", ratio * 100.0);
        for TraceLine { values, policy, times_smaller, none, zstd } in &self.lines {
            let cells = [none.model, none.server, zstd.model, zstd.server].map(percent);
            let rises = [zstd.model - none.model, zstd.server - none.server];
            let rises = rises.map(|rise| format!("{:+.1}", rise * 100.0));
            let first = [values.clone(), (*policy).to_owned(), format!("{times_smaller:.1}")];
            report.row(first.into_iter().chain(cells).chain(rises));
        }
        report
    }

    /// The table, for a terminal.
    pub fn table_text(&self) -> String {
        self.table().text()
    }

    /// The section of the page.
    pub fn text(&self) -> String {
        let workload = |(description, budget): &(String, Budget)| {
            let [dram, flash] = [budget.dram_bytes, budget.flash_bytes].map(|bytes| bytes as f64 / 1e6);
            format!("- {description}; DRAM {dram:.1} MB, flash {flash:.1} MB\n")
        };
        let workloads: String = self.workloads.iter().map(workload).collect();
        format!("\n{TEXT}\n{workloads}\n{}\n", self.table().markdown())
    }
}
