//! `granary study ... --quick`: every study runs. Peers that are not installed are left out.

#[path = "../../log/tests/common/skip.rs"]
mod skip;

use std::path::Path;
use std::process::Command;

#[test]
fn the_study_of_dictionaries_runs() {
    let rivals = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rivals");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compiles = Command::new(compiler).arg("--version").output().is_ok();
    if !compiles && !rivals.join("clickhouse/source").exists() {
        return skip::skipped("no C compiler for the source that the study asks");
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = Command::new(env!("CARGO_BIN_EXE_granary"))
        .args(["study", "dictionary", "--quick", "--rivals"])
        .arg(&rivals)
        .arg("--out")
        .arg(&out)
        .arg("--data")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.join("dictionary.md")).unwrap();
    for words in ["Made with `--quick`", "SSD_CACHE, 64 KiB", "block, buffer", "after kill -9"] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    assert!(std::fs::read_to_string(out.join("dictionary.csv")).unwrap().lines().count() > 40);
    assert!(std::fs::read_to_string(out.join("dictionary.svg")).unwrap().starts_with("<svg"));
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing but its answer is left");
}

/// LevelDB, RocksDB and memory cgroups are left out where they are missing: the page says so.
#[test]
fn the_study_of_caches_runs() {
    let rivals = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rivals");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let study = |rivals: &Path, only: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_granary"))
            .args(["study", "cache", "--quick", "--rivals"])
            .arg(rivals)
            .arg("--out")
            .arg(&out)
            .arg("--data")
            .arg(folder.path())
            .args(only)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(out.join("cache.md")).unwrap()
    };
    let page = study(&rivals, &[]);
    for words in [
        "Made with `--quick`",
        "LevelDB, pread",
        "not possible",
        "The median operation",
        "predicted, us",
        "By time:",
        "Granary, divides itself",
        "with as large caches",
        "32 keys known at once",
    ] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    assert!(!page.contains("Not measured"), "all parts are there:\n{page}");
    let has_peers = rivals.join("stores/stores").exists();
    assert_eq!(page.contains("their columns are empty"), !has_peers);
    let csv = std::fs::read_to_string(out.join("cache.csv")).unwrap();
    assert_eq!(csv.contains("\"RocksDB"), has_peers, "a peer that is there is measured");
    assert!(csv.lines().count() > 40);
    for part in ["blocks", "large", "model", "division"] {
        let plot = std::fs::read_to_string(out.join(format!("cache-{part}.svg"))).unwrap();
        assert!(plot.starts_with("<svg"));
    }
    let again = study(folder.path(), &["--only", "skewed"]);
    assert!(again.contains("their columns are empty") && !again.contains("Not measured"), "{again}");
    let blocks = |page: &str| {
        let start = page.find("## Block sizes").unwrap();
        page[start..start + page[start..].find("\n## ").unwrap()].to_owned()
    };
    assert_eq!(blocks(&again), blocks(&page), "what is not measured again stays");
    let kept = std::fs::read_to_string(out.join("cache.csv")).unwrap();
    let of_blocks = |csv: &str| csv.lines().filter(|line| line.starts_with("\"blocks\"")).count();
    assert_eq!(of_blocks(&kept), of_blocks(&csv));
    std::fs::remove_dir_all(&out).unwrap();
    let page = study(folder.path(), &["--only", "skewed"]);
    assert!(page.contains("left out `blocks`"), "{page}");
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing but its answer is left");
}

#[test]
fn the_study_of_memcached_runs() {
    let rivals = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rivals");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = Command::new(env!("CARGO_BIN_EXE_granary"))
        .args(["study", "memcached", "--quick", "--rivals"])
        .arg(&rivals)
        .arg("--out")
        .arg(&out)
        .arg("--data")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.join("memcached.md")).unwrap();
    for words in ["Made with `--quick`", "Items in RAM", "memcached extstore", "slab_automove", "16, one get"]
    {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    assert!(std::fs::read_to_string(out.join("memcached.csv")).unwrap().lines().count() > 6);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing but its answer is left");
}

/// A folder that PostgreSQL can read: it runs as its own user if the tests run as root.
fn folder_for_all() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    folder
}

#[test]
fn the_study_of_the_proxy_runs() {
    let rivals = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rivals");
    let folder = folder_for_all();
    let out = folder.path().join("out");
    let output = Command::new(env!("CARGO_BIN_EXE_granary"))
        .args(["study", "proxy", "--quick", "--rivals"])
        .arg(&rivals)
        .arg("--out")
        .arg(&out)
        .arg("--data")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.join("proxy.md")).unwrap();
    for words in ["Made with `--quick`", "Granary without ClickHouse", "restarted, new draws", "The hop"] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    assert!(!page.contains('{'), "all is filled in:\n{page}");
    assert!(std::fs::read_to_string(out.join("proxy.csv")).unwrap().lines().count() > 10);
    assert!(std::fs::read_to_string(out.join("proxy.svg")).unwrap().starts_with("<svg"));
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing but its answer is left");
}

/// The short form of ten minutes of load: it fails on an unexpected error.
#[test]
fn the_study_of_outages_runs() {
    let folder = folder_for_all();
    let out = folder.path().join("out");
    let output = Command::new(env!("CARGO_BIN_EXE_granary"))
        .args(["study", "outage", "--quick", "--out"])
        .arg(&out)
        .arg("--data")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.join("outage.md")).unwrap();
    for words in ["Made with `--quick`", "| paused", "| stale", "connections to PostgreSQL"] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    assert!(std::fs::read_to_string(out.join("outage.csv")).unwrap().lines().count() > 10);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing but its answer is left");
}

#[test]
fn the_study_of_volumes_runs() {
    let missing = |program: &&str| Command::new(program).arg("--version").output().is_err();
    if let Some(missing) = ["fio", "nbdkit", "qemu-nbd"].iter().find(|program| missing(program)) {
        return skip::skipped(&format!("no {missing}, beside which volumes are measured"));
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let study = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_granary"))
            .args(["study", "volume", "--quick", "--out"])
            .arg(&out)
            .arg("--data")
            .arg(folder.path())
            .arg("--memory")
            .arg(folder.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(out.join("volume.md")).unwrap()
    };
    let page = study(&[]);
    for words in [
        "Made with `--quick`",
        "skip-list",
        "nbdkit memory",
        "in process",
        "greedy model",
        "killed",
        "worst window",
    ] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    // Parts that are not measured again stay.
    let again = study(&["--only", "memory"]);
    let transport = |page: &str| page.split("<!-- transport -->").nth(1).unwrap().to_owned();
    assert_eq!(transport(&again), transport(&page));
    for name in ["maps", "memory", "transport", "disk", "amplification", "opening", "endurance"] {
        assert!(
            std::fs::read_to_string(out.join(format!("volume-{name}.csv"))).unwrap().lines().count() > 2,
            "{name}"
        );
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing but its answer is left");
}
