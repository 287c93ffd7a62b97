//! The engine against the device: block reads beside fio's, and opening a big cache again.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use granary_lab::{Reopening, Report, Samples, block_reads, fio_random_reads, reopening, write_until_killed};

use super::INSTALL;
use super::size::DictionaryStudySize;
use crate::failure::{Failure, Result, at};
use crate::study::figure::{bytes, count, reached};

/// Reads that each of Granary's threads keeps in flight; fio does the same.
const DEPTH: usize = 64;
const BLOCK: usize = 4096;
/// Wanted part of fio's reads a second.
const SHARE_WANTED: f64 = 0.9;
const CLEAN_SECONDS_WANTED: f64 = 2.0;
const KILLED_SECONDS_WANTED: f64 = 5.0;
/// How long the process writes before it is killed.
const WRITING: Duration = Duration::from_millis(300);

/// Results of both parts.
pub struct Device {
    file: u64,
    /// Granary's reads of the device a second.
    pub granary: Samples,
    /// fio's; empty without fio.
    pub fio: Samples,
    pub fio_version: Option<String>,
    /// Blocks read for each key found.
    pub reads_per_hit: f64,
    pub reopening: Reopening,
}

/// Runs both parts.
pub fn run(size: &DictionaryStudySize, scratch: &Path, rivals: &Path) -> Result<Device> {
    let path = scratch.join("blocks");
    let (mut granary, mut fio) = (Samples::default(), Samples::default());
    let (mut fio_version, mut reads_per_hit) = (None, f64::NAN);
    {
        let mut read = block_reads(&path, size.block_file, size.block_lookups)?;
        let file = path.with_extension("bin");
        for _ in 0..size.repetitions {
            let run = read();
            granary.push(run.reads as f64 / run.seconds);
            reads_per_hit = run.block_reads as f64 / run.hits as f64;
            match fio_random_reads(rivals, &file, size.block_file, BLOCK, DEPTH, size.fio_seconds) {
                Ok(answer) => {
                    fio.push(answer.iops);
                    fio_version = Some(answer.version);
                }
                Err(error) => eprintln!("fio is left out: {error} ({INSTALL})"),
            }
        }
    }
    remove(&path);
    let path = scratch.join("reopened");
    let reopening = reopening(&path, size.reopened_entries, || kill_a_writer(&path, size.reopened_entries))?;
    remove(&path);
    Ok(Device { file: size.block_file, granary, fio, fio_version, reads_per_hit, reopening })
}

fn remove(path: &Path) {
    // Files that remain are removed with the whole folder.
    let _ = std::fs::remove_file(path.with_extension("bin"));
}

/// Lets another process write to the cache and kills it with SIGKILL.
fn kill_a_writer(path: &Path, entries: u64) -> Result<()> {
    // This program, even if its file was replaced meanwhile.
    let program = PathBuf::from("/proc/self/exe");
    let mut child = Command::new(&program)
        .args(["study", "write-until-killed", "--entries", &entries.to_string(), "--path"])
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(at(&program))?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).map_err(at(&program))?;
    std::thread::sleep(WRITING);
    child.kill().map_err(at(&program))?;
    child.wait().map_err(at(&program))?;
    if line.trim() == "ready" { Ok(()) } else { Err(Failure::Answer(line)) }
}

/// Arguments of the process that is killed.
#[derive(Args)]
pub struct WriteUntilKilled {
    #[arg(long)]
    path: PathBuf,
    #[arg(long)]
    entries: u64,
}

impl WriteUntilKilled {
    /// Opens the cache, prints `ready`, and writes.
    pub fn run(&self) -> Result<()> {
        Ok(write_until_killed(&self.path, self.entries, || say!("ready"))?)
    }
}

impl Device {
    /// The table.
    pub fn report(&self) -> Report {
        let mut report = Report::new(&["measure", "Granary", "beside it", "wanted", "reached"]);
        let per_second = |samples: &Samples| match samples.median() {
            median if median.is_nan() => "-".to_owned(),
            median => format!(
                "{} ({}..{})",
                count(median as u64),
                count(samples.min() as u64),
                count(samples.max() as u64)
            ),
        };
        let share = Some(self.granary.median() / self.fio.median()).filter(|share| share.is_finite());
        report.row([
            format!(
                "reads a second, of {} or a little more, {} file, depth {DEPTH}",
                bytes(BLOCK as u64),
                bytes(self.file)
            ),
            per_second(&self.granary),
            format!("fio: {}", per_second(&self.fio)),
            format!("{:.0} %", SHARE_WANTED * 100.0),
            match share {
                Some(share) => {
                    format!("{}, {:.0} %", reached(Some(share), Some(SHARE_WANTED)), share * 100.0)
                }
                None => "-".to_owned(),
            },
        ]);
        report.row([
            "blocks read for a key found".to_owned(),
            format!("{:.3}", self.reads_per_hit),
            "-".to_owned(),
            "1.02 at most".to_owned(),
            yes(self.reads_per_hit <= 1.02),
        ]);
        for (how, (time, entries), wanted) in [
            ("a clean stop", self.reopening.clean, CLEAN_SECONDS_WANTED),
            ("kill -9", self.reopening.killed, KILLED_SECONDS_WANTED),
        ] {
            report.row([
                format!("opening {} entries after {how}, s", count(self.reopening.entries)),
                format!("{:.3}", time.as_secs_f64()),
                format!("{} were there", count(entries)),
                format!("{wanted} at most"),
                yes(time.as_secs_f64() <= wanted),
            ]);
        }
        report
    }
}

fn yes(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}
