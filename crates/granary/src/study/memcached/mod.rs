//! `granary study memcached`: items in RAM against memcached's, items on the device against its extstore's and against
//! fio.

mod flash;
mod memory;
mod page;
mod servers;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use granary_lab::{LoadFigures, Samples};

use crate::failure::{Result, at};
use crate::scratch::Scratch;
use crate::study::machine;

/// Arguments of `granary study memcached`.
#[derive(Args)]
pub struct MemcachedStudyArguments {
    /// Where memcached.md and memcached.csv go
    #[arg(long, value_name = "DIR", default_value = "docs/studies")]
    out: PathBuf,

    /// Runs of each measurement, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    repetitions: u64,

    /// Small sizes, short runs: to see that it works. The figures mean nothing
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

/// The scale of the study.
pub struct MemcachedStudySize {
    pub quick: bool,
    pub repetitions: usize,
    pub time: Duration,
    /// Keys of the items in RAM.
    pub memory_keys: u64,
    /// Keys of items four times as large as RAM.
    pub flash_keys: u64,
    pub flash_memory_bytes: u64,
    pub flash_bytes: u64,
}

impl MemcachedStudySize {
    fn new(arguments: &MemcachedStudyArguments) -> Self {
        let quick = arguments.quick;
        let time = Duration::from_millis(if quick { 300 } else { 4000 });
        Self {
            quick,
            repetitions: if quick { 1 } else { arguments.repetitions as usize },
            time,
            memory_keys: if quick { 2_000 } else { 100_000 },
            flash_keys: if quick { 70_000 } else { 300_000 },
            flash_memory_bytes: 64 << 20,
            flash_bytes: 1 << 30,
        }
    }
}

/// Runs of one contender.
#[derive(Default)]
pub struct MemcachedRuns {
    pub operations: Samples,
    pub median_us: Samples,
    pub p99_us: Samples,
    pub hit_ratio: Samples,
}

impl MemcachedRuns {
    /// Adds a run.
    pub fn push(&mut self, figures: &LoadFigures) {
        self.operations.push(figures.operations_per_second());
        self.median_us.push(figures.percentile_us(0.5));
        self.p99_us.push(figures.percentile_us(0.99));
        self.hit_ratio.push(figures.hit_ratio());
    }
}

/// Runs all of it and writes the page.
pub fn run(arguments: &MemcachedStudyArguments) -> Result<()> {
    let size = MemcachedStudySize::new(arguments);
    std::fs::create_dir_all(&arguments.out).map_err(at(&arguments.out))?;
    let scratch = Scratch::new(&arguments.data)?;
    let rivals = arguments.rivals.canonicalize().map_err(at(&arguments.rivals))?;
    let mut notes = machine::describe(&scratch.path);
    notes.push(format!("Granary: {}", env!("CARGO_PKG_VERSION")));
    notes.push(format!("memcached: {}", servers::version()?));
    say!("{}", notes.join("\n"));
    let memory = memory::run(&size, &scratch.path)?;
    say!("\n{}", memory.report().text());
    let flash = flash::run(&size, &scratch.path, &rivals)?;
    say!("\n{}", flash.report().text());
    let page = page::MemcachedPage { size: &size, notes: &notes, memory: &memory, flash: &flash };
    let place = |name: &str| arguments.out.join(name);
    let write = |name: &str, text: String| std::fs::write(place(name), text).map_err(at(&place(name)));
    write("memcached.md", page.text())?;
    write("memcached.csv", page.csv())?;
    say!("Written: memcached.md and memcached.csv in {}", arguments.out.display());
    Ok(())
}
