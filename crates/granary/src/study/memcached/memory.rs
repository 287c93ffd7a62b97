//! Items that are all in RAM.

use std::path::Path;

use granary_lab::{Asking, Items, Load, Report, interleave};

use super::page::{ratio, reached};
use super::servers::{self, Given};
use super::{Runs, Size};
use crate::failure::{Failure, Result};

/// Gets that a connection sends at once, and how much faster than memcached that is to be.
pub const PIPELINES: [(usize, f64); 2] = [(1, 1.0), (32, 1.5)];
pub const CONNECTIONS: usize = 50;
pub const VALUE_BYTES: usize = 300;
const GIVEN: Given = Given { memory_bytes: 256 << 20, flash_bytes: 0, threads: 1 };

/// Of each pipeline: Granary, memcached.
pub struct Memory {
    pub runs: Vec<[Runs; 2]>,
}

/// Runs it.
pub fn run(size: &Size, scratch: &Path) -> Result<Memory> {
    let items = Items { keys: size.memory_keys, value_bytes: VALUE_BYTES };
    // As it comes, with space on the device, of which nothing is wanted here.
    let with_flash = Given { flash_bytes: size.flash_bytes, ..GIVEN };
    let granary = servers::granary(&scratch.join("memory"), with_flash, "flashield")?;
    let memcached = servers::memcached(scratch, GIVEN, None)?;
    let addresses = [granary.address, memcached.address];
    let failed = |error| Failure::File("load".to_owned(), error);
    for address in addresses {
        items.fill(address, f64::INFINITY).map_err(failed)?;
    }
    let mut all = Vec::new();
    for (pipeline, _) in PIPELINES {
        let mut runs = <[Runs; 2]>::default();
        let mut seed = 0;
        interleave(size.repetitions, 2, |contender| {
            seed += 1;
            let load =
                Load { connections: CONNECTIONS, asking: Asking::InTurns(pipeline), time: size.time, seed };
            let figures = items.ask(addresses[contender], &load).map_err(failed)?;
            if figures.hit_ratio() < 1.0 {
                return Err(Failure::Answer(format!("{} of what was stored", figures.hit_ratio())));
            }
            runs[contender].push(&figures);
            Ok(figures.operations_per_second())
        })?;
        all.push(runs);
    }
    Ok(Memory { runs: all })
}

impl Memory {
    /// A line for each pipeline.
    pub fn report(&self) -> Report {
        let mut report = Report::new(&[
            "gets at once",
            "Granary, gets/s",
            "memcached, gets/s",
            "ratio",
            "wanted",
            "reached",
            "median, us",
            "memcached",
            "p99, us",
            "memcached",
        ]);
        for ((pipeline, wanted), [ours, theirs]) in PIPELINES.into_iter().zip(&self.runs) {
            let ratio = ratio(&ours.operations, &theirs.operations);
            report.row([
                pipeline.to_string(),
                format!("{:.0}", ours.operations.median()),
                format!("{:.0}", theirs.operations.median()),
                format!("{ratio:.2}"),
                format!("{wanted:.1}"),
                reached(ratio >= wanted),
                format!("{:.0}", ours.median_us.median()),
                format!("{:.0}", theirs.median_us.median()),
                format!("{:.0}", ours.p99_us.median()),
                format!("{:.0}", theirs.p99_us.median()),
            ]);
        }
        report
    }
}
