//! Items four times as large as the given RAM, so that most are on the device.

use std::path::Path;

use granary_lab::{Asking, Fio, Items, Load, MemoryLimit, Report, Samples, fio_random_reads, interleave};
use granary_memcached::limits::BLOCK_BYTES;

use super::page::{form, judged, ratio, reached};
use super::servers::{self, MemcachedServer, Resources};
use super::{INSTALL, MemcachedRuns, MemcachedStudySize};
use crate::failure::{Failure, Result};

/// Connections, and how each asks.
const LOADS: [(usize, Asking); 7] = [
    (64, Asking::InTurns(1)),
    (128, Asking::InTurns(1)),
    (4, Asking::InTurns(16)),
    (4, Asking::Together(16)),
    (4, Asking::KeepingUp(16)),
    (8, Asking::Together(16)),
    (8, Asking::KeepingUp(16)),
];
pub const VALUE_BYTES: usize = 1000;
/// Wanted speed of hits on the device, as a multiple of extstore's.
const WANTED: f64 = 2.0;
/// Wanted part of fio's reads a second, and multiple of its 99th percentile.
const FIO_SHARE_WANTED: f64 = 0.8;
const FIO_P99_WANTED: f64 = 1.5;
/// If filled faster, memcached drops items: it makes room for them too slowly.
const FILL_BYTES_PER_SECOND: f64 = 20e6;
/// memcached's own RAM beside that for items: threads, buffers for pages and writes. The unused rest is page cache.
pub const BESIDE_ITEMS_BYTES: u64 = 64 << 20;
/// Bytes of a read of Granary with this much RAM and flash.
const BLOCK: usize = BLOCK_BYTES as usize;

/// Runs of a contender under one load.
#[derive(Default)]
pub struct OnFlash {
    pub all: MemcachedRuns,
    /// Hits from the device a second.
    pub hits: Samples,
    /// Reads of the device per such hit.
    pub reads_per_hit: Samples,
}

/// By load: Granary, extstore, fio.
pub struct Flash {
    pub runs: Vec<([OnFlash; 2], Vec<Fio>)>,
    pub is_limited: bool,
}

/// A server's statistics: hits on the device, and reads for these.
fn on_flash(contender: usize, server: &MemcachedServer) -> Result<[u64; 2]> {
    let group = ["granary", ""][contender];
    let statistics = server.statistics(group)?;
    let names = [["hits_flash", "reads"], ["get_extstore", "extstore_objects_read"]][contender];
    Ok(names.map(|name| statistics.get(name).copied().unwrap_or(0)))
}

/// Runs the measurements.
pub fn run(size: &MemcachedStudySize, scratch: &Path, rivals: &Path) -> Result<Flash> {
    let items = Items { keys: size.flash_keys, value_bytes: VALUE_BYTES };
    let given =
        Resources { memory_bytes: size.flash_memory_bytes, flash_bytes: size.flash_bytes, threads: 4 };
    let limit = MemoryLimit::new(given.memory_bytes + BESIDE_ITEMS_BYTES).ok();
    let is_limited = limit.is_some();
    let folder = scratch.join("flash");
    // All items that leave RAM go to the device, as with extstore.
    let servers =
        [servers::granary(&folder, given, "probability:1")?, servers::memcached(scratch, given, limit)?];
    let failed = |error| Failure::File("load".to_owned(), error);
    for server in &servers {
        items.fill(server.address, FILL_BYTES_PER_SECOND).map_err(failed)?;
    }
    let mut all = Vec::new();
    for (connections, asking) in LOADS {
        let mut runs = <[OnFlash; 2]>::default();
        let mut fio = Vec::new();
        let mut seed = 0;
        interleave(size.repetitions, 3, |contender| {
            seed += 1;
            if contender == 2 {
                let (file, seconds) = (folder.join("memcached/items.bin"), size.time.as_secs().max(1) as u32);
                let bytes = size.flash_keys * VALUE_BYTES as u64 * 3 / 4;
                return match fio_random_reads(
                    rivals,
                    &file,
                    bytes,
                    BLOCK,
                    connections * asking.gets(),
                    seconds,
                ) {
                    Ok(read) => {
                        fio.push(read.clone());
                        Ok(read.iops)
                    }
                    Err(error) => {
                        eprintln!("fio is left out: {error} ({INSTALL})");
                        Ok(f64::NAN)
                    }
                };
            }
            let load = Load { connections, asking, time: size.time, seed };
            let server = &servers[contender];
            let before = on_flash(contender, server)?;
            let figures = items.ask(server.address, &load).map_err(failed)?;
            let after = on_flash(contender, server)?;
            let [hits, reads] = [0, 1].map(|i| (after[i] - before[i]) as f64);
            let run = &mut runs[contender];
            run.hits.push(hits / size.time.as_secs_f64());
            run.reads_per_hit.push(reads / hits);
            run.all.push(&figures);
            Ok::<_, Failure>(figures.operations_per_second())
        })?;
        all.push((runs, fio));
    }
    Ok(Flash { runs: all, is_limited })
}

