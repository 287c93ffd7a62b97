//! `granary replay`: replays a trace on policies, at memory speed and without a device, or on the real server.

mod input;
mod served;
mod table;

use std::path::PathBuf;

use clap::Args;
use granary_lab::model::{Model, Policy, Tally, Workload, replay};
use indicatif::HumanCount;

use crate::failure::{Result, at};
use crate::progress::bar;
pub use input::{DRAWN, ReplayInput, load, sizes};
pub use served::{OnDisk, Serving, budget_of_server, exact_model, object_bytes_max};
use table::bytes;

/// Arguments of `granary replay`.
#[derive(Args)]
pub struct ReplayArguments {
    #[command(flatten)]
    input: ReplayInput,

    #[command(flatten)]
    space: input::CacheSpace,

    /// What to compare, separated by commas; see below
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "reuse,flashield,ripq,victim,fifo,lru,lru-dram,belady"
    )]
    policy: Vec<Policy>,

    #[command(flatten)]
    served: served::ReplayServerArguments,

    /// Write the table to this file, too, as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Shown under `--help`.
pub fn help() -> String {
    let names = Policy::NAMES.map(|(name, what)| format!("  {name:<13} {what}\n")).concat();
    format!(
        "\
Policies:
{names}
A replay is look-aside, as clients of memcached do it: a read that misses is followed by the client's store of
that object. `CLWA` is bytes written to flash for each byte that clients store in this way; `written/read` is
bytes written to flash for each byte that clients ask for. No device is needed, and none is touched, but with
--server or --disk: then the real server has lines of its own, and so has the model with all that an object
takes there. What a server holds, and what it does at the time for others, has its part in its line.

Examples:
  granary replay cluster52.csv --dram 64MiB --flash 448MiB
  granary replay io.csv.gz --part 20 --ratio 15 --policy reuse,flashield:3,ripq
  granary replay twitter_clusters_2020Mar.md --cluster 52 --requests 2000000
  granary replay cachelib/cdn --csv cdn.csv
  granary replay cluster52.csv --disk /mnt/ssd --policy reuse,flashield --dram 64MiB --flash 448MiB
  granary replay web07.trace.xz --copies 100 --disk /mnt/ssd --policy reuse
  granary replay cluster52.csv --server 127.0.0.1:11211"
    )
}

/// Replays a trace through each policy, and prints a line for each.
pub fn run(arguments: &ReplayArguments) -> Result<()> {
    let mut workload = arguments.input.load()?;
    let server = arguments.served.prepare(&mut workload)?;
    if workload.reads() == 0 {
        return Err(crate::failure::Failure::Argument("the trace has no reads".into()));
    }
    let budget = server.budget(arguments.space.budget(&workload));
    say!("{}\n", describe(&workload));
    say!(
        "DRAM {}, flash {} in segments of {}",
        bytes(budget.dram_bytes),
        bytes(budget.flash_bytes),
        bytes(budget.segment_bytes)
    );
    let foresight = arguments.policy.iter().any(Policy::looks_ahead);
    let next_reads = if foresight { workload.next_reads() } else { Vec::new() };
    let mut table = table::Table::new();
    for policy in &arguments.policy {
        let mut model = policy.model(&budget, workload.keys);
        table.add(
            &policy.to_string(),
            &replay_model(&policy.to_string(), &mut *model, &workload, &next_reads),
        );
        server.replay(policy, &budget, &workload, &mut table)?;
    }
    server.replay_running(&budget, &workload, &mut table)?;
    crate::say::say(&table.text());
    if let Some(path) = &arguments.csv {
        std::fs::write(path, table.csv()).map_err(at(path))?;
    }
    Ok(())
}

/// Replays a workload through a model, with a bar.
fn replay_model(name: &str, model: &mut dyn Model, workload: &Workload, next_reads: &[u32]) -> Tally {
    let bar = bar(workload.steps.len() as u64);
    bar.set_message(name.to_owned());
    let tally = replay(model, workload, next_reads, |done| bar.set_position(done as u64));
    bar.finish_and_clear();
    tally
}

/// Describes a workload in a line.
pub fn describe(workload: &Workload) -> String {
    format!(
        "{} ({}): {} requests, {} of them reads, for {} keys; {} of objects, {} at most at a time",
        workload.name,
        workload.label,
        HumanCount(workload.steps.len() as u64),
        HumanCount(workload.reads()),
        HumanCount(u64::from(workload.keys)),
        bytes(workload.unique_bytes()),
        bytes(workload.working_set_bytes()),
    )
}
