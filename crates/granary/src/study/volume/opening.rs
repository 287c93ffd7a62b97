//! The time to open a volume after a kill.

use std::io;
use std::process::Command;
use std::time::Instant;

use granary_lab::{Report, Samples};
use granary_volume::device::{Access, Device, FileDevice, Space};
use granary_volume::{Config, Io, Volume};

use super::null::is_metadata;
use super::{Context, VolumeFindings};
use crate::failure::{Failure, Result, at};
use crate::study::figure;

const BLOCK: usize = 4096;
const SECONDS_WANTED: f64 = 2.0;

/// A sparse file that keeps headers, footers and summaries; content, all zeroes, becomes holes.
struct ThinDevice(FileDevice);

impl Device for ThinDevice {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, bytes)
    }

    fn write_at(&self, mut offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        for block in buffers.iter().flat_map(|buffer| buffer.chunks_exact(BLOCK)) {
            if is_metadata(block) {
                self.0.write_at(offset, &[block])?;
            }
            offset += BLOCK as u64;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

/// The state that the volume is left in.
#[derive(Clone, Copy)]
enum Ending {
    /// The volume was closed, which makes a checkpoint.
    Closed,
    /// The volume was written once, and its process killed.
    Killed,
}

/// Runs the measurements.
pub fn run(context: &Context<'_>) -> Result<VolumeFindings> {
    let size = context.size.opened;
    let folder = context.data.path.join("opening");
    let config = Config::new(size);
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    Volume::create(&folder, "volume", &config)?;
    let mut report = Report::new(&[
        "",
        "data, GiB",
        "segments",
        "seconds",
        "wanted",
        "reached",
        "of those written since the map was written down",
    ]);
    let mut is_cold = true;
    for (what, left) in [("killed", Ending::Killed), ("closed", Ending::Closed)] {
        let replayed = write(&folder, &config, left)?;
        let mut seconds = Samples::default();
        for _ in 0..context.size.repetitions {
            let copy = folder.with_extension("state");
            save(&folder, &copy)?;
            // Clears the page cache, if we may: copying has read and written the file that is opened, and dirty pages
            // are not dropped.
            let command = "sync && echo 3 > /proc/sys/vm/drop_caches";
            let dropped = Command::new("sh").args(["-c", command]).status();
            is_cold = is_cold && dropped.is_ok_and(|status| status.success());
            let began = Instant::now();
            let volume = Volume::open(&folder, "volume", &mut |_, _| {})?;
            seconds.push(began.elapsed().as_secs_f64());
            if volume.stats().blocks_mapped != config.blocks() {
                return Err(Failure::Answer(format!("{} blocks", volume.stats().blocks_mapped)));
            }
            // The next opening must find the same state as this one.
            drop(volume);
            save(&copy, &folder)?;
        }
        report.row([
            what.to_owned(),
            format!("{:.1}", size as f64 / f64::from(1 << 30)),
            config.geometry()?.segments().to_string(),
            figure::seconds(&seconds),
            format!("{SECONDS_WANTED:.0}"),
            if seconds.median() <= SECONDS_WANTED { "yes" } else { "no" }.to_owned(),
            replayed.to_string(),
        ]);
    }
    let text = format!(
        "\
A volume is written once from end to end and synced; then it is left as a kill leaves it, or closed, and opened again, \
{page_cache}. Its content, which is all zeroes, is not on the device (holes of a thin file), but all headers, \
footers and summaries are: they are what opening reads. After a real kill it reads also the content of what was not synced, which \
this does not measure.

{report}
",
        report = report.markdown(),
        page_cache = if is_cold { "the page cache being empty" } else { "with what the page cache has of it" },
    );
    Ok(VolumeFindings { text, reports: vec![report] })
}

/// Writes everything once, and returns the number of segments that a start reads whole.
fn write(folder: &std::path::Path, config: &Config, left: Ending) -> Result<u64> {
    let path = folder.join("volume.log");
    let bytes = config.geometry()?.file_bytes();
    let device = FileDevice::open_as(&path, bytes, Access::Direct, Space::Thin);
    let device = device.map_err(|error| Failure::Argument(error.to_string()))?;
    let volume = Volume::open_on(folder, "volume", config, Box::new(ThinDevice(device)))?;
    let (mut io, piece) = (Io::new(), vec![0; 1 << 20]);
    for offset in (0..config.size).step_by(piece.len()) {
        volume.write(&mut io, offset, &piece).map_err(at(folder))?;
    }
    let replayed = volume.stats().segments_since_checkpoint;
    match left {
        Ending::Closed => {
            volume.close().map_err(at(folder))?;
            Ok(0)
        }
        Ending::Killed => {
            volume.commit().map_err(at(folder))?;
            volume.abandon();
            Ok(replayed)
        }
    }
}

/// Copies the small files of a volume.
fn save(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(to).map_err(at(to))?;
    for file in std::fs::read_dir(from).map_err(at(from))? {
        let file = file.map_err(at(from))?;
        if file.file_name() != "volume.log" {
            std::fs::copy(file.path(), to.join(file.file_name())).map_err(at(to))?;
        }
    }
    Ok(())
}
