//! Drivers of the programs that Granary is measured against, in the folder `rivals/`.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A peer that did not start, did not answer, or answered with an error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PeerError(String);

/// An error that says what failed, and why.
pub(crate) fn error(what: &str, why: impl std::fmt::Display) -> PeerError {
    PeerError(format!("{what}: {why}"))
}

/// A real ClickHouse in a process of its own; see rivals/README.md.
pub struct ClickHouse {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl ClickHouse {
    /// Starts the driver in `rivals` with its data in `data`.
    pub fn start(rivals: &Path, data: &Path) -> Result<Self, PeerError> {
        let driver = rivals.join("clickhouse/driver.py");
        let mut child = Command::new("python3")
            .arg(&driver)
            .arg("--data")
            .arg(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| error("cannot start the ClickHouse driver", e))?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let mut this = Self { child, requests, answers };
        this.run("SELECT 1")?;
        Ok(this)
    }

    /// Id of the driver's process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Runs SQL; returns the seconds that the engine took, and its answer as TabSeparated.
    pub fn run(&mut self, sql: &str) -> Result<(f64, String), PeerError> {
        let requests = self.requests.as_mut().expect("open until dropped");
        writeln!(requests, "{}", json!({ "sql": sql }))
            .map_err(|e| error("ClickHouse takes no request", e))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|e| error("ClickHouse gives no answer", e))?;
        let answer: Value = serde_json::from_str(&line)
            .map_err(|_| PeerError("the ClickHouse driver ended; run scripts/install-rivals.sh".into()))?;
        match answer["error"].as_str() {
            Some(text) => Err(error(sql, text)),
            None => Ok((
                answer["seconds"].as_f64().unwrap_or(f64::NAN),
                answer["result"].as_str().unwrap_or_default().to_owned(),
            )),
        }
    }
}

impl Drop for ClickHouse {
    fn drop(&mut self) {
        // The driver ends at the end of its input.
        self.requests = None;
        let _ = self.child.wait();
    }
}

/// fio's results on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Fio {
    /// fio's own version.
    pub version: String,
    /// Reads a second.
    pub iops: f64,
    /// Mean latency, microseconds.
    pub latency_us_mean: f64,
    /// 99th percentile of latency, microseconds.
    pub latency_us_p99: f64,
}

/// fio's random reads of `block` bytes with io_uring at `depth`, O_DIRECT, in the first `size` bytes of `file`.
pub fn fio_random_reads(
    rivals: &Path,
    file: &Path,
    size: u64,
    block: usize,
    depth: usize,
    seconds: u32,
) -> Result<Fio, PeerError> {
    let run = Command::new("python3")
        .arg(rivals.join("fio/fio.py"))
        .arg("--file")
        .arg(file)
        .args(["--size", &size.to_string(), "--block", &block.to_string()])
        .args(["--depth", &depth.to_string(), "--seconds", &seconds.to_string(), "--fixed-buffers"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| error("cannot run fio", e))?;
    if !run.status.success() {
        return Err(error("fio", String::from_utf8_lossy(&run.stderr)));
    }
    let answer: Value = serde_json::from_slice(&run.stdout).map_err(|e| error("fio", e))?;
    let number = |name: &str| answer[name].as_f64().ok_or_else(|| error("fio does not say", name));
    Ok(Fio {
        version: answer["version"].as_str().unwrap_or_default().to_owned(),
        iops: number("iops")?,
        latency_us_mean: number("latency_us_mean")?,
        latency_us_p99: number("latency_us_p99")?,
    })
}
