//! Write amplification by cleaning, by utilisation.

use fastrand::Rng;
use granary_lab::{Report, bars};
use granary_volume::policy::greedy_write_amplification;
use granary_volume::{Config, Io, Volume};

use super::contender::BLOCK;
use super::null::NullDevice;
use super::{Context, VolumeFindings};
use crate::failure::{Result, at};

/// Utilisation of the volume, in percent.
const FULL: [u64; 6] = [50, 60, 70, 80, 90, 100];
/// How often everything is overwritten before the measurement, and during it.
const SETTLING: u64 = 3;
const MEASURED: u64 = 2;
/// Bytes of a segment: small, so that there are many.
const SEGMENT_BYTES: u64 = 512 << 10;
/// Maximum relative difference from the model.
const TOLERANCE: f64 = 0.1;

/// Runs the measurements.
pub fn run(context: &Context<'_>) -> Result<VolumeFindings> {
    let config = Config { segment_bytes: SEGMENT_BYTES, ..Config::new(context.size.amplification_volume) };
    let per_segment = config.blocks_per_segment()? as f64;
    let mut report = Report::new(&[
        "volume full, %",
        "log alive, %",
        "of what is in use, %",
        "written for a block written",
        "greedy model",
        "ratio",
        "within 10 %",
        "bytes written for a byte written",
    ]);
    let mut groups = Vec::new();
    for full in FULL {
        let folder = context.memory.path.join(format!("amplification-{full}"));
        std::fs::create_dir_all(&folder).map_err(at(&folder))?;
        let device = NullDevice::new(config.geometry()?.file_bytes())?;
        let volume = Volume::open_on(&folder, "volume", &config, Box::new(device))?;
        let used = config.blocks() * full / 100;
        let (mut io, mut random, block) = (Io::new(), Rng::with_seed(full), [0; BLOCK]);
        let mut write = |lba: u64| volume.write(&mut io, lba * BLOCK as u64, &block).map_err(at(&folder));
        (0..used).try_for_each(&mut write)?;
        for _ in 0..used * SETTLING {
            write(random.u64(..used))?;
        }
        let before = volume.stats();
        let (mut free, mut samples) = (0, 0u64);
        for i in 0..used * MEASURED {
            write(random.u64(..used))?;
            if i % 1024 == 0 {
                free += volume.stats().segments_free;
                samples += 1;
            }
        }
        let after = volume.stats();
        let written = (used * MEASURED) as f64;
        let measured = 1.0 + (after.blocks_moved - before.blocks_moved) as f64 / written;
        let bytes =
            (after.device_bytes_written - before.device_bytes_written) as f64 / (written * BLOCK as f64);
        let alive = |segments: f64| after.blocks_mapped as f64 / (segments * per_segment);
        let all = after.segments as f64;
        let in_use = alive(all - free as f64 / samples as f64);
        let model = greedy_write_amplification(in_use);
        let is_near = (measured / model - 1.0).abs() <= TOLERANCE;
        report.row([
            full.to_string(),
            format!("{:.1}", 100.0 * alive(all)),
            format!("{:.1}", 100.0 * in_use),
            format!("{measured:.2}"),
            format!("{model:.2}"),
            format!("{:.2}", measured / model),
            if is_near { "yes" } else { "no" }.to_owned(),
            format!("{bytes:.2}"),
        ]);
        groups.push((format!("{full} % full"), vec![measured, model]));
    }
    let plot = context.out.join("volume-amplification.svg");
    bars(&plot, "Write amplification", "written : asked for", &["measured", "greedy model"], &groups)?;
    let text = format!(
        "\
A volume of {size} MiB on a device that does nothing, {segments} segments of {segment} KiB; blocks are overwritten \
anywhere, all equally often, {SETTLING} times all of them before it is measured and {MEASURED} times while it is. A \
full volume has a log that is nine tenths alive. The model is that of greedy cleaning in a large log (Bux and Iliadis, \
2010; Desnoyers, 2012), at the live share of the segments that hold anything: free ones hold nothing. The last column \
has headers, footers and summaries in it.

{report}

![write amplification](volume-amplification.svg)
",
        size = context.size.amplification_volume >> 20,
        segments = config.geometry()?.segments(),
        segment = SEGMENT_BYTES >> 10,
        report = report.markdown(),
    );
    Ok(VolumeFindings { text, reports: vec![report] })
}
