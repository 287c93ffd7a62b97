//! `granary study cache`: the value of a cache in front of an on-disk store, against LevelDB and RocksDB.

mod child;

use std::path::{Path, PathBuf};

use clap::Args;
use granary_lab::MemoryLimit;
use granary_lab::store::{Part, Programs, Size, StoreStudy};

pub use child::StoreProcess;

use crate::failure::{Result, at};
use crate::scratch::Scratch;
use crate::study::machine;

/// Arguments of `granary study cache`.
#[derive(Args)]
pub struct CacheStudyArguments {
    /// Where cache.md, cache.csv and the plots go, and may be from before
    #[arg(long, value_name = "DIR", default_value = "docs/studies")]
    out: PathBuf,

    /// Runs of each measurement, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    repetitions: u64,

    /// Keys of the large store: 116 bytes each, three times on the device
    #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(10_000..=10_000_000_000))]
    keys: u64,

    /// Parts to measure, of blocks, large, model, division and skewed; all of them unless given. The others stay as
    /// they are in the page
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = part)]
    only: Vec<Part>,

    /// Small sizes, one run: to see that it works. The figures mean nothing
    #[arg(long, conflicts_with = "keys")]
    quick: bool,

    /// Folder on the device to measure; a new folder in it is used and removed
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    data: PathBuf,

    /// The folder with the drivers of what Granary is compared with
    #[arg(long, value_name = "DIR", default_value = "rivals")]
    rivals: PathBuf,
}

fn part(name: &str) -> std::result::Result<Part, String> {
    let names = || Part::ALL.map(Part::name).join(", ");
    let found = Part::ALL.into_iter().find(|part| part.name() == name);
    found.ok_or_else(|| format!("the parts are {}", names()))
}

/// Bytes of a limit that is tried, to find out whether a process can be limited here.
const SOME_RAM_BYTES: u64 = 1 << 30;

/// Runs the parts asked for and writes the page.
pub fn run(arguments: &CacheStudyArguments) -> Result<()> {
    let size = match arguments.quick {
        true => Size::quick(),
        false => Size::full(arguments.repetitions, arguments.keys),
    };
    std::fs::create_dir_all(&arguments.out).map_err(at(&arguments.out))?;
    let scratch = Scratch::new(&arguments.data)?;
    let programs = programs(&arguments.rivals);
    let mut notes = machine::describe(&scratch.path);
    notes.push(format!("Granary: {}", env!("CARGO_PKG_VERSION")));
    say!("{}", notes.join("\n"));
    let parts = if arguments.only.is_empty() { Part::ALL.into() } else { arguments.only.clone() };
    let study = StoreStudy { programs: &programs, scratch: &scratch.path, size, parts };
    let findings = study.run(&|line| say!("{line}"))?;
    let place = |name: &str| arguments.out.join(name);
    let write = |name: &str, text: String| std::fs::write(place(name), text).map_err(at(&place(name)));
    // Parts that `--only` leaves out stay as they were.
    let before = |name: &str| std::fs::read_to_string(place(name)).unwrap_or_default();
    write("cache.md", findings.text(&notes, &before("cache.md")))?;
    write("cache.csv", findings.csv(&before("cache.csv")))?;
    let plots = findings.plot(&arguments.out)?.len();
    say!("Written: cache.md, cache.csv and {plots} plots in {}", arguments.out.display());
    Ok(())
}

/// This program, even if its file was replaced meanwhile, and the driver of the peers if it is there.
fn programs(rivals: &Path) -> Programs {
    let this = format!("/proc/{}/exe", std::process::id());
    let peers = rivals.join("stores/stores");
    let peers = peers.canonicalize().ok();
    if peers.is_none() {
        say!("LevelDB and RocksDB are left out: rivals/stores/setup.sh compiles their driver");
    }
    let can_limit = MemoryLimit::new(SOME_RAM_BYTES).is_ok();
    if !can_limit {
        say!("No memory cgroup can be made, which takes root: nobody is held to some RAM");
    }
    Programs { granary: [&this, "study", "store-process"].map(Into::into).into(), peers, can_limit }
}
