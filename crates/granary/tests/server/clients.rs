//! The clients that people use: clickhouse-connect (Python), the `clickhouse` crate, and a browser.

use crate::dictionary::users;
use crate::program::granary;
use crate::served::Served;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder that keeps these clients' files between runs.
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

/// Runs a command that fetches packages: the network may be away for a moment.
#[track_caller]
fn fetched(command: &mut Command) {
    for _ in 0..2 {
        if command.output().is_ok_and(|output| output.status.success()) {
            return;
        }
        std::thread::sleep(Duration::from_secs(5));
    }
    ran(command);
}

#[test]
fn clickhouse_connect_runs_ddl_and_queries() {
    let environment = kept("clickhouse-connect");
    let python = environment.join("bin/python");
    if !python.exists() {
        ran(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    }
    fetched(Command::new(&python).args(["-m", "pip", "install", "--quiet", "clickhouse-connect==1.12.0"]));
    let (_folder, served) = served();
    let port = served.url.rsplit(':').next().unwrap();
    let script = repository().join("clients/clickhouse_connect_check.py");
    ran(Command::new(&python).arg(script).arg(port));
}

#[test]
fn the_clickhouse_crate_runs_ddl_and_queries() {
    let cargo = |subcommand: &str| {
        let mut command = Command::new(env!("CARGO"));
        command
            .args([subcommand, "--quiet", "--locked", "--manifest-path"])
            .arg(repository().join("clients/rust/Cargo.toml"))
            .arg("--target-dir")
            .arg(kept("client-rust"));
        command
    };
    fetched(&mut cargo("build"));
    let (_folder, served) = served();
    ran(cargo("run").args(["--", &served.url]));
}

/// The dashboard's page as a browser renders it. An error in its console fails the test.
#[track_caller]
fn shown(served: &Served, page: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = ran(Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("{}/dashboard{page}", served.url)));
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!log.contains(":CONSOLE"), "{page}: {log}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn assert_says(page: &str, texts: &[&str]) {
    for text in texts {
        assert!(page.contains(text), "{text} is not on the page: {page}");
    }
}

#[test]
fn a_browser_shows_the_dashboard() {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path());
    let create =
        ["volume", "create", "scratch", "--size", "16MiB", "--path", folder.path().to_str().unwrap()];
    assert!(granary().args(create).status().unwrap().success());
    let flags = [
        "--memcached",
        "127.0.0.1:0",
        "--memcached-memory",
        "64MiB",
        "--memcached-flash",
        "0",
        "--nbd",
        "127.0.0.1:0",
    ];
    let served = Served::start(folder.path(), &flags);
    served.sql(
        "CREATE DICTIONARY users (id UInt64, name String, city Nullable(String)) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LIFETIME(1000) LAYOUT(SSD_CACHE(PATH 'u' FILE_SIZE 1048576))",
    );
    served.sql("SELECT dictGet('users', 'name', number) FROM numbers(50) FORMAT Null");
    let page = shown(&served, "");
    assert_says(&page, &["1 dictionary, 50 entries", "default.users", "LOADED", "SSDCache over SQLite"]);
    assert_says(&page, &["memcached's protocol on 127.0.0.1:", "SERVING"]);
    assert!(!page.contains("failing") && !page.contains("pill bad"), "{page}");
    let page = shown(&served, "#/dictionary/default.users");
    assert_says(
        &page,
        &["CREATE DICTIONARY default.users", "`city` Nullable(String)", "LIFETIME(MIN 0 MAX 1000)"],
    );
    assert_says(&page, &["Hit ratio", "Lookup of a batch", "Source load", "load factor", "<svg"]);
    assert_says(
        &shown(&served, "#/memcached"),
        &["memcached's protocol on 127.0.0.1:", "Connections", "64 MiB"],
    );
    assert_says(
        &shown(&served, "#/volume/scratch"),
        &["volume at nbd://127.0.0.1:", "Latency, 99 %", "live share of the log", "written : asked for"],
    );
    assert_says(&shown(&served, "#/volume/none"), &["does not serve such a volume"]);
    assert_says(&shown(&served, "#/query"), &["<textarea", "Run"]);
    assert_says(&shown(&served, "#/dictionary/default.nosuch"), &["There is no such dictionary"]);
}

/// A state in red always has its reason beside it.
#[test]
fn a_browser_shows_what_fails() {
    let (_folder, served) = served();
    served.sql(
        "CREATE DICTIONARY lost (id UInt64, v String) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'users.db' TABLE 'nosuch')) LIFETIME(1000) LAYOUT(CACHE(SIZE_IN_CELLS 10))",
    );
    assert_eq!(served.post("/", b"SELECT dictGet('lost', 'v', 1)").status, 500);
    for page in ["", "#/dictionary/default.lost"] {
        let page = shown(&served, page);
        assert_says(
            &page,
            &["1 failing", "pill bad\">source fails", "the source failed once", "no such table: nosuch"],
        );
    }
}
