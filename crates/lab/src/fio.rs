//! fio itself, on files and on NBD exports.

use crate::peers::{PeerError, error};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The target of fio's reads and writes.
#[derive(Clone, Debug)]
pub enum FioTarget {
    /// A file, with O_DIRECT, by io_uring.
    File(PathBuf),
    /// An export, by libnbd: its URI.
    Nbd(String),
}

/// The order of reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FioPattern {
    /// Everything once, sequentially, written in large pieces.
    Fill,
    /// Random offsets; `reads_percent` of the operations are reads.
    Random {
        /// Percent of reads.
        reads_percent: u32,
    },
}

/// A run of fio.
#[derive(Clone, Debug)]
pub struct FioJob {
    /// The target.
    pub target: FioTarget,
    /// The order.
    pub pattern: FioPattern,
    /// The bytes of an operation.
    pub block: u64,
    /// Bytes from the beginning of the target that are used.
    pub size: u64,
    /// Operations in flight per job.
    pub depth: usize,
    /// Parallel jobs: connections of an export.
    pub jobs: usize,
    /// How long it runs; ignored by `Fill`.
    pub seconds: f64,
}

/// fio's results.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FioFigures {
    /// Operations a second.
    pub iops: f64,
    /// All operations.
    pub operations: f64,
    /// Mean latency, in microseconds: of writes, where there are any.
    pub latency_us_mean: f64,
    /// 99th percentile of latency, in microseconds: of writes, where there are any.
    pub latency_us_p99: f64,
}

impl FioJob {
    /// Runs the job.
    ///
    /// # Errors
    /// fio is not installed, or an operation failed.
    pub fn run(&self) -> Result<FioFigures, PeerError> {
        let mut command = Command::new("fio");
        command.args([
            "--name=job",
            "--thread",
            "--group_reporting",
            "--output-format=json",
            "--randrepeat=0",
        ]);
        match &self.target {
            FioTarget::File(path) => command
                .args(["--ioengine=io_uring", "--direct=1"])
                .arg(format!("--filename={}", path.display())),
            FioTarget::Nbd(uri) => command.arg("--ioengine=nbd").arg(format!("--uri={uri}")),
        };
        match self.pattern {
            FioPattern::Fill => command.args(["--rw=write", "--end_fsync=1"]),
            FioPattern::Random { reads_percent } => command
                .args(["--rw=randrw", "--norandommap", "--time_based"])
                .arg(format!("--rwmixread={reads_percent}"))
                .arg(format!("--runtime={}ms", (self.seconds * 1000.0) as u64)),
        };
        command
            .arg(format!("--bs={}", self.block))
            .arg(format!("--size={}", self.size))
            .arg(format!("--iodepth={}", self.depth))
            .arg(format!("--numjobs={}", self.jobs));
        let ran = command.stdin(Stdio::null()).output().map_err(|e| error("cannot run fio", e))?;
        if !ran.status.success() {
            return Err(error("fio", String::from_utf8_lossy(&ran.stderr)));
        }
        figures(&String::from_utf8_lossy(&ran.stdout))
    }
}

/// Parses fio's output; its engines print lines of their own before the JSON.
fn figures(printed: &str) -> Result<FioFigures, PeerError> {
    let json = printed.find('{').map_or("", |at| &printed[at..]);
    let answer: Value = serde_json::from_str(json).map_err(|e| error("fio", e))?;
    let job = &answer["jobs"][0];
    let number = |value: &Value| value.as_f64().ok_or_else(|| error("fio does not say", "all figures"));
    let both = |name: &str| Ok::<_, PeerError>(number(&job["read"][name])? + number(&job["write"][name])?);
    let side = if number(&job["write"]["total_ios"])? > 0.0 { &job["write"] } else { &job["read"] };
    let latency = &side["clat_ns"];
    Ok(FioFigures {
        iops: both("iops")?,
        operations: both("total_ios")?,
        latency_us_mean: number(&latency["mean"])? / 1e3,
        latency_us_p99: latency["percentile"]["99.000000"].as_f64().unwrap_or(f64::NAN) / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read() {
        let printed = r#"fio: connected to NBD server
{"jobs": [{"read": {"iops": 10.5, "total_ios": 21, "clat_ns": {"mean": 1000.0}},
  "write": {"iops": 4.5, "total_ios": 9, "clat_ns": {"mean": 2000.0, "percentile": {"99.000000": 7000}}}}]}"#;
        let expected = FioFigures { iops: 15.0, operations: 30.0, latency_us_mean: 2.0, latency_us_p99: 7.0 };
        assert_eq!(figures(printed).unwrap(), expected);
        assert!(figures("fio: no such file").is_err());
    }
}
