//! RAM of the maps, and the time of their operations alone.

use std::time::Instant;

use fastrand::Rng;
use granary_lab::Report;
use granary_volume::map::{MapKind, Place};

use super::{Context, VolumeFindings};
use crate::failure::{Failure, Result};
use crate::study::figure::count;

const OPERATIONS: u64 = 2_000_000;
/// One in this many blocks is in use.
const SHARES: [u64; 3] = [1, 4, 64];

/// Runs the measurements.
pub fn run(context: &Context<'_>) -> Result<VolumeFindings> {
    let blocks = context.size.memory_blocks;
    let operations = if context.size.quick { 10_000 } else { OPERATIONS };
    let mut report = Report::new(&[
        "map",
        "blocks in use",
        "of all",
        "bytes a block in use",
        "MiB",
        "lookup, ns",
        "overwrite, ns",
        "next in order, ns",
    ]);
    for share in SHARES {
        for kind in MapKind::ALL {
            let map = kind.create(blocks).map_err(|error| Failure::Argument(error.to_string()))?;
            let place = |lba: u64| Place::of_block(lba as u32).expect("there are fewer blocks than places");
            (0..blocks).step_by(share as usize).for_each(|lba| _ = map.set(lba, place(lba)));
            let used = map.len();
            let time = |mut operation: Box<dyn FnMut(u64)>| {
                let mut random = Rng::with_seed(7);
                let began = Instant::now();
                (0..operations).for_each(|_| operation(random.u64(..used) * share));
                began.elapsed().as_nanos() as f64 / operations as f64
            };
            let map = &map;
            let lookup = time(Box::new(move |lba| _ = std::hint::black_box(map.get(lba))));
            let overwrite = time(Box::new(move |lba| _ = map.set(lba, place(lba))));
            let began = Instant::now();
            let (mut next, mut seen) = (map.next_mapped(0), 0);
            while let Some((lba, _)) = next.filter(|_| seen < operations) {
                seen += 1;
                next = map.next_mapped(lba + 1);
            }
            let scan = began.elapsed().as_nanos() as f64 / seen.max(1) as f64;
            let allocated = map.bytes_allocated();
            report.row([
                kind.name().to_owned(),
                count(used),
                format!("1/{share}"),
                format!("{:.1}", allocated as f64 / used as f64),
                format!("{:.1}", allocated as f64 / f64::from(1 << 20)),
                format!("{lookup:.0}"),
                format!("{overwrite:.0}"),
                format!("{scan:.0}"),
            ]);
        }
    }
    let text = format!(
        "\
Maps of {all} blocks of 4 KiB by themselves, on one thread. The system backs the flat map with RAM only where blocks \
are in use: what is given is what it takes at the most.

{report}
",
        all = count(blocks),
        report = report.markdown(),
    );
    Ok(VolumeFindings { text, reports: vec![report] })
}
