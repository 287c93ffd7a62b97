//! A full volume, overwritten for a long time.

use std::time::{Duration, Instant};

use granary_lab::{FioJob, FioPattern, Report};

use super::servers::{NbdServer, ServerKind};
use super::transport::{fill, random};
use super::{Context, VolumeFindings};
use crate::failure::{Failure, Result, at};
use crate::study::process::resident_bytes;

const DEPTH: usize = 16;

/// Figures of one window.
struct EnduranceWindow {
    iops: f64,
    mean_us: f64,
    p99_us: f64,
    resident: u64,
}

/// Runs the measurements.
pub fn run(context: &Context<'_>) -> Result<VolumeFindings> {
    let volume = context.size.endurance_volume;
    let folder = context.data.path.join("endurance");
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let server = NbdServer::start(ServerKind::Granary(1), &folder, volume)?;
    let over = |job: FioJob| FioJob { size: volume, ..job };
    over(fill(context, server.target())).run()?;
    let window = context.size.endurance_window;
    let job = FioJob {
        pattern: FioPattern::Random { reads_percent: 0 },
        seconds: window.as_secs_f64(),
        ..over(random(context, server.target(), 0, DEPTH))
    };
    let began = Instant::now();
    let mut windows = Vec::new();
    while began.elapsed() < context.size.endurance {
        let figures = job.run()?;
        let resident = resident_bytes(server.process());
        windows.push(EnduranceWindow {
            iops: figures.iops,
            mean_us: figures.latency_us_mean,
            p99_us: figures.latency_us_p99,
            resident: resident.ok_or_else(|| Failure::Answer("the server ended".to_owned()))?,
        });
    }
    let report = table(&windows, window);
    let text = format!(
        "\
A volume of {size:.1} GiB on the device, written from end to end, so that nine tenths of its log are alive, and then \
overwritten in 4 KiB anywhere for {minutes:.0} minutes, {DEPTH} writes at once over NBD. Windows of {window} s.

{report}
",
        size = volume as f64 / f64::from(1 << 30),
        minutes = began.elapsed().as_secs_f64() / 60.0,
        window = window.as_secs(),
        report = report.markdown(),
    );
    Ok(VolumeFindings { text, reports: vec![report] })
}

/// Twelve lines, each for the same number of windows.
fn table(windows: &[EnduranceWindow], window: Duration) -> Report {
    let mut report = Report::new(&[
        "minutes",
        "IOPS",
        "mean, us",
        "p99, us: median of windows",
        "p99, us: worst window",
        "RAM of the server, MiB",
    ]);
    let each = windows.len().div_ceil(12).max(1);
    let minutes = window.as_secs_f64() / 60.0;
    for (i, windows) in windows.chunks(each).enumerate() {
        let mean =
            |of: fn(&EnduranceWindow) -> f64| windows.iter().map(of).sum::<f64>() / windows.len() as f64;
        let mut p99: Vec<f64> = windows.iter().map(|window| window.p99_us).collect();
        p99.sort_by(f64::total_cmp);
        let most = windows.iter().map(|window| window.resident).max().unwrap_or(0);
        report.row([
            format!("{:.1}", minutes * (i * each) as f64),
            format!("{:.0}", mean(|window| window.iops)),
            format!("{:.0}", mean(|window| window.mean_us)),
            format!("{:.0}", p99[p99.len() / 2]),
            format!("{:.0}", p99[p99.len() - 1]),
            format!("{:.0}", most as f64 / f64::from(1 << 20)),
        ]);
    }
    report
}
