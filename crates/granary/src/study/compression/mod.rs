//! `granary study compression`: codecs on real values, the seed's experiment, and page compression in RocksDB.

mod trace;

use std::path::{Path, PathBuf};

use clap::Args;
use granary_lab::compression::CompressionStudy;

use crate::failure::{Result, at};
use crate::scratch::Scratch;
use crate::study::machine;

/// Arguments of `granary study compression`.
#[derive(Args)]
pub struct CompressionStudyArguments {
    /// The folder with the values, which `rivals/values/fetch.sh` fetches
    #[arg(long, value_name = "DIR", default_value = "rivals/values/data")]
    values: PathBuf,

    /// Where compression.md, compression.csv and compression.svg go
    #[arg(long, value_name = "DIR", default_value = "docs/studies")]
    out: PathBuf,

    /// A trace whose keys get real values: hits of a memcached server with and without compression. Left out unless
    /// given
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Replay the trace so many times side by side, each for keys of its own
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    copies: u32,

    /// Runs of each measurement, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    repetitions: u64,

    /// One short run: to see that it works. The figures mean nothing
    #[arg(long)]
    quick: bool,

    /// Folder on the device to measure; a new folder in it is used and removed
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    data: PathBuf,

    /// The folder with the drivers of what Granary is compared with
    #[arg(long, value_name = "DIR", default_value = "rivals")]
    rivals: PathBuf,
}

/// Reads and writes of a run of the seed's experiment.
const OPERATIONS: u64 = 20_000;
const OPERATIONS_QUICK: u64 = 2_000;

/// The values for keys of the trace.
const TRACE_VALUES: [&str; 2] = ["mdn.values", "crates.values"];

/// Runs all of it and writes the page.
pub fn run(arguments: &CompressionStudyArguments) -> Result<()> {
    let (rounds, operations) = match arguments.quick {
        true => (1, OPERATIONS_QUICK),
        false => (arguments.repetitions as usize, OPERATIONS),
    };
    std::fs::create_dir_all(&arguments.out).map_err(at(&arguments.out))?;
    let scratch = Scratch::new(&arguments.data)?;
    let notes = machine::describe(&scratch.path);
    let study = CompressionStudy {
        values: &arguments.values,
        scratch: &scratch.path,
        rivals: &arguments.rivals,
        rounds,
        operations,
    };
    let findings = study.run(|line| say!("{line}"))?;
    let hits = arguments.trace.as_deref().map(|trace| hits(arguments, trace, &scratch.path)).transpose()?;
    let place = |name: &str| arguments.out.join(name);
    let write = |name: &str, text: String| std::fs::write(place(name), text).map_err(at(&place(name)));
    let hits = hits.map_or(String::new(), |hits| hits.text());
    write("compression.md", findings.text(&notes, arguments.quick) + &hits)?;
    write("compression.csv", findings.csv())?;
    findings.plot(&place("compression.svg"))?;
    say!("Written: compression.md, compression.csv, compression.svg in {}", arguments.out.display());
    Ok(())
}

/// Hits on a trace.
fn hits(arguments: &CompressionStudyArguments, trace: &Path, disk: &Path) -> Result<trace::TraceFindings> {
    let values = TRACE_VALUES.map(|name| arguments.values.join(name));
    let values: Vec<&Path> = values.iter().map(PathBuf::as_path).filter(|path| path.exists()).collect();
    let hits = trace::run(trace, arguments.copies, &values, disk)?;
    say!("{}", hits.table_text());
    Ok(hits)
}
