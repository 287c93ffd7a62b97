//! The commands of `granary volume` that read a volume: list, inspect, check, scrub.

use crate::failure::{Failure, Result, at};
use crate::progress;
use crate::volume::{create_command, open_with_progress, volumes};
use granary_volume::map::MapKind;
use granary_volume::{Config, Files, Io};
use indicatif::HumanBytes;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The bytes that a volume's files take.
fn space(files: &Files) -> u64 {
    let paths = [files.data(), files.checkpoint(), files.config()];
    paths.iter().filter_map(|path| path.metadata().ok()).map(|found| found.blocks() * 512).sum()
}

/// A line for each volume.
pub fn list(folder: &Path) -> Result<()> {
    let names = volumes(folder)?;
    if names.is_empty() {
        say!("no volumes in {}; {} makes one", folder.display(), create_command(folder));
        return Ok(());
    }
    let width = names.iter().map(|files| files.name().len()).fold(24, usize::max);
    let row = |name: &str, [size, on_disk, block, map]: [&str; 4]| {
        format!("{name:<width$} {size:>12} {on_disk:>12} {block:>10} {map:>10}")
    };
    say!("{}", row("name", ["size", "on disk", "block", "map"]));
    let mut failed = 0;
    for files in names {
        let config = match Config::read(&files) {
            Ok(config) => config,
            // It was deleted meanwhile.
            Err(granary_volume::Error::NotFound { .. }) => continue,
            Err(error) => {
                failed += 1;
                say!("{}  {error}", row(files.name(), ["-"; 4]));
                continue;
            }
        };
        let [size, on_disk, block] =
            [config.size, space(&files), config.block_size].map(|bytes| HumanBytes(bytes).to_string());
        say!("{}", row(files.name(), [&size, &on_disk, &block, config.map.name()]));
    }
    if failed > 0 {
        let volumes = if failed == 1 { "volume" } else { "volumes" };
        return Err(Failure::Argument(format!("{failed} {volumes} cannot be read")));
    }
    Ok(())
}

/// Prints everything about a volume.
pub fn inspect(folder: &Path, name: &str) -> Result<()> {
    let files = Files::new(folder, name)?;
    let volume = open_with_progress(folder, name)?;
    let (config, stats) = (volume.config(), volume.stats());
    let block = config.block_size;
    let segment = config.segment_bytes;
    let device = config.device.clone().unwrap_or_else(|| files.data());
    let when = match config.map {
        MapKind::Flat => " at the most",
        MapKind::Hash | MapKind::SkipList => " with what is written now",
    };
    let lines = [
        ("size", format!("{} ({} bytes)", HumanBytes(config.size), config.size)),
        ("block size", HumanBytes(block).to_string()),
        ("in use", HumanBytes(stats.blocks_mapped * block).to_string()),
        ("data", device.display().to_string()),
        ("on disk", HumanBytes(space(&files)).to_string()),
        ("map", format!("{}, {} of RAM{when}", config.map.name(), HumanBytes(stats.map_bytes))),
        ("segments", format!("{} of {}, {} free", stats.segments, HumanBytes(segment), stats.segments_free)),
    ];
    for (what, value) in lines {
        say!("{what:<12} {value}");
    }
    volume.close().map_err(at(&device))
}

/// Opens a volume and compares its map with its segments.
pub fn check(folder: &Path, name: &str) -> Result<()> {
    let volume = open_with_progress(folder, name)?;
    let bar = progress::bar(volume.stats().segments);
    bar.set_prefix("checking ");
    let wrong = volume.check_map(&mut |segment| bar.set_position(segment));
    bar.finish_and_clear();
    let mapped = volume.stats().blocks_mapped;
    volume.close().map_err(at(&folder.join(name)))?;
    match wrong {
        0 => say!("{name}: {mapped} blocks in use, and the log says the same of all of them"),
        wrong => {
            return Err(Failure::Argument(format!(
                "{name}: the log says otherwise of {wrong} of {mapped} blocks"
            )));
        }
    }
    Ok(())
}

/// Neighbouring blocks that are unreadable for the same reason.
struct DamagedRun {
    blocks: Range<u64>,
    error: String,
}

/// Reads every block in use.
pub fn scrub(folder: &Path, name: &str) -> Result<()> {
    let volume = open_with_progress(folder, name)?;
    let size = volume.config().block_size;
    let bar = progress::bar(volume.stats().blocks_mapped);
    bar.set_prefix("reading ");
    let (mut io, mut block) = (Io::new(), vec![0; size as usize]);
    let (mut damaged, mut read) = (0u64, 0u64);
    let mut next = volume.next_mapped(0);
    let mut output = std::io::stdout().lock();
    // If the lines cannot be written, the exit status still tells.
    let mut tell = |DamagedRun { blocks, error }: DamagedRun| {
        let _ = writeln!(output, "{name}: bytes {} to {}: {error}", blocks.start * size, blocks.end * size);
    };
    let mut run: Option<DamagedRun> = None;
    while let Some(lba) = next {
        let error = volume.read(&mut io, lba * size, &mut block).err().map(|error| error.to_string());
        read += 1;
        damaged += u64::from(error.is_some());
        match (&mut run, error) {
            (Some(run), Some(error)) if run.blocks.end == lba && run.error == error => run.blocks.end += 1,
            (_, error) => {
                run.take().map(&mut tell);
                run = error.map(|error| DamagedRun { blocks: lba..lba + 1, error });
            }
        }
        if read.is_multiple_of(256) {
            bar.set_position(read);
        }
        next = volume.next_mapped(lba + 1);
    }
    run.map(&mut tell);
    bar.finish_and_clear();
    volume.close().map_err(at(&folder.join(name)))?;
    if damaged > 0 {
        return Err(Failure::Argument(format!("{name}: {damaged} of {read} blocks are damaged")));
    }
    say!("{name}: {read} blocks read, none is damaged");
    Ok(())
}
