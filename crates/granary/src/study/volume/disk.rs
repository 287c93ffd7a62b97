//! Servers on the device: the benefit of the log.

use granary_lab::{FioFigures, FioTarget, Report, bars};

use super::inside::Inside;
use super::servers::{NbdServer, ServerKind};
use super::transport::{ServerRuns, fill, random};
use super::{Context, VolumeFindings};
use crate::failure::{Result, at};

const KINDS: [ServerKind; 3] =
    [ServerKind::Granary(VOLUME_TIMES), ServerKind::NbdkitFile, ServerKind::QemuDirect];
/// The volume's size as a multiple of its used part.
const VOLUME_TIMES: u64 = 8;
const DEPTH: usize = 32;
const INSIDE: &str = "granary volume, in process";
const RAW: &str = "fio on a file, direct I/O";
/// Wanted writes of Granary as a multiple of those of servers that write in place.
const WRITES_WANTED: f64 = 3.0;
/// Wanted reads of a volume as a part of fio's, both in process.
const READS_WANTED: f64 = 0.9;

/// Wanted ratio of Granary's median to another's: the server's for servers, the in-process one's for fio.
fn wanted(name: &str, reads_percent: u32) -> Option<f64> {
    match reads_percent {
        0 if [ServerKind::NbdkitFile, ServerKind::QemuDirect].map(ServerKind::name).contains(&name) => {
            Some(WRITES_WANTED)
        }
        100 if name == RAW => Some(READS_WANTED),
        _ => None,
    }
}

fn push(runs: &mut ServerRuns, figures: FioFigures) {
    runs.iops.push(figures.iops);
    runs.mean_us.push(figures.latency_us_mean);
    runs.p99_us.push(figures.latency_us_p99);
}

/// Runs the measurements.
pub fn run(context: &Context<'_>) -> Result<VolumeFindings> {
    let (size, folder) = (context.size.served, context.data.path.join("disk"));
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let servers =
        KINDS.into_iter().map(|kind| NbdServer::start(kind, &folder, size)).collect::<Result<Vec<_>>>()?;
    let raw = FioTarget::File(folder.join("fio.raw"));
    for target in servers.iter().map(NbdServer::target).chain([raw.clone()]) {
        fill(context, target).run()?;
    }
    let inside = Inside::new(&folder, size * VOLUME_TIMES, size)?;
    let mut report = Report::new(&[
        "4 KiB, depth 32",
        "",
        "IOPS",
        "granary's : its",
        "wanted",
        "reached",
        "mean, us",
        "p99, us",
    ]);
    let names: Vec<&str> = KINDS.map(ServerKind::name).into_iter().chain([INSIDE, RAW]).collect();
    let mut groups = Vec::new();
    for (what, reads_percent) in [("random reads", 100), ("random writes", 0)] {
        let mut all: Vec<ServerRuns> = names.iter().map(|_| ServerRuns::default()).collect();
        for _ in 0..context.size.repetitions {
            for (server, runs) in servers.iter().zip(&mut all) {
                runs.push(server, &random(context, server.target(), reads_percent, DEPTH))?;
            }
            push(
                &mut all[KINDS.len()],
                match reads_percent {
                    0 => inside.write(context.size.fio_seconds)?,
                    _ => inside.read(DEPTH, context.size.fio_seconds)?,
                },
            );
            push(&mut all[KINDS.len() + 1], random(context, raw.clone(), reads_percent, DEPTH).run()?);
        }
        let (served, in_process) = (all[0].iops.median(), all[KINDS.len()].iops.median());
        for (name, runs) in names.iter().zip(&all) {
            let ours = if [INSIDE, RAW].contains(name) { in_process } else { served };
            let ratio = ours / runs.iops.median();
            let wanted = wanted(name, reads_percent);
            let reached = wanted.map(|wanted| if ratio >= wanted { "yes" } else { "no" });
            report.row([
                what.to_owned(),
                (*name).to_owned(),
                format!("{:.0}", runs.iops.median()),
                format!("{ratio:.2}"),
                wanted.map_or(String::new(), |wanted| format!("{wanted:.1}")),
                reached.unwrap_or_default().to_owned(),
                format!("{:.1}", runs.mean_us.median()),
                format!("{:.1}", runs.p99_us.median()),
            ]);
        }
        groups.push((what.to_owned(), all.iter().map(|runs| runs.iops.median()).collect()));
    }
    bars(&context.out.join("volume-disk.svg"), "4 KiB on the device, depth 32", "IOPS", &names, &groups)?;
    let text = format!(
        "\
The same on the device, {size} MiB written before, in order, one connection. Reads come first: after the writes, the \
blocks of a volume lie all over its log, which is {VOLUME_TIMES} times as large as the others' files. `nbdkit file` has no direct I/O, and writes to the \
page cache until that is full (`cache=none` gives pages back soon); qemu-nbd has direct I/O. Writes of granary's are in \
a buffer when they are answered, and the buffers that wait for the device are few, so that what is measured is the \
device's rate. fio on a file has no server between, and is compared with a volume that this very process reads \
({DEPTH} at a time) and writes (one after the other, for they wait for nothing; the flush at the end counts).

{report}

![on the device](volume-disk.svg)
",
        size = size >> 20,
        report = report.markdown(),
    );
    Ok(VolumeFindings { text, reports: vec![report] })
}
