//! Which crate may depend on which: the rule of ARCHITECTURE.md, "Layers".

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate, and the crates of this workspace that it may depend on.
const MAY_DEPEND_ON: [(&str, &[&str]); 14] = [
    ("granary-log", &[]),
    ("granary-cache", &["granary-log"]),
    ("granary-metrics", &[]),
    ("granary-sockets", &[]),
    ("granary-volume", &["granary-log", "granary-metrics"]),
    ("granary-dict", &["granary-cache", "granary-metrics"]),
    ("granary-lab", &["granary-cache"]),
    ("granary-memcached", &["granary-cache", "granary-sockets"]),
    ("granary-dialect", &["granary-dict"]),
    ("granary-sql", &["granary-dialect", "granary-dict"]),
    ("granary-nbd", &["granary-log", "granary-volume", "granary-sockets"]),
    ("granary-ublk", &["granary-volume"]),
    ("granary-server", &["granary-sql", "granary-dict", "granary-metrics", "granary-sockets"]),
    (
        "granary",
        &[
            "granary-server",
            "granary-memcached",
            "granary-nbd",
            "granary-ublk",
            "granary-volume",
            "granary-sql",
            "granary-lab",
        ],
    ),
];

/// Protocols, SQL and async runtimes, of which the engine must be free; the memcached and the NBD server know only
/// their own.
const NOT_IN_THE_ENGINE: [&str; 8] =
    ["tokio", "futures", "async-trait", "arrow", "datafusion", "sqlparser", "hyper", "axum"];

/// Direct dependencies of each crate of the workspace, without those of tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let arguments = ["metadata", "--format-version=1", "--no-deps", "--offline", "--manifest-path", manifest];
    let output = Command::new(env!("CARGO")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|d| d["kind"] != "dev").map(|d| text(&d["name"])).collect()
    };
    packages.iter().map(|package| (text(&package["name"]), of(package))).collect()
}

#[test]
fn crates_depend_on_the_layer_below_only() {
    let dependencies = dependencies();
    let known: BTreeSet<&str> = MAY_DEPEND_ON.iter().map(|(name, _)| *name).collect();
    assert_eq!(dependencies.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
    for (name, allowed) in MAY_DEPEND_ON {
        let ours = dependencies[name].iter().filter(|d| known.contains(d.as_str()));
        for dependency in ours {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn the_engine_knows_no_protocol_no_sql_and_no_async_runtime() {
    let dependencies = dependencies();
    for name in ["granary-log", "granary-cache", "granary-volume", "granary-memcached", "granary-nbd"] {
        for dependency in NOT_IN_THE_ENGINE {
            assert!(!dependencies[name].contains(dependency), "{name} must not depend on {dependency}");
        }
    }
}
