//! A real `granary server` on a free port, and requests to it.

use crate::program::granary;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longer than any answer takes, and the end of a server.
const TIMEOUT: Duration = Duration::from_secs(300);

/// A server, stopped by SIGTERM on drop.
pub struct Served {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    log: Mutex<Receiver<String>>,
}

/// An HTTP answer.
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub body: Vec<u8>,
}

impl Served {
    pub fn start(path: &Path, arguments: &[&str]) -> Served {
        Served::start_in(path, arguments, &[])
    }

    /// Starts a server with environment variables.
    pub fn start_in(path: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Served {
        Served::start_at("127.0.0.1:0", path, arguments, variables)
    }

    /// Starts a server that listens at `http`.
    pub fn start_at(http: &str, path: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Served {
        let mut child = granary()
            .args(["server", "--http", http, "--log", "info", "--path"])
            .arg(path)
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (send, log) = channel();
        // A server whose log is not read would block in the end.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("{line}");
                let _ = send.send(line);
            }
        });
        let mut served = Served { child, url: String::new(), log: Mutex::new(log) };
        served.url = served.address();
        served
    }

    /// The address of its next "listens on" line.
    fn address(&self) -> String {
        self.behind("Granary listens on ").trim().to_owned()
    }

    /// Waits until the log has a line with these words.
    pub fn wait_for(&self, words: &str) {
        self.behind(words);
    }

    /// The text after these words in the next line of the log that has them.
    pub fn behind(&self, words: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        let log = self.log.lock().unwrap();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = log.recv_timeout(left).unwrap_or_else(|why| panic!("no line with {words}: {why}"));
            if let Some((_, rest)) = line.split_once(words) {
                return rest.to_owned();
            }
        }
    }

    /// `https://localhost:PORT`.
    pub fn https(&self) -> String {
        self.address().replace("127.0.0.1", "localhost")
    }

    /// Address and port.
    pub fn host(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// GET of a path.
    pub fn get(&self, path: &str) -> Answer {
        answer(agent().get(format!("{}{path}", self.url)).call())
    }

    /// GET with headers.
    pub fn get_as(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = agent().get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(request.call())
    }

    /// POST of a body to a path.
    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        answer(agent().post(format!("{}{path}", self.url)).send(body))
    }

    /// POST of a body with headers.
    pub fn post_as(&self, path: &str, body: &[u8], headers: &[(&str, &str)]) -> Answer {
        let mut request = agent().post(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(request.send(body))
    }

    /// The text that SQL answers.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        let answer = self.post("/", sql.as_bytes());
        assert_eq!(answer.status, 200, "{sql}: {}", answer.text());
        answer.text()
    }

    /// The text that SQL answers; `None`: the server ended before it answered.
    #[track_caller]
    pub fn try_sql(&self, sql: &str) -> Option<String> {
        let (parts, mut body) = agent().post(&self.url).send(sql).ok()?.into_parts();
        let text = body.read_to_string().ok()?;
        assert_eq!(parts.status.as_u16(), 200, "{sql}: {text}");
        Some(text)
    }

    /// Its peak memory so far, in bytes.
    pub fn memory_peak(&self) -> u64 {
        self.status("VmHWM:") * 1024
    }

    /// Its number of threads.
    pub fn threads(&self) -> u64 {
        self.status("Threads:")
    }

    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Stops it and returns the exit status.
    pub fn stop(mut self) -> Option<i32> {
        self.terminate();
        self.end().code()
    }

    /// Stops it and returns the log lines from then on.
    pub fn log_of_stop(mut self) -> Vec<String> {
        let log = std::mem::replace(&mut self.log, Mutex::new(channel().1)).into_inner().unwrap();
        log.try_iter().for_each(drop);
        self.terminate();
        self.end();
        log.iter().collect()
    }

    /// Waits until it has ended.
    pub fn wait(mut self) {
        self.end();
    }

    /// Its exit status, once it has ended.
    fn end(&mut self) -> ExitStatus {
        self.try_end().expect("it ends")
    }

    /// Its exit status, once it has ended; `None`: it did not, and was killed.
    fn try_end(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        None
    }

    fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.terminate();
            self.try_end();
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
    let options = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
    options.timeout_global(Some(TIMEOUT)).build().into()
}

/// Waits until it holds.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
    let (parts, mut body) = response.unwrap().into_parts();
    let body = body.with_config().limit(1 << 30).read_to_vec().unwrap();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}
