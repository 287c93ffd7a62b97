//! RAM that an entry on the device takes: what the process grows by while entries are added that its RAM tier, which
//! is full, has no room for.

use super::{print, resident_bytes};
use crate::engine::{Engine, Kind, Sizes, value};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

const SIZES: Sizes = Sizes { memory_bytes: 4 << 20, disk_bytes: 4608 << 20 };

pub async fn measure(kind: Kind, folder: &Path, value_bytes: usize, entries: u64) {
    let engine = Engine::open(kind, folder, SIZES).await;
    let first = entries / 4;
    engine.fill((0..first).map(|key| (key, value(key, 1, value_bytes)))).await;
    engine.settle().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = resident_bytes();
    engine.fill((first..entries).map(|key| (key, value(key, 1, value_bytes)))).await;
    engine.settle().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let after = resident_bytes();
    let mut found = 0;
    for key in (0..entries).step_by(entries as usize / 1000) {
        found += u32::from(engine.get(key).await.is_some());
    }
    let per_entry = (after as f64 - before as f64) / (entries - first) as f64;
    let mut values =
        json!({ "bytes_per_entry": per_entry, "resident_bytes": after, "found_per_mille": found });
    if let Engine::Granary(cache) = &engine {
        let stats = cache.typed().stats();
        values["index_bytes_per_entry"] = json!(stats.index_bytes as f64 / stats.entries as f64);
    }
    print(kind, value_bytes, "ram", values);
    engine.close().await;
}