fn median(fio: &[Fio], figure: impl Fn(&Fio) -> f64) -> f64 {
    let mut samples = Samples::default();
    fio.iter().for_each(|run| samples.push(figure(run)));
    samples.median()
}

impl Flash {
    /// A line for each load and contender.
    pub fn report(&self) -> Report {
        let mut report = Report::new(&[
            "connections x keys",
            "",
            "hits on the device/s",
            "ratio",
            "wanted",
            "reached",
            "all gets/s",
            "found",
            "reads a hit",
            "median, us",
            "p99, us",
        ]);
        let theirs = LOADS.iter().zip(&self.runs).map(|((connections, asking), ([_, theirs], _))| {
            ((*connections, asking.gets()), theirs.hits.median())
        });
        let judged = judged(&theirs.collect::<Vec<_>>());
        let loads = LOADS.into_iter().zip(judged);
        for (((connections, asking), is_judged), ([ours, theirs], fio)) in loads.zip(&self.runs) {
            let depth = connections * asking.gets();
            let load = format!("{connections} x {}{}", asking.gets(), form(asking));
            let row = |name: &str, ratio: [String; 3], runs: &OnFlash| {
                [load.clone(), name.to_owned(), format!("{:.0}", runs.hits.median())]
                    .into_iter()
                    .chain(ratio)
                    .chain([
                        format!("{:.0}", runs.all.operations.median()),
                        format!("{:.1} %", 100.0 * runs.all.hit_ratio.median()),
                        format!("{:.2}", runs.reads_per_hit.median()),
                        format!("{:.0}", runs.all.median_us.median()),
                        format!("{:.0}", runs.all.p99_us.median()),
                    ])
            };
            let none = || ["".to_owned(), "".to_owned(), "".to_owned()];
            report.row(row("Granary", none(), ours));
            let times = ratio(&ours.hits, &theirs.hits);
            let verdict = match is_judged {
                true => [format!("{times:.2}"), format!("{WANTED:.1}"), reached(times >= WANTED)],
                false => [format!("{times:.2}"), "-".to_owned(), "-".to_owned()],
            };
            report.row(row("memcached extstore", verdict, theirs));
            if fio.is_empty() {
                continue;
            }
            let share = ours.hits.median() / median(fio, |run| run.iops);
            let slower = ours.all.p99_us.median() / median(fio, |run| run.latency_us_p99);
            report.row([
                load.clone(),
                format!("fio, {BLOCK} bytes, depth {depth}"),
                format!("{:.0}", median(fio, |run| run.iops)),
                format!("{share:.2}; p99 {slower:.1}"),
                format!("{FIO_SHARE_WANTED}; {FIO_P99_WANTED}"),
                format!("{}; {}", reached(share >= FIO_SHARE_WANTED), reached(slower <= FIO_P99_WANTED)),
                String::new(),
                String::new(),
                "1".to_owned(),
                format!("{:.0}", median(fio, |run| run.latency_us_mean)),
                format!("{:.0}", median(fio, |run| run.latency_us_p99)),
            ]);
        }
        report
    }
}
