//! `granary study flashield`: the tables of the paper, on other workloads and by the policy code that serves.

mod claims;
mod inputs;
mod page;
mod runs;
mod space;

use std::path::PathBuf;

use clap::Args;
use granary_lab::bars;

use crate::failure::{Failure, Result, at};
use runs::{FlashieldRuns, Scope};
use space::SegmentSpace;

/// Arguments of `granary study flashield`.
#[derive(Args)]
pub struct FlashieldStudyArguments {
    /// The folder with the traces and statistics; what is not there is left out
    #[arg(long, value_name = "DIR")]
    traces: PathBuf,

    /// Where flashield.md, flashield.csv and the plots go
    #[arg(long, value_name = "DIR", default_value = "docs/studies")]
    out: PathBuf,

    /// A folder on the disk that the cache itself is measured on; a new folder in it is used and removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    disk: PathBuf,

    /// Requests of drawn streams
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    requests: u64,

    /// A twentieth of the requests: to see that it works. The figures mean nothing
    #[arg(long)]
    quick: bool,
}

/// Runs all of it and writes the page.
pub fn run(arguments: &FlashieldStudyArguments) -> Result<()> {
    let scope = match arguments.quick {
        true => Scope { requests: arguments.requests / 20, limit: (arguments.requests / 20) as usize },
        false => Scope { requests: arguments.requests, limit: granary_lab::model::Workload::REQUESTS_MAX },
    };
    std::fs::create_dir_all(&arguments.out).map_err(at(&arguments.out))?;
    let inputs = inputs::find(&arguments.traces);
    if inputs.is_empty() {
        return Err(Failure::Argument(format!("no trace of the study is in {}", arguments.traces.display())));
    }
    let space = SegmentSpace::measure(&arguments.disk, arguments.quick)?;
    let runs = FlashieldRuns::all(&inputs, &scope)?;
    for table in [runs.clwa(), runs.hit_ratio()] {
        say!("{}\n", table.text());
    }
    say!("{}\n", claims::report(&runs).text());

    let place = |name: &str| arguments.out.join(name);
    let write = |name: &str, text: String| std::fs::write(place(name), text).map_err(at(&place(name)));
    write("flashield.md", page::text(&runs, &space, arguments.quick))?;
    write("flashield.csv", runs.csv())?;
    let (series, groups) = runs.bars(|tally| tally.clwa());
    bars(&place("flashield-clwa.svg"), "Cache-level write amplification", "CLWA", &series, &groups)?;
    let (series, groups) = runs.bars(|tally| tally.hit_ratio() * 100.0);
    bars(&place("flashield-hits.svg"), "Hit ratio", "%", &series, &groups)?;
    say!(
        "Written: flashield.md, flashield.csv, flashield-clwa.svg, flashield-hits.svg in {}",
        arguments.out.display()
    );
    Ok(())
}
