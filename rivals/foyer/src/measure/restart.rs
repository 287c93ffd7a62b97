//! What a cache has after it was closed, or killed.

use super::print;
use crate::engine::{Engine, Kind, Sizes, value};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const SIZES: Sizes = Sizes { memory_bytes: 32 << 20, disk_bytes: 1280 << 20 };

/// What a key should be found as: every second was overwritten, and of these every fourth removed.
fn expected(key: u64) -> Option<u64> {
    match key % 8 {
        0 => None,
        2 | 4 | 6 => Some(2),
        _ => Some(1),
    }
}

/// Fills a cache and ends: by `close`, or by a kill after all was written (`settle`) or without waiting (`at-once`).
pub async fn fill(kind: Kind, folder: &Path, value_bytes: usize, entries: u64, ending: &str) {
    let engine = Engine::open(kind, folder, SIZES).await;
    engine.fill((0..entries).map(|key| (key, value(key, 1, value_bytes)))).await;
    engine.fill((0..entries).filter(|key| key % 2 == 0).map(|key| (key, value(key, 2, value_bytes)))).await;
    (0..entries).filter(|key| expected(*key).is_none()).for_each(|key| engine.remove(key));
    if ending == "close" {
        let begun = Instant::now();
        engine.close().await;
        print(kind, value_bytes, "close", json!({ "seconds": begun.elapsed().as_secs_f64() }));
        return;
    }
    if ending == "settle" {
        engine.settle().await;
    }
    println!("ready");
    loop {
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    }
}

/// Opens it again and looks at all keys.
pub async fn reopen(kind: Kind, folder: &Path, value_bytes: usize, entries: u64) {
    let begun = Instant::now();
    let engine = Engine::open(kind, folder, SIZES).await;
    let seconds = begun.elapsed().as_secs_f64();
    let counts: Arc<[AtomicU64; 4]> = Arc::default();
    let readers: Vec<_> = (0..32)
        .map(|task| {
            let (engine, counts) = (engine.clone(), Arc::clone(&counts));
            tokio::spawn(async move {
                for key in (task..entries).step_by(32) {
                    let count = match (expected(key), engine.get(key).await) {
                        (Some(expected), Some(found)) if found == expected => 0,
                        (Some(_), None) => 1,
                        (Some(_), Some(_)) => 2,
                        (None, Some(_)) => 3,
                        (None, None) => continue,
                    };
                    counts[count].fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for reader in readers {
        reader.await.expect("it ends well");
    }
    let [right, missing, stale, resurrected] = counts.each_ref().map(|count| count.load(Ordering::Relaxed));
    let ending = std::env::var("RIVAL_ENDING").unwrap_or_default();
    let values = json!({
        "ending": ending, "open_seconds": seconds, "right": right, "missing": missing, "stale": stale,
        "resurrected": resurrected,
    });
    print(kind, value_bytes, "restart", values);
    engine.close().await;
}

/// Fills a cache in one process, and opens it in another.
pub fn restart(start: impl Fn(&str) -> Command, ending: &str) -> bool {
    let mut child = start(ending).stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    for line in lines {
        let line = line.expect("a line");
        if line == "ready" {
            child.kill().expect("it is killed");
        } else {
            println!("{line}");
        }
    }
    let status = child.wait().expect("it ends");
    (status.success() || ending != "close") && start("reopen").status().expect("it starts").success()
}
