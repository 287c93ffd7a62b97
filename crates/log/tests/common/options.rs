//! Options of a log in a folder, as a cache has them.

use granary_log::device::Space;
use granary_log::{CrashPolicy, Geometry, Options, SlotOrder};
use std::path::Path;

pub fn options(folder: &Path, geometry: Geometry) -> Options {
    Options {
        path: folder.join("d.bin"),
        state_path: folder.join("d"),
        geometry,
        fingerprint: 0xF00D,
        salt: Some(0),
        depends_on: 0,
        shared_memory: Vec::new(),
        slots: SlotOrder::Fifo,
        space: Space::Reserved,
        crash_policy: CrashPolicy::StartEmpty,
    }
}
