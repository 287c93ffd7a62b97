//! The clients that people use: clickhouse-connect (Python), the `clickhouse` crate, and a browser.

use crate::dictionary::users;
use crate::served::Served;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where what these clients need is kept from one run to the next.
fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn served() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path());
    let served = Served::start(folder.path(), &[]);
    (folder, served)
}

#[track_caller]
fn ran(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let says = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", says(&output.stdout), says(&output.stderr));
    output
}

#[test]
fn clickhouse_connect_runs_ddl_and_queries() {
    let environment = kept("clickhouse-connect");
    let python = environment.join("bin/python");
    if !python.exists() {
        ran(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    }
    ran(Command::new(&python).args(["-m", "pip", "install", "--quiet", "clickhouse-connect==1.12.0"]));
    let (_folder, served) = served();
    let port = served.url.rsplit(':').next().unwrap();
    let script = repository().join("clients/clickhouse_connect_check.py");
    ran(Command::new(&python).arg(script).arg(port));
}

#[test]
fn the_clickhouse_crate_runs_ddl_and_queries() {
    let (_folder, served) = served();
    let manifest = repository().join("clients/rust/Cargo.toml");
    ran(Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(kept("client-rust"))
        .args(["--", &served.url]));
}

#[test]
fn a_browser_shows_the_dashboard() {
    let (_folder, served) = served();
    served.sql(
        "CREATE DICTIONARY users (id UInt64, name String, city Nullable(String)) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LIFETIME(1000) LAYOUT(SSD_CACHE(PATH 'u' FILE_SIZE 1048576))",
    );
    served.sql("SELECT dictGet('users', 'name', number) FROM numbers(50) FORMAT Null");
    let profile = tempfile::tempdir().unwrap();
    let page = ran(Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("{}/dashboard", served.url)));
    let page = String::from_utf8(page.stdout).unwrap();
    for text in ["1 dictionary, 50 entries", "default.users", "LOADED", "SSDCache over SQLite"] {
        assert!(page.contains(text), "{text} is not on the page: {page}");
    }
    assert!(!page.contains("class=\"error\""), "{page}");
}
