//! Helpers for a study's processes: signals, RAM, ports.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};

/// A loopback port that is not in use.
pub fn free_port() -> Result<u16> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.map(|address| address.port()).map_err(|error| Failure::File("a free port".to_owned(), error))
}

/// Sends a signal, such as `TERM`, to one process. A process that has ended is no error.
pub fn signal(name: &str, process: u32) {
    let _ = Command::new("kill").args(["-s", name, &process.to_string()]).status();
}

/// Bytes of resident RAM of a process.
pub fn resident_bytes(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// The living child processes of a process.
pub fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = std::fs::read_to_string(Path::new(&path)).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}
