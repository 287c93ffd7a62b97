//! The study of caches in front of stores: both programs read the same keys, and Granary's process carries out its
//! requests.

#[path = "../../log/tests/common/skip.rs"]
mod skip;

use granary_lab::store::{Keys, key_of, load_order, serve, value_of};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const KEYS: u64 = 12_345;
const COUNT: u64 = 1000;

/// The expected output of `rivals/stores/keys.cc`.
fn lines(workload: &str, seed: u64) -> String {
    let (keys, order) = (Keys::new(workload, KEYS, seed).unwrap(), load_order(KEYS));
    let mut text = String::new();
    for (i, key) in (0..COUNT).zip(keys) {
        let mut value = [0; 13];
        value_of(key, i % 2 == 0, &mut value);
        let digits = String::from_utf8(key_of(key).to_vec()).unwrap();
        write!(text, "{digits} {} ", order.at(i)).unwrap();
        value.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        text.push('\n');
    }
    text
}

#[test]
fn the_peers_driver_draws_the_same_keys_and_values() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rivals/stores/keys.cc");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("keys");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    if Command::new(&compiler).arg("--version").output().is_err() {
        return skip::skipped("no C++ compiler for the peers' generator of keys");
    }
    let compile = ["-std=c++17", "-O2", "-ffp-contract=off", "-o"];
    let output = Command::new(&compiler).args(compile).arg(&program).arg(&source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for workload in ["readrandom", "seekrandom", "readhot", "readseq", "zipf", "neighbours", "scan"] {
        for seed in [1, 77] {
            let words = [workload.to_owned(), KEYS.to_string(), seed.to_string(), COUNT.to_string()];
            let output = Command::new(&program).args(words).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(String::from_utf8(output.stdout).unwrap(), lines(workload, seed), "{workload}");
        }
    }
}

/// A request to Granary's process, as the study writes it.
fn request(folder: &Path, reading: &str) -> String {
    format!(
        r#"{{"contents": {{"folder": "{}", "keys": 20000, "value_bytes": 100, "in_key_order": true, "block_bytes": 4096}},
            "reading": {reading}}}"#,
        folder.display()
    )
}

fn reading(workload: &str, division: &str) -> String {
    format!(
        r#"{{"workload": "{workload}", "cache_bytes": 4194304, "row_cache_bytes": 0, "blocks_percent": {division},
            "operations": 4000, "warm_up": "Cold", "keys_at_once": 1, "seconds_max": null, "device_reads": 100, "windows": 4, "seed": 1}}"#
    )
}

#[test]
fn granary_loads_a_store_and_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let ask = |reading: &str| -> serde_json::Value {
        serde_json::from_str(&serve(&request(folder.path(), reading)).unwrap()).unwrap()
    };
    let loaded = ask("null");
    assert_eq!(loaded["keys"], 20_000);
    for division in ["null", "0", "50"] {
        let measured = ask(&reading("phases", division));
        let names = ["zipf", "neighbours", "scan"];
        for (i, name) in names.iter().enumerate() {
            let phase = &measured["phases"][i];
            assert_eq!((&phase["name"], &phase["hits"]), (&(*name).into(), &4000.into()));
            assert_eq!(phase["windows"].as_array().unwrap().len(), 4);
        }
        // A scan of keys that lie in order reads each block once where blocks are kept.
        let reads = measured["phases"][2]["reads"].as_u64().unwrap();
        let blocks = 4000 * 120 / 4096;
        let is_once = reads < 2 * blocks;
        assert_eq!(is_once, division != "0", "{division}: {reads} reads of {blocks} blocks");
        assert!(measured["device_us"].as_f64().unwrap() > 0.0);
    }
    // After a pass nothing is read any more, and keys that are looked up together are found as well.
    for (keys_at_once, device_reads) in [("1", "100"), ("32", "0")] {
        let reading = reading("readrandom", "null")
            .replace(r#""warm_up": "Cold""#, r#""warm_up": "Pass""#)
            .replace(r#""device_reads": 100"#, &format!(r#""device_reads": {device_reads}"#))
            .replace(r#""keys_at_once": 1"#, &format!(r#""keys_at_once": {keys_at_once}"#));
        let measured = ask(&reading);
        let phase = &measured["phases"][0];
        assert_eq!((&phase["hits"], &phase["reads"]), (&4000.into(), &0.into()), "{phase}");
        assert_eq!(measured["device_us"].is_null(), device_reads == "0");
    }
    let scan = ask(&reading("readseq", "null"));
    assert!(scan["phases"][0]["hits"].as_u64().unwrap() >= 4000, "{scan}");
    for wrong in ["seekrandom", "nothing"] {
        let error = serve(&request(folder.path(), &reading(wrong, "null"))).unwrap_err();
        assert_eq!(error.to_string(), format!("no workload {wrong}"));
    }
    let error = serve(&request(folder.path(), &reading("zipf", "101"))).unwrap_err();
    assert!(error.to_string().contains("memory_division"), "{error}");
    assert!(serve("no JSON").is_err());
}
