//! What is found of keys that were overwritten faster than the device takes it.

use super::print;
use crate::engine::{Engine, Kind, Sizes, value};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

const SIZES: Sizes = Sizes { memory_bytes: 8 << 20, disk_bytes: 1280 << 20 };
const VERSIONS: u64 = 40;

pub async fn measure(kind: Kind, folder: &Path, value_bytes: usize, keys: u64) {
    let engine = Engine::open(kind, folder, SIZES).await;
    engine.fill((0..keys).map(|key| (key, value(key, 1, value_bytes)))).await;
    engine.settle().await;
    // Made before, so that nothing but the cache is waited for.
    let values: Vec<Vec<u8>> = (0..keys).map(|key| value(key, 1, value_bytes)).collect();
    let mut kept: Vec<bool> = vec![true; keys as usize];
    let begun = Instant::now();
    for version in 2..=VERSIONS {
        for (key, value) in values.iter().enumerate() {
            let mut value = value.clone();
            value[..8].copy_from_slice(&version.to_le_bytes());
            kept[key] = engine.insert(key as u64, value);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    engine.settle().await;
    engine.empty_memory(value_bytes, SIZES.memory_bytes).await;
    let (mut latest, mut missing, mut stale, mut told) = (0, 0, 0, 0);
    for key in 0..keys {
        match engine.get(key).await {
            Some(VERSIONS) => latest += 1,
            Some(_) => stale += 1,
            None => {
                missing += 1;
                told += u64::from(!kept[key as usize]);
            }
        }
    }
    let values = json!({
        "puts_per_second": (keys * (VERSIONS - 1)) as f64 / seconds,
        "latest": latest, "stale": stale, "missing": missing, "missing_and_said_so": told,
    });
    print(kind, value_bytes, "stale", values);
    engine.close().await;
}
