//! Servers with their data in RAM: the cost of serving.

use granary_lab::{FioJob, FioPattern, FioTarget, Report, Samples, bars};

use super::servers::{NbdServer, ServerKind};
use super::{Context, VolumeFindings};
use crate::failure::Result;

/// A partly used volume: the cost of cleaning is measured elsewhere.
const KINDS: [ServerKind; 5] = [
    ServerKind::Granary(VOLUME_TIMES),
    ServerKind::NbdkitNull,
    ServerKind::NbdkitMemory,
    ServerKind::NbdkitFile,
    ServerKind::Qemu,
];
/// The volume's size as a multiple of its used part.
const VOLUME_TIMES: u64 = 4;
const CONNECTIONS: [usize; 2] = [1, 4];
const MIXES: [u32; 3] = [0, 65, 100];
const DEPTH: usize = 16;
/// Wanted operations of Granary as a multiple of another server's: a second, and per CPU second of the server.
const WANTED: [(ServerKind, f64); 2] = [(ServerKind::NbdkitMemory, 1.0), (ServerKind::Qemu, 2.0)];

/// The runs of one server under one load.
#[derive(Default)]
pub struct ServerRuns {
    pub iops: Samples,
    pub per_cpu_second: Samples,
    pub mean_us: Samples,
    pub p99_us: Samples,
}

impl ServerRuns {
    /// Adds a run on a server.
    pub fn push(&mut self, server: &NbdServer, job: &FioJob) -> Result<()> {
        let before = server.cpu_seconds();
        let figures = job.run()?;
        let seconds = server.cpu_seconds() - before;
        self.iops.push(figures.iops);
        self.per_cpu_second.push(figures.operations / seconds.max(0.01));
        self.mean_us.push(figures.latency_us_mean);
        self.p99_us.push(figures.latency_us_p99);
        Ok(())
    }
}

/// Random operations of 4 KiB.
pub fn random(context: &Context<'_>, target: FioTarget, reads_percent: u32, depth: usize) -> FioJob {
    FioJob {
        target,
        pattern: FioPattern::Random { reads_percent },
        block: 4096,
        size: context.size.served,
        depth,
        jobs: 1,
        seconds: context.size.fio_seconds,
    }
}

/// Writes all of the target once.
pub fn fill(context: &Context<'_>, target: FioTarget) -> FioJob {
    FioJob { pattern: FioPattern::Fill, block: 128 << 10, depth: 8, ..random(context, target, 0, DEPTH) }
}

/// Whether a ratio is as wanted; empty if no ratio is wanted.
fn reached(ratio: f64, wanted: Option<f64>) -> String {
    wanted.map_or("", |wanted| if ratio >= wanted { "yes" } else { "no" }).to_owned()
}

/// Runs the measurements.
pub fn run(context: &Context<'_>) -> Result<VolumeFindings> {
    let size = context.size.served_in_memory;
    let start = |kind: ServerKind| NbdServer::start(kind, &context.memory.path, size);
    let servers = KINDS.into_iter().map(start).collect::<Result<Vec<_>>>()?;
    for server in &servers {
        // A volume's log is written from end to end, so that all servers have their RAM allocated.
        for _ in 0..=VOLUME_TIMES {
            FioJob { size, ..fill(context, server.target()) }.run()?;
        }
    }
    let mut report = Report::new(&[
        "connections",
        "reads, %",
        "",
        "IOPS",
        "granary's IOPS : its",
        "IOPS a CPU second",
        "granary's : its",
        "wanted",
        "reached, IOPS",
        "reached, a CPU second",
        "mean, us",
        "p99, us",
    ]);
    let mut groups = Vec::new();
    for (connections, reads_percent) in
        CONNECTIONS.into_iter().flat_map(|connections| MIXES.map(|mix| (connections, mix)))
    {
        let mut all: Vec<ServerRuns> = KINDS.iter().map(|_| ServerRuns::default()).collect();
        for _ in 0..context.size.repetitions {
            for (server, runs) in servers.iter().zip(&mut all) {
                let job = random(context, server.target(), reads_percent, DEPTH);
                runs.push(server, &FioJob { jobs: connections, size, ..job })?;
            }
        }
        let ours = (all[0].iops.median(), all[0].per_cpu_second.median());
        for (kind, runs) in KINDS.iter().zip(&all) {
            let wanted = WANTED.iter().find(|(of, _)| of == kind).map(|(_, times)| *times);
            let ratios = (ours.0 / runs.iops.median(), ours.1 / runs.per_cpu_second.median());
            report.row([
                connections.to_string(),
                reads_percent.to_string(),
                kind.name().to_owned(),
                format!("{:.0}", runs.iops.median()),
                format!("{:.2}", ratios.0),
                format!("{:.0}", runs.per_cpu_second.median()),
                format!("{:.2}", ratios.1),
                wanted.map_or(String::new(), |wanted| format!("{wanted:.1}")),
                reached(ratios.0, wanted),
                reached(ratios.1, wanted),
                format!("{:.0}", runs.mean_us.median()),
                format!("{:.0}", runs.p99_us.median()),
            ]);
        }
        let values = all.iter().map(|runs| runs.per_cpu_second.median()).collect();
        groups.push((format!("{connections} x, {reads_percent} % reads"), values));
    }
    let names = KINDS.map(ServerKind::name);
    let plot = context.out.join("volume-transport.svg");
    bars(&plot, "4 KiB random operations over NBD, depth 16", "operations a CPU second", &names, &groups)?;
    let text = format!(
        "\
fio's nbd engine on Unix sockets, 4 KiB anywhere, {DEPTH} at once on each connection, {size} MiB written before, \
several times. Everything lies in RAM (nothing waits for a device): files and volume on a tmpfs. The volume is \
{VOLUME_TIMES} times as large as what is used of it, so that cleaning costs next to nothing; what it costs is said below. Client and servers share the machine's cores, \
so operations a second tell of the client as well; a CPU second is one of the server's, its system calls included. \
What is wanted is wanted of both.

{report}

![over NBD](volume-transport.svg)
",
        size = size >> 20,
        report = report.markdown(),
    );
    Ok(VolumeFindings { text, reports: vec![report] })
}

#[cfg(test)]
mod tests {
    use super::reached;

    #[test]
    fn operations_a_second_and_a_cpu_second_are_judged_alike() {
        assert_eq!([reached(1.99, Some(2.0)), reached(6.85, Some(2.0))], ["no", "yes"]);
        assert_eq!(reached(0.81, None), "");
    }
}
