//! A real `granary server` on a free port, and requests to it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Stopped as a person stops it, with SIGTERM, when it is dropped.
pub struct Served {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub url: String,
}

/// What was answered.
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub body: Vec<u8>,
}

impl Served {
    pub fn start(path: &Path, arguments: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_granary"))
            .args(["server", "--http", "127.0.0.1:0", "--path"])
            .arg(path)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("Granary listens on ").expect(&line).to_owned();
        Served { child, url }
    }

    /// GET of a path.
    pub fn get(&self, path: &str) -> Answer {
        answer(agent().get(format!("{}{path}", self.url)).call())
    }

    /// POST of a body to a path.
    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        answer(agent().post(format!("{}{path}", self.url)).send(body))
    }

    /// The text that SQL answers.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        let answer = self.post("/", sql.as_bytes());
        assert_eq!(answer.status, 200, "{sql}: {}", answer.text());
        answer.text()
    }

    /// Stops it and gives the exit status.
    pub fn stop(mut self) -> Option<i32> {
        self.terminate();
        self.child.wait().unwrap().code()
    }

    fn terminate(&self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.terminate();
            let _ = self.child.wait();
        }
    }
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().into()
}

fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
    let (parts, mut body) = response.unwrap().into_parts();
    let body = body.with_config().limit(1 << 30).read_to_vec().unwrap();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}
