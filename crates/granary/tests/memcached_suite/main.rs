//! memcached's own tests against `granary server`: they come from Debian's source package, and are not part of this
//! repository. Tests of features that Granary does not have are listed in `suite.txt`, with the reason.

mod exporter;
#[path = "../server/program.rs"]
mod program;
#[path = "../../../log/tests/common/skip.rs"]
mod skip;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Most of a test's time is spent asleep. But some count seconds and draw ports: one that fails beside others is run
/// once more, alone.
const AT_ONCE: usize = 12;
const TIMEOUT: Duration = Duration::from_secs(90);

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memcached_suite")
}

/// Prints a text even where the output of passing tests is suppressed.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// memcached's source, fetched if necessary; `None`: it cannot be fetched.
fn source() -> Option<PathBuf> {
    let fetched = Command::new(repository().join("scripts/fetch-memcached-tests.sh")).output().ok()?;
    if !fetched.status.success() {
        say(&String::from_utf8_lossy(&fetched.stderr));
        return None;
    }
    Some(repository().join("target/memcached-1.6.18"))
}

/// How many checks of a test must pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    All,
    Some(usize),
}

/// The tests to run, by name.
fn tests(source: &Path) -> BTreeMap<String, Expected> {
    let listed = fs::read_to_string(here().join("suite.txt")).unwrap();
    let lines = listed.lines().filter(|line| !line.starts_with('#'));
    let listed: BTreeMap<&str, (&str, &str)> = lines
        .map(|line| {
            let (name, rest) = line.split_once(' ').expect(line);
            let (passes, reason) = rest.trim_start().split_once(' ').expect(line);
            assert!(!reason.trim().is_empty(), "{name} has a reason");
            (name, (passes, reason))
        })
        .collect();
    let names = fs::read_dir(source.join("t")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> =
        names.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".t")).collect();
    for name in listed.keys() {
        assert!(names.iter().any(|is| is == name), "{name} is one of memcached's");
    }
    let expected = |name: String| match listed.get(name.as_str()) {
        None => Some((name, Expected::All)),
        Some(("-", _)) => None,
        Some((passes, _)) => Some((name, Expected::Some(passes.parse().unwrap()))),
    };
    names.into_iter().filter_map(expected).collect()
}

/// A folder that looks as if memcached had been built in it.
fn built(source: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["t", "doc"] {
        let copied =
            Command::new("cp").args(["-r".as_ref(), source.join(name).as_os_str()]).arg(at(name)).status();
        assert!(copied.unwrap().success());
    }
    for name in ["memcached-debug", "timedrun"] {
        fs::copy(here().join(name), at(name)).unwrap();
    }
    fs::create_dir(at("data")).unwrap();
    // memcached's own build for tests has a settable clock; here the machine's clock is used.
    let library = at("t/lib/MemcachedTest.pm");
    let text = fs::read_to_string(&library).unwrap();
    let moved = r#"    print $sock "debugtime $move\r\n";
    <$sock>;"#;
    assert!(text.contains(moved));
    fs::write(&library, text.replace(moved, "    sleep($move + 1);")).unwrap();
    folder
}

/// Where items are kept.
#[derive(Clone, Copy)]
struct Shape {
    flash: &'static str,
    admission: &'static str,
}

fn run(folder: &Path, name: &str, shape: Shape) -> Output {
    let file = |what: &str| folder.join(format!("{name}.{}.{what}", shape.admission));
    let mut child = Command::new("perl")
        .arg(format!("t/{name}"))
        .current_dir(folder)
        .env("GRANARY", program::GRANARY)
        .env("GRANARY_FOLDER", folder.join("data"))
        .env("GRANARY_FLASH", shape.flash)
        .env("GRANARY_ADMISSION", shape.admission)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(fs::File::create(file("out")).unwrap())
        .stderr(fs::File::create(file("err")).unwrap())
        .spawn()
        .expect("perl is there");
    let deadline = Instant::now() + TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            // With its servers, which would have the ports of the next run.
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Output { status, stdout: fs::read(file("out")).unwrap(), stderr: fs::read(file("err")).unwrap() }
}

/// The mistake in a test's output; `None`: it is as expected.
fn mistake(output: &Output, expected: Expected) -> Option<String> {
    let heard = String::from_utf8_lossy(&output.stdout);
    let passed = heard.lines().filter(|line| line.starts_with("ok ")).count();
    let is_right = match expected {
        Expected::All => output.status.success(),
        Expected::Some(checks) => passed == checks,
    };
    let failed: Vec<&str> = heard.lines().filter(|line| line.starts_with("not ok")).take(5).collect();
    let said = String::from_utf8_lossy(&output.stderr);
    (!is_right).then(|| format!("{passed} passed, {expected:?} expected; {failed:?}\n{said}"))
}

#[test]
fn memcacheds_own_tests() {
    let Some(source) = source() else {
        return skip::skipped("memcached's source could not be fetched: none of its own tests ran");
    };
    let folder = built(&source);
    let tests = tests(&source);
    let shapes = [Shape { flash: "0", admission: "reuse" }, Shape { flash: "256MiB", admission: "all" }];
    let todo = tests.iter().flat_map(|(name, expected)| shapes.map(|shape| (name, *expected, shape)));
    let todo = Mutex::new(todo.collect::<Vec<_>>().into_iter());
    let check = |name: &str, expected: Expected, shape: Shape| {
        let begun = Instant::now();
        let output = run(folder.path(), name, shape);
        println!("{name}, {}: {:.1} s", shape.admission, begun.elapsed().as_secs_f64());
        mistake(&output, expected).map(|mistake| format!("{name}, {}: {mistake}", shape.admission))
    };
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((name, expected, shape)) = { todo.lock().unwrap().next() } {
                    if let Some(mistake) = check(name, expected, shape) {
                        say(&format!("It is run again, alone: {mistake}"));
                        failed.lock().unwrap().push((name, expected, shape));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap().into_iter();
    let mistakes: Vec<String> =
        failed.filter_map(|(name, expected, shape)| check(name, expected, shape)).collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n\n"));
    println!("{} of memcached's tests, each in {} shapes", tests.len(), shapes.len());
}
