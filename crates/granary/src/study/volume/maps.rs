//! The seed's experiment, in process: maps on a device that does nothing, against the device itself.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use granary_lab::{Report, Samples, bars};
use granary_volume::checksums::content_hash;
use granary_volume::map::MapKind;
use granary_volume::{Config, Io, Volume};

use super::contender::{BLOCK, VolumeContender};
use super::load::{Figures, Load};
use super::null::NullDevice;
use super::seed::{self, CONTENDERS, Point, Points};
use super::{Context, VolumeFindings};
use crate::failure::{Result, at};
use crate::study::figure::bytes;

const SIZES: [usize; 7] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 1 << 20];
const MIXES: [u32; 3] = [0, 65, 100];
const JOBS: [usize; 4] = [1, 2, 4, 8];
const DEPTHS: [usize; 4] = [1, 4, 16, 32];
const NAMES: [&str; CONTENDERS] = ["device", "device, checksums", "flat", "hash", "skip list"];
/// Wanted operations of mapped volumes as a part of the device's.
const WANTED: f64 = 0.9;

/// The map `kind` on a device that does nothing, with the first `used` bytes written.
fn mapped(context: &Context<'_>, kind: MapKind, used: u64) -> Result<VolumeContender> {
    let config = Config { map: kind, ..Config::new(context.size.map_volume) };
    let device = NullDevice::new(config.geometry()?.file_bytes())?;
    let folder = context.memory.path.join(format!("maps-{kind}-{used}"));
    // Left by an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let volume = Volume::open_on(&folder, "volume", &config, Box::new(device))?;
    let (mut io, piece) = (Io::new(), vec![0; 1 << 20]);
    for offset in (0..used).step_by(piece.len()) {
        volume.write(&mut io, offset, &piece).map_err(at(&folder))?;
    }
    volume.commit().map_err(at(&folder))?;
    Ok(VolumeContender::Mapped(volume))
}

/// All contenders; volumes are warm unless `used` is 0.
fn contenders(context: &Context<'_>, used: u64) -> Result<Vec<VolumeContender>> {
    let size = context.size.map_volume;
    let zeroes = content_hash(&[0; BLOCK]);
    let sums = (0..size / BLOCK as u64).map(|_| AtomicU64::new(zeroes)).collect();
    let mut all = vec![
        VolumeContender::Bare(NullDevice::new(size)?),
        VolumeContender::Checked(NullDevice::new(size)?, sums),
    ];
    for kind in MapKind::ALL {
        all.push(mapped(context, kind, used)?);
    }
    Ok(all)
}

/// The runs of each contender.
#[derive(Default, Clone)]
struct MapRuns {
    iops: Samples,
    mean_us: Samples,
    p99_us: Samples,
}

impl MapRuns {
    fn push(&mut self, figures: Figures) {
        self.iops.push(figures.iops);
        self.mean_us.push(figures.mean_us);
        self.p99_us.push(figures.p99_us);
    }
}

fn measure(context: &Context<'_>, all: &[VolumeContender], load: Load) -> Result<Vec<MapRuns>> {
    let mut runs = vec![MapRuns::default(); all.len()];
    for _ in 0..context.size.repetitions {
        for (contender, runs) in all.iter().zip(&mut runs) {
            let figures = load.run(contender, context.size.map_used, context.size.time);
            runs.push(figures.map_err(at(Path::new("a device that does nothing")))?);
        }
    }
    Ok(runs)
}

/// The medians of all contenders under a load.
fn point(load: Load, runs: &[MapRuns]) -> Point {
    let medians = |of: fn(&MapRuns) -> &Samples| std::array::from_fn(|i| of(&runs[i]).median());
    Point { load, iops: medians(|runs| &runs.iops), p99_us: medians(|runs| &runs.p99_us) }
}

/// Ratios of the flat map's operations to the device's, and to those of the device with checksums.
struct Reached(f64, f64);

impl Reached {
    fn of(runs: &[MapRuns]) -> Self {
        let [bare, checked, flat] = [0, 1, 2].map(|i| runs[i].iops.median());
        Self(flat / bare, flat / checked)
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} and {:.2}", self.0, self.1)
    }
}

