//! `granary server --memcached`: the whole program, stopped and killed.

#[path = "common/pasted.rs"]
mod pasted;
#[path = "server/program.rs"]
mod program;
#[path = "../../nbd/tests/common/programs.rs"]
mod programs;
#[path = "server/unlocked.rs"]
mod unlocked;

use pasted::{commands, paste};
use program::granary;
use programs::attempt;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use unlocked::await_unlocked;

struct Process {
    child: Child,
    http: SocketAddr,
    memcached: SocketAddr,
}

/// An address that was not in use a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Process {
    fn start(folder: &Path) -> Process {
        // Another program may have got an address first.
        let mut tries = (0..5).map(|_| Process::try_start(folder));
        tries.find_map(|process| process).expect("the server has ended")
    }

    /// `None`: the server has ended.
    fn try_start(folder: &Path) -> Option<Process> {
        let (http, memcached) = (free(), free());
        let mut child = granary()
            .args(["server", "--memcached-memory", "16MiB", "--memcached-flash", "64MiB", "--path"])
            .arg(folder)
            .args(["--http", &http.to_string(), "--memcached", &memcached.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() {
            let answers = TcpStream::connect(http).is_ok() && TcpStream::connect(memcached).is_ok();
            if answers && child.try_wait().unwrap().is_none() {
                return Some(Process { child, http, memcached });
            }
            assert!(Instant::now() < deadline, "the server does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Everything answered until the server closes the connection.
    fn say(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.memcached).unwrap();
        stream.write_all(format!("{request}\r\nquit\r\n").as_bytes()).unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        heard
    }

    fn ping(&self) -> String {
        let agent = ureq::Agent::new_with_defaults();
        agent.get(format!("http://{}/ping", self.http)).call().unwrap().body_mut().read_to_string().unwrap()
    }

    fn terminate(mut self) -> Option<i32> {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn memcached_and_http_in_one_program_warm_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path());
    assert_eq!(process.ping(), "Ok.\n");
    assert_eq!(
        process.say("set a 5 0 2\r\nhi\r\nset b 0 0 1\r\nb\r\ndelete b"),
        "STORED\r\nSTORED\r\nDELETED\r\n"
    );
    assert_eq!(process.terminate(), Some(0));
    let process = Process::start(folder.path());
    assert_eq!(process.say("gets a b"), "VALUE a 5 2 1\r\nhi\r\nEND\r\n");
    assert_eq!(process.say("set a 0 0 3\r\nnew\r\ndelete a"), "STORED\r\nDELETED\r\n");
    process.kill();
    await_unlocked(folder.path());
    let process = Process::start(folder.path());
    assert_eq!(process.say("get a b"), "END\r\n");
    assert_eq!(process.ping(), "Ok.\n");
    assert_eq!(process.terminate(), Some(0));
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = granary()
            .args(["server", "--http", "127.0.0.1:0", "--memcached", "127.0.0.1:0", "--path"])
            .arg(folder.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(run(&["--memcached-flash", "1MiB"]).contains("bytes of flash are too few"));
    assert!(run(&["--memcached-flash", "1MB"]).contains("KiB, MiB, GiB"));
    assert!(run(&["--memcached-max-item-size", "1GiB"]).contains("item size limit"));
    assert!(run(&["--memcached-block-size", "5KiB"]).contains("a power of two"));
    assert!(run(&["--memcached-auth-file", "/nonexistent"]).contains("/nonexistent"));
}

/// `stats granary` accounts for the program's RAM: the kernel's resident size is the sum of its parts.
#[test]
fn what_is_resident_is_accounted_for() {
    const ITEMS: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path());
    let value = "x".repeat(150);
    for first in (0..ITEMS).step_by(500) {
        let requests: Vec<String> =
            (first..first + 500).map(|key| format!("set k{key} 0 0 150 noreply\r\n{value}")).collect();
        assert_eq!(process.say(&requests.join("\r\n")), "");
    }
    let heard = process.say("stats granary");
    let of = |name: &str| -> f64 {
        let line = heard.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {heard}")).parse().unwrap()
    };
    let rss = of("rss_bytes");
    let is_near = |what: &str, a: f64, b: f64, most: f64| {
        assert!((a - b).abs() <= most, "{what}: {a} and {b} of {rss}\n{heard}");
    };
    let mib = f64::from(1 << 20);
    is_near("parts", rss, of("rss_shared_bytes") + of("rss_program_bytes") + of("rss_own_bytes"), mib);
    if of("memory_file_bytes") > 0.0 {
        // As far as they were touched.
        is_near(
            "files",
            of("rss_shared_bytes"),
            of("memory_file_bytes") + of("buffer_bytes"),
            0.02 * rss + mib,
        );
    }
    // The stacks of some dozen threads belong to no part.
    let own = of("allocated_bytes") + of("allocator_kept_bytes");
    is_near("own", of("rss_own_bytes"), own, 0.02 * rss + 8.0 * mib);
    // What is not counted is bounded: the program without items, and some of each thread.
    let threads = std::thread::available_parallelism().map_or(1.0, |threads| threads.get() as f64);
    let (other, most) = (of("allocated_other_bytes"), (6.0 + 0.5 * threads) * mib);
    assert!(other <= most, "{other} of {most} bytes\n{heard}");
    process.kill();
}

/// Runs a server that refuses to start, and returns its error.
fn refused(arguments: &[&str]) -> String {
    let output = granary().arg("server").args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_start_in_a_folder_that_is_in_use_changes_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut first = granary()
        .args(["server", "--http", "127.0.0.1:0", "--path", path])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(first.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(log.any(|line| line.contains("listens on http://")), "it is served");
    let names = || -> BTreeSet<_> {
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = names();
    let error = refused(&["--http", "127.0.0.1:0", "--memcached", "127.0.0.1:0", "--path", path]);
    assert!(error.contains("another granary is working in this folder"), "{error}");
    assert_eq!(names(), before);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn memcached_alone_is_served_without_http() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let alone = ["--http", "none", "--path", path];
    assert!(refused(&alone).contains("nothing is served"));
    let mut server = granary()
        .args(["server", "--memcached", "127.0.0.1:0", "--memcached-flash", "64MiB"])
        .args(alone)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    let said = log.find(|line| line.contains("http://") || line.contains("serves memcached on "));
    let said = said.expect("it is served");
    let (_, address) = said.split_once("serves memcached on ").unwrap_or_else(|| panic!("{said}"));
    let mut stream = TcpStream::connect(address.trim()).unwrap();
    stream.write_all(b"mn\r\n").unwrap();
    let mut heard = [0; 4];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"MN\r\n");
    server.kill().unwrap();
    server.wait().unwrap();
}

/// The examples of the README and of docs/memcached.md, pasted into a shell, print what they say, and the item is there
/// at the next start.
#[test]
fn the_examples_work_as_they_are_written() {
    let readme = commands(include_str!("../../../README.md"), "\n## Use it as memcached\n");
    let page = commands(include_str!("../../../docs/memcached.md"), "# The memcached server\n");
    for commands in [readme, page] {
        let folder = tempfile::tempdir().unwrap();
        // Where it is not installed, the commands would wait for it.
        attempt(folder.path(), "nc", &["-h"]);
        let on_a_free_port =
            |commands: &str| paste(folder.path(), &commands.replace("11211", &free().port().to_string()));
        let line = commands.lines().find(|line| line.contains("| nc ")).expect("something is asked");
        let (_, printed) = line.split_once("# ").expect("it says what is printed");
        let told = on_a_free_port(commands);
        assert_eq!(told.lines().collect::<Vec<_>>().join(", "), printed, "{commands}");
        let later = commands.replace(r"set greeting 0 0 5\r\nhello\r\n", "");
        assert_eq!(on_a_free_port(&later), "VALUE greeting 0 5\r\nhello\r\nEND\r\n", "{later}");
    }
}
