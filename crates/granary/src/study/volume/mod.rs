//! `granary study volume`: the costs of maps and of serving, the benefit of the log, and the cost of cleaning.

mod amplification;
mod contender;
mod disk;
mod endurance;
mod inside;
mod load;
mod map_memory;
mod maps;
mod null;
mod opening;
mod page;
mod seed;
mod servers;
mod size;
mod transport;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use granary_lab::Report;

use crate::failure::{Result, at};
use crate::scratch::Scratch;
use crate::study::machine;
use size::VolumeStudySize;

/// Arguments of `granary study volume`.
#[derive(Args)]
pub struct VolumeStudyArguments {
    /// Where volume.md, its tables and its plots go
    #[arg(long, value_name = "DIR", default_value = "docs/studies")]
    out: PathBuf,

    /// Runs of each measurement, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    repetitions: u64,

    /// Small sizes, short runs: to see that it works. The figures mean nothing
    #[arg(long)]
    quick: bool,

    /// Measure these parts only, and leave the others of the page as they are
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    only: Vec<Part>,

    /// Folder on the device to measure; a new folder in it is used and removed
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    data: PathBuf,

    /// Folder in RAM, for what is to cost no device; a new folder in it is used and removed
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    memory: PathBuf,

    /// Minutes of overwrites of a full volume
    #[arg(long, value_name = "N", default_value_t = 60.0)]
    minutes: f64,
}

/// A part of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The maps on a device that does nothing
    Maps,
    /// Memory of the maps
    Memory,
    /// Servers beside each other, in RAM
    Transport,
    /// Servers beside each other, on the device
    Disk,
    /// Write amplification by utilisation
    Amplification,
    /// Opening after a kill
    Opening,
    /// Overwrites of a full volume for a long time
    Endurance,
}

/// Results of a part.
pub struct VolumeFindings {
    /// Its section of the page, in Markdown.
    pub text: String,
    /// Its tables.
    pub reports: Vec<Report>,
}

/// The context of all parts.
pub struct Context<'a> {
    pub size: VolumeStudySize,
    /// A folder on the device.
    pub data: &'a Scratch,
    /// A folder in RAM.
    pub memory: &'a Scratch,
    /// The folder for plots.
    pub out: &'a std::path::Path,
}

/// Runs all of it and writes the page.
pub fn run(arguments: &VolumeStudyArguments) -> Result<()> {
    let size = VolumeStudySize::new(arguments.quick, arguments.repetitions, arguments.minutes);
    std::fs::create_dir_all(&arguments.out).map_err(at(&arguments.out))?;
    let (data, memory) = (Scratch::new(&arguments.data)?, Scratch::new(&arguments.memory)?);
    let notes = machine::describe(&data.path);
    let context = Context { size, data: &data, memory: &memory, out: &arguments.out };
    let mut page = page::VolumePage::read(&arguments.out, arguments.quick)?;
    for part in Part::value_variants() {
        if !arguments.only.is_empty() && !arguments.only.contains(part) {
            continue;
        }
        let findings = part.run(&context)?;
        findings.reports.iter().for_each(|report| say!("{}", report.text()));
        page.put(*part, &findings)?;
    }
    page.write(&notes)?;
    say!("Written: volume.md in {}", arguments.out.display());
    Ok(())
}

impl Part {
    fn run(self, context: &Context<'_>) -> Result<VolumeFindings> {
        say!("{}", self.title());
        match self {
            Part::Maps => maps::run(context),
            Part::Memory => map_memory::run(context),
            Part::Transport => transport::run(context),
            Part::Disk => disk::run(context),
            Part::Amplification => amplification::run(context),
            Part::Opening => opening::run(context),
            Part::Endurance => endurance::run(context),
        }
    }
}
