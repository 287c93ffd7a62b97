//! `granary study replay`: do the models of the lab predict the real server on a real disk?

mod inputs;
mod page;

use std::path::{Path, PathBuf};

use clap::Args;
use granary_lab::model::{Budget, Policy, Tally, Workload, replay};
use granary_lab::remote::{Content, Served};

use crate::failure::{Failure, Result, at};
use crate::progress::bar;
use crate::replay::{OnDisk, Serving, budget_of_server, describe, exact_model, sizes};
use inputs::ReplayStudyInput;

/// Arguments of `granary study replay`.
#[derive(Args)]
pub struct ReplayStudyArguments {
    /// The folder with the traces and statistics; what is not there is left out
    #[arg(long, value_name = "DIR")]
    traces: PathBuf,

    /// A folder on the disk that the server writes to; a new folder in it is used and removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    disk: PathBuf,

    /// Where replay.md and replay.csv go
    #[arg(long, value_name = "DIR", default_value = "docs/studies")]
    out: PathBuf,

    /// A hundredth of the requests in the least space: to see that it works. The figures mean nothing
    #[arg(long)]
    quick: bool,
}

/// Policies that both the model and the server have.
const POLICIES: [&str; 3] = ["reuse", "flashield", "probability:1"];

/// DRAM and flash together, as a part of the working set; ratio of flash to DRAM.
const PART: f64 = 0.15;
const RATIO: u64 = 7;

/// The smallest space that a server is started with here.
const LEAST: Budget = Budget { dram_bytes: 4 << 20, flash_bytes: 16 << 20, segment_bytes: 4 << 20 };

/// One policy on one workload: on the model of the studies, on the model with all costs, and on the server.
struct PolicyRun {
    policy: &'static str,
    model: Tally,
    exact: Tally,
    real: Served,
}

struct ReplayLine {
    name: String,
    description: String,
    budget: Budget,
    copies: u32,
    left_out: usize,
    runs: Vec<PolicyRun>,
}

/// Runs all of it and writes the page.
pub fn run(arguments: &ReplayStudyArguments) -> Result<()> {
    let inputs = inputs::find(&arguments.traces);
    if inputs.is_empty() {
        return Err(Failure::Argument(format!("no trace of the study is in {}", arguments.traces.display())));
    }
    std::fs::create_dir_all(&arguments.out).map_err(at(&arguments.out))?;
    let on_disk = on_disk(&arguments.disk);
    let lines = inputs
        .iter()
        .map(|input| line(input, &on_disk, arguments.quick))
        .collect::<Result<Vec<ReplayLine>>>()?;
    say!("{}", page::hits(&lines).text());
    say!("{}", page::writes(&lines).text());
    for (name, text) in
        [("replay.md", page::text(&lines, arguments.quick)), ("replay.csv", page::csv(&lines))]
    {
        let place = arguments.out.join(name);
        std::fs::write(&place, text).map_err(at(&place))?;
        say!("Written: {}", place.display());
    }
    Ok(())
}

/// The space of the server for this workload: a part of its working set.
pub fn budget(workload: &Workload) -> Budget {
    let wanted = sizes(workload.working_set_bytes(), PART, RATIO);
    budget_of_server(wanted.dram_bytes, wanted.flash_bytes, None)
}

/// Servers in a folder, and the load on them.
pub fn on_disk(folder: &Path) -> OnDisk {
    OnDisk { folder: folder.to_owned(), connections: 8, pipeline: 32 }
}

fn line(input: &ReplayStudyInput, on_disk: &OnDisk, quick: bool) -> Result<ReplayLine> {
    let (workload, left_out) = input.load(quick)?;
    let budget = match quick {
        true => budget_of_server(LEAST.dram_bytes, LEAST.flash_bytes, None),
        false => budget(&workload),
    };
    let watch = bar(2 * POLICIES.len() as u64);
    let mut runs = Vec::new();
    for policy in POLICIES {
        watch.set_message(format!("{}: {policy}", workload.name));
        let parsed: Policy = policy.parse().expect("the names are ours");
        let admission = parsed.admission().expect("the server has it");
        let mut exact = exact_model(&parsed, &budget, workload.keys).expect("the server has it");
        let mut model = parsed.model(&budget, workload.keys);
        let (model, exact) =
            (replay(&mut *model, &workload, &[], |_| ()), replay(&mut *exact, &workload, &[], |_| ()));
        watch.inc(1);
        let content = Content::drawn(&workload);
        let real = on_disk.replay(policy, &Serving::new(admission.clone()), &budget, &workload, &content)?;
        watch.inc(1);
        runs.push(PolicyRun { policy, model, exact, real });
    }
    watch.finish_and_clear();
    let (name, description) = (workload.name.clone(), describe(&workload));
    Ok(ReplayLine { name, description, budget, copies: input.copies, left_out, runs })
}
