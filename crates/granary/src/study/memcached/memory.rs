//! Items that all fit into RAM.

use std::path::Path;

use granary_lab::{Asking, Items, Load, Report, interleave};

use super::page::{form, judged, ratio, reached};
use super::servers::{self, Resources};
use super::{MemcachedRuns, MemcachedStudySize};
use crate::failure::{Failure, Result};

/// How a connection asks, and the wanted speed as a multiple of memcached's.
pub const LOADS: [(Asking, f64); 3] =
    [(Asking::InTurns(1), 1.0), (Asking::InTurns(32), 1.5), (Asking::Together(32), 1.5)];
pub const CONNECTIONS: usize = 50;
pub const VALUE_BYTES: usize = 300;
const GIVEN: Resources = Resources { memory_bytes: 256 << 20, flash_bytes: 0, threads: 1 };

/// By load: Granary, memcached.
pub struct Memory {
    pub runs: Vec<[MemcachedRuns; 2]>,
}

/// Runs the measurements.
pub fn run(size: &MemcachedStudySize, scratch: &Path) -> Result<Memory> {
    let items = Items { keys: size.memory_keys, value_bytes: VALUE_BYTES };
    // With the default configuration, including space on the device, which is not used here.
    let with_flash = Resources { flash_bytes: size.flash_bytes, ..GIVEN };
    let granary = servers::granary(&scratch.join("memory"), with_flash, "flashield")?;
    let memcached = servers::memcached(scratch, GIVEN, None)?;
    let addresses = [granary.address, memcached.address];
    let failed = |error| Failure::File("load".to_owned(), error);
    for address in addresses {
        items.fill(address, f64::INFINITY).map_err(failed)?;
    }
    let mut all = Vec::new();
    for (asking, _) in LOADS {
        let mut runs = <[MemcachedRuns; 2]>::default();
        let mut seed = 0;
        interleave(size.repetitions, 2, |contender| {
            seed += 1;
            let load = Load { connections: CONNECTIONS, asking, time: size.time, seed };
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
    /// A line for each load.
    pub fn report(&self) -> Report {
        let mut report = Report::new(&[
            "keys at once",
            "Granary, keys/s",
            "memcached, keys/s",
            "ratio",
            "wanted",
            "reached",
            "median, us",
            "memcached",
            "p99, us",
            "memcached",
        ]);
        let theirs = LOADS
            .iter()
            .zip(&self.runs)
            .map(|((asking, _), [_, theirs])| ((CONNECTIONS, asking.gets()), theirs.operations.median()));
        let judged = judged(&theirs.collect::<Vec<_>>());
        for (((asking, wanted), is_judged), [ours, theirs]) in LOADS.into_iter().zip(judged).zip(&self.runs) {
            let ratio = ratio(&ours.operations, &theirs.operations);
            report.row([
                format!("{}{}", asking.gets(), form(asking)),
                format!("{:.0}", ours.operations.median()),
                format!("{:.0}", theirs.operations.median()),
                format!("{ratio:.2}"),
                if is_judged { format!("{wanted:.1}") } else { "-".to_owned() },
                if is_judged { reached(ratio >= wanted) } else { "-".to_owned() },
                format!("{:.0}", ours.median_us.median()),
                format!("{:.0}", theirs.median_us.median()),
                format!("{:.0}", ours.p99_us.median()),
                format!("{:.0}", theirs.p99_us.median()),
            ]);
        }
        report
    }
}
