//! Servers beside each other on the device: what the log brings.

use granary_lab::{FioTarget, Report, bars};

use super::servers::{Kind, Server};
use super::transport::{Runs, fill, random};
use super::{Context, Findings};
use crate::failure::Result;

const KINDS: [Kind; 3] = [Kind::Granary(8), Kind::NbdkitFile, Kind::QemuDirect];
const DEPTH: usize = 32;
const RAW: &str = "fio on a file, direct I/O";
/// What granary's writes are to be of those of servers that write in place, and its reads of fio's.
const WRITES_WANTED: f64 = 3.0;
const READS_WANTED: f64 = 0.9;

/// Runs it.
pub fn run(context: &Context<'_>) -> Result<Findings> {
    let file = context.data.path.join("fio.raw");
    let start = |kind: Kind| Server::start(kind, &context.data.path, context.size.served);
    let servers = KINDS.into_iter().map(start).collect::<Result<Vec<_>>>()?;
    let raw = FioTarget::File(file);
    for target in servers.iter().map(Server::target).chain([raw.clone()]) {
        fill(context, target).run()?;
    }
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
    let mut groups = Vec::new();
    for (what, reads_percent) in [("random writes", 0), ("random reads", 100)] {
        let mut all: Vec<Runs> = (0..=KINDS.len()).map(|_| Runs::default()).collect();
        for _ in 0..context.size.repetitions {
            for (server, runs) in servers.iter().zip(&mut all) {
                runs.push(server, &random(context, server.target(), reads_percent, DEPTH))?;
            }
            let figures = random(context, raw.clone(), reads_percent, DEPTH).run()?;
            let runs = &mut all[KINDS.len()];
            runs.iops.push(figures.iops);
            runs.mean_us.push(figures.latency_us_mean);
            runs.p99_us.push(figures.latency_us_p99);
        }
        let ours = all[0].iops.median();
        let names = KINDS.map(Kind::name).into_iter().chain([RAW]);
        for (name, runs) in names.zip(&all) {
            let wanted = match (reads_percent, name) {
                (0, _) if [Kind::NbdkitFile, Kind::QemuDirect].map(Kind::name).contains(&name) => {
                    Some(WRITES_WANTED)
                }
                (100, RAW) => Some(READS_WANTED),
                _ => None,
            };
            let ratio = ours / runs.iops.median();
            let reached = wanted.map(|wanted| if ratio >= wanted { "yes" } else { "no" });
            report.row([
                what.to_owned(),
                name.to_owned(),
                format!("{:.0}", runs.iops.median()),
                format!("{ratio:.2}"),
                wanted.map_or(String::new(), |wanted| format!("{wanted:.1}")),
                reached.unwrap_or_default().to_owned(),
                format!("{:.0}", runs.mean_us.median()),
                format!("{:.0}", runs.p99_us.median()),
            ]);
        }
        groups.push((what.to_owned(), all.iter().map(|runs| runs.iops.median()).collect()));
    }
    let names: Vec<&str> = KINDS.map(Kind::name).into_iter().chain([RAW]).collect();
    bars(&context.out.join("volume-disk.svg"), "4 KiB on the device, depth 32", "IOPS", &names, &groups)?;
    let text = format!(
        "\
The same on the device, {size} MiB written before, one connection. `nbdkit file` has no direct I/O, and writes to the \
page cache until that is full (`cache=none` gives pages back soon); qemu-nbd with direct I/O and fio on a raw file are \
what writing in place can be at the most.

{report}

![on the device](volume-disk.svg)
",
        size = context.size.served >> 20,
        report = report.markdown(),
    );
    Ok(Findings { text, reports: vec![report] })
}