fn headings(first: &[&'static str]) -> Report {
    Report::new(&[first, &NAMES, &["flat : device", "flat : device, checksums"]].concat())
}

/// A line of operations a second, and of the ratio of the flat map's to the device's.
fn line(report: &mut Report, first: &[String], runs: &[MapRuns], scale: f64, digits: usize) {
    let medians: Vec<f64> = runs.iter().map(|runs| runs.iops.median()).collect();
    let figures = medians.iter().map(|median| format!("{:.digits$}", median * scale));
    let ratios = [medians[2] / medians[0], medians[2] / medians[1]].map(|ratio| format!("{ratio:.2}"));
    report.row(first.iter().cloned().chain(figures).chain(ratios));
}

/// One 4 KiB write at a random place: what the other loads differ from.
const RANDOM: Load = Load { bytes: BLOCK, reads_percent: 0, jobs: 1, depth: 1, is_sequential: false };

/// What one thread reaches at random places.
struct OneThread {
    by_size: Report,
    latency: Report,
    /// The bars of the plot: 4 KiB operations.
    groups: Vec<(String, Vec<f64>)>,
    /// Of 4 KiB operations, for each of [`MIXES`].
    reached: Vec<Reached>,
}

fn one_thread(context: &Context<'_>, warm: &[VolumeContender], points: &mut Vec<Point>) -> Result<OneThread> {
    let mut by_size = headings(&["block", "reads, %"]);
    let mut latency = Report::new(&[&["block", "reads, %", "us"], &NAMES[..]].concat());
    let mut groups = Vec::new();
    let mut reached = Vec::new();
    for size in SIZES {
        for reads_percent in MIXES {
            let load = Load { bytes: size, reads_percent, ..RANDOM };
            let runs = measure(context, warm, load)?;
            points.push(point(load, &runs));
            let first = [bytes(size as u64), reads_percent.to_string()];
            line(&mut by_size, &first, &runs, 1.0, 0);
            if size <= 8 << 10 {
                let figure = |name: &str, of: fn(&MapRuns) -> f64| {
                    let figures = runs.iter().map(|runs| format!("{:.2}", of(runs)));
                    first.iter().cloned().chain([name.to_owned()]).chain(figures).collect::<Vec<_>>()
                };
                latency.row(figure("mean", |runs| runs.mean_us.median()));
                latency.row(figure("p99", |runs| runs.p99_us.median()));
            }
            if size == BLOCK {
                reached.push(Reached::of(&runs));
                let values = runs.iter().map(|runs| runs.iops.median()).collect();
                groups.push((format!("4 KiB, {reads_percent} % reads"), values));
            }
        }
    }
    Ok(OneThread { by_size, latency, groups, reached })
}

/// Several threads and requests at once. Returns what 32 reads at a time reach on one thread, too.
fn parallel(
    context: &Context<'_>,
    warm: &[VolumeContender],
    points: &mut Vec<Point>,
) -> Result<(Report, Reached)> {
    let mut parallel = headings(&["jobs", "depth", "reads, %"]);
    let mut deep = None;
    for (jobs, depth) in JOBS.into_iter().flat_map(|jobs| DEPTHS.map(|depth| (jobs, depth))) {
        for reads_percent in MIXES {
            let load = Load { reads_percent, jobs, depth, ..RANDOM };
            let runs = measure(context, warm, load)?;
            points.push(point(load, &runs));
            line(&mut parallel, &[jobs, depth, reads_percent as usize].map(|n| n.to_string()), &runs, 1.0, 0);
            if reads_percent == 100 && depth == 32 && jobs == 1 {
                deep = Some(Reached::of(&runs));
            }
        }
    }
    Ok((parallel, deep.expect("JOBS has 1, and DEPTHS 32")))
}

fn sequential(context: &Context<'_>, warm: &[VolumeContender], points: &mut Vec<Point>) -> Result<Report> {
    let mut sequential = headings(&["block, in order, GB/s", "reads, %"]);
    for (size, reads_percent) in [128 << 10, 1 << 20].into_iter().flat_map(|size| [(size, 0), (size, 100)]) {
        let load = Load { bytes: size, reads_percent, is_sequential: true, ..RANDOM };
        let runs = measure(context, warm, load)?;
        points.push(point(load, &runs));
        line(&mut sequential, &[bytes(size as u64), reads_percent.to_string()], &runs, size as f64 / 1e9, 2);
    }
    Ok(sequential)
}

/// Volumes of which nothing was written before.
fn cold(context: &Context<'_>) -> Result<Report> {
    let mut cold = headings(&["block, cold", "reads, %"]);
    for (size, reads_percent) in SIZES.into_iter().flat_map(|size| MIXES.map(|reads| (size, reads))) {
        let load = Load { bytes: size, reads_percent, ..RANDOM };
        // The blocks that a run writes are warm for the next one, so each run has new contenders.
        let mut runs = vec![MapRuns::default(); NAMES.len()];
        for _ in 0..context.size.repetitions {
            let contenders = contenders(context, 0)?;
            for (contender, runs) in contenders.iter().zip(&mut runs) {
                let figures = load.run(contender, context.size.map_used, context.size.time);
                runs.push(figures.map_err(at(Path::new("a device that does nothing")))?);
            }
        }
        line(&mut cold, &[bytes(size as u64), reads_percent.to_string()], &runs, 1.0, 0);
    }
    Ok(cold)
}

/// Runs the measurements.
pub fn run(context: &Context<'_>) -> Result<VolumeFindings> {
    let used = context.size.map_used;
    let warm = contenders(context, used)?;
    let mut points = Points::default();
    let OneThread { by_size, latency, groups, reached } =
        one_thread(context, &warm, &mut points.one_at_a_time)?;
    let (parallel, deep) = parallel(context, &warm, &mut points.parallel)?;
    let sequential = sequential(context, &warm, &mut points.sequential)?;
    drop(warm);
    let cold = cold(context)?;
    let plot = context.out.join("volume-maps.svg");
    bars(&plot, "4 KiB random operations in process, one thread", "operations/s", &NAMES, &groups)?;
    let [writes, mixed, reads] = &reached[..] else { unreachable!("three mixes") };
    let text = format!(
        "\
The device is `/dev/zero` for reads and `/dev/null` for writes: every operation goes through the kernel and moves no \
data that anybody needs. Reads go through io_uring. `device` has each block in its place; `device, checksums` has a \
checksum of each block in RAM as well, made when it is written and compared when it is read, as volumes do; then \
volumes with each map. They are of {volume}, of which the first {used} are used and written before (`warm`), so that \
cleaning costs nothing. Operations a second; a request of several blocks is one.

Wanted: 4 KiB random operations of the flat map at {WANTED} of those without a map. Reached, of the device that does \
nothing, and of that device with checksums: {writes} for writes, {mixed} for 65 % reads, {reads} for reads one at a time, \
{deep} for reads 32 at a time. The first of each pair is below: what does nothing costs a system call and looks at no byte, \
while a volume has to read each byte for its checksum and, of a write, to copy it into the log's buffer, which another \
thread writes in large pieces. How long that takes grows with the request, and no map has to do with it. The second \
tells what the map and the log cost beside that.

{findings}
{by_size}

![4 KiB](volume-maps.svg)

Threads, and requests at once (the writes of a turn one after the other, then its reads together), 4 KiB, warm:

{parallel}

In order:

{sequential}

Latency, in microseconds:

{latency}

Cold: nothing was written before; what was not is read as zeroes, without the device.

{cold}
",
        volume = bytes(context.size.map_volume),
        used = bytes(used),
        findings = seed::section(&points),
        by_size = by_size.markdown(),
        parallel = parallel.markdown(),
        sequential = sequential.markdown(),
        latency = latency.markdown(),
        cold = cold.markdown(),
    );
    Ok(VolumeFindings { text, reports: vec![by_size, parallel, sequential, latency, cold] })
}
