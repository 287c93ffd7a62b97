//! Standard error that nobody reads: a pipe whose reader has gone, or stalls.

use crate::program::granary;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

struct Logging {
    child: Child,
    http: String,
    memcached: String,
}

impl Logging {
    /// A server, and the pipe with its log behind the lines that say where it listens.
    fn start(path: &Path) -> (Self, BufReader<ChildStderr>) {
        let mut child = granary()
            .args(["server", "--http", "127.0.0.1:0", "--memcached", "127.0.0.1:0"])
            .args(["--memcached-flash", "0", "--log", "debug", "--path"])
            .arg(path)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let (mut http, mut memcached, mut line) = (String::new(), String::new(), String::new());
        while http.is_empty() || memcached.is_empty() {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the server ended");
            if let Some((_, address)) = line.split_once("Granary listens on http://") {
                http = address.trim().to_owned();
            } else if let Some((_, address)) = line.split_once("Granary serves memcached on ") {
                memcached = address.trim().to_owned();
            }
        }
        (Self { child, http, memcached }, log)
    }

    /// The first line of the answer to a login that is refused.
    fn refused_login(&self) -> String {
        let mut stream = connect(&self.http);
        let head =
            "GET /?user=nobody&query=SELECT+1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    /// Speaks memcached's binary protocol, which is refused with a log line.
    fn speak_binary(&self) {
        let mut stream = connect(&self.memcached);
        stream.write_all(&[0x80]).unwrap();
        assert_eq!(stream.read(&mut [0; 16]).unwrap_or(0), 0);
    }

    fn version(&self) -> String {
        let mut stream = connect(&self.memcached);
        stream.write_all(b"version\r\nquit\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The exit status after SIGTERM.
    fn stop(mut self) -> Option<i32> {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child.kill().unwrap();
        panic!("it does not stop");
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

const REFUSED: &str = "HTTP/1.1 403 Forbidden";

#[test]
fn a_log_whose_reader_has_gone_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (server, log) = Logging::start(folder.path());
    drop(log);
    for _ in 0..3 {
        assert_eq!(server.refused_login(), REFUSED);
        server.speak_binary();
        assert!(server.version().starts_with("VERSION "));
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_log_that_nobody_reads_holds_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _log) = Logging::start(folder.path());
    // More lines than a pipe holds.
    for _ in 0..1500 {
        server.speak_binary();
    }
    assert_eq!(server.refused_login(), REFUSED);
    assert!(server.version().starts_with("VERSION "));
    assert_eq!(server.stop(), Some(0));
}
