//! `granary study dictionary`: the seed's experiment on Granary and on ClickHouse, block and buffer sizes,
//! reads against fio, and reopening.

mod contender;
mod device;
mod grid;
mod page;
mod seed;
mod size;

use std::path::PathBuf;

use clap::Args;
use granary_lab::{ClickHouse, bars};

use crate::failure::{Result, at};
use crate::scratch::Scratch;
use crate::study::figure;
use crate::study::machine;
use contender::Granary;
use size::DictionaryStudySize;

pub use device::WriteUntilKilled;

/// Arguments of `granary study dictionary`.
#[derive(Args)]
pub struct DictionaryStudyArguments {
    /// Where dictionary.md, dictionary.csv and dictionary.svg go
    #[arg(long, value_name = "DIR", default_value = "docs/studies")]
    out: PathBuf,

    /// Runs of each measurement, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    repetitions: u64,

    /// Small sizes, one run: to see that it works. The figures mean nothing
    #[arg(long)]
    quick: bool,

    /// Folder on the device to measure; a new folder in it is used and removed
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    data: PathBuf,

    /// The folder with the drivers of what Granary is compared with
    #[arg(long, value_name = "DIR", default_value = "rivals")]
    rivals: PathBuf,
}

const INSTALL: &str = "scripts/install-rivals.sh installs it";

/// Runs all of it and writes the page.
pub fn run(arguments: &DictionaryStudyArguments) -> Result<()> {
    let size = if arguments.quick {
        DictionaryStudySize::quick()
    } else {
        DictionaryStudySize::full(arguments.repetitions as usize)
    };
    std::fs::create_dir_all(&arguments.out).map_err(at(&arguments.out))?;
    let scratch = Scratch::new(&arguments.data)?;
    let rivals = arguments.rivals.canonicalize().map_err(at(&arguments.rivals))?;
    let source = seed::source_program(&rivals, &scratch.path)?;

    let mut notes = machine::describe(&scratch.path);
    let mut granary = Granary::open(&scratch.path.join("granary"), &source)?;
    notes.push(format!("Granary: {}", env!("CARGO_PKG_VERSION")));
    let mut clickhouse = match ClickHouse::start(&rivals, &scratch.path.join("clickhouse")) {
        Ok(engine) => Some(engine),
        Err(error) => {
            eprintln!("ClickHouse is left out: {error} ({INSTALL})");
            None
        }
    };
    notes.push(match &mut clickhouse {
        Some(engine) => format!("ClickHouse: {} (chdb)", engine.run("SELECT version()")?.1.trim()),
        None => format!("ClickHouse: not installed; {INSTALL}"),
    });
    let alone = seed::source_alone(&source, &size)?;
    notes.push(format!("the source alone, {} keys: {} s", size.keys, figure::seconds(&alone)));
    say!("{}", notes.join("\n"));

    let seed = seed::run(&size, &mut granary, clickhouse.as_mut(), &source)?;
    drop(clickhouse);
    say!("\n{}\n", seed.report().text());
    let grid = grid::run(&size, &mut granary)?;
    drop(granary);
    say!("{}\n\n{}\n", grid.fills.text(), grid.reads.text());
    let device = device::run(&size, &scratch.path, &rivals)?;
    say!("{}\n", device.report().text());
    if let Some(version) = &device.fio_version {
        notes.push(format!("fio: {version}"));
    }

    let place = |name: &str| arguments.out.join(name);
    let write = |name: &str, text: String| std::fs::write(place(name), text).map_err(at(&place(name)));
    let page = page::DictionaryPage { size: &size, notes: &notes, seed: &seed, grid: &grid, device: &device };
    write("dictionary.md", page.text())?;
    write("dictionary.csv", page.csv())?;
    let (series, groups) = seed.bars(&size);
    bars(&place("dictionary.svg"), "Filling and reading a cache dictionary", "seconds", &series, &groups)?;
    say!("Written: dictionary.md, dictionary.csv, dictionary.svg in {}", arguments.out.display());
    Ok(())
}
