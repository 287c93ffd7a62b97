//! A server in a process of its own, to be killed. The process is the test's own program, which runs its test `child`,
//! which calls [`serve`].

use super::with_policy;
use granary_memcached::Server;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const FOLDER: &str = "GRANARY_MEMCACHED_CHILD";
const POLICY: &str = "GRANARY_MEMCACHED_CHILD_POLICY";
const PORT: &str = "GRANARY_MEMCACHED_CHILD_PORT";
const MEMORY: &str = "GRANARY_MEMCACHED_CHILD_MEMORY";

/// Serves until the process is killed, if the environment says so.
pub fn serve() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut options = with_policy(Path::new(&folder), &std::env::var(POLICY).unwrap());
    if let Some(bytes) = std::env::var(MEMORY).ok().and_then(|bytes| bytes.parse().ok()) {
        options.store.memory_bytes = bytes;
    }
    let port = std::env::var(PORT).unwrap().parse().unwrap();
    options.address = Some((std::net::Ipv4Addr::LOCALHOST, port).into());
    let server = Server::start(&options).unwrap();
    println!("\nlistens on {}", server.address());
    loop {
        std::thread::park();
    }
}

pub struct Process {
    child: Child,
    pub address: SocketAddr,
    /// Kept open: the test harness reports a test that runs for a minute, and ends if it cannot write that.
    _output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a server with little RAM; `port` 0: any port.
    pub fn start(folder: &Path, policy: &str, port: u16) -> Process {
        Self::start_with(folder, policy, port, None)
    }

    /// Starts a server with `memory` bytes of RAM.
    pub fn start_with(folder: &Path, policy: &str, port: u16, memory: Option<u64>) -> Process {
        // The port of a killed process may be in use for a while, and its files may be locked until the kernel has
        // ended its reads.
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(process) = Self::try_start(folder, policy, port, memory) {
                return process;
            }
            assert!(Instant::now() < deadline, "a server starts");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn try_start(folder: &Path, policy: &str, port: u16, memory: Option<u64>) -> Option<Process> {
        let memory = memory.map(|bytes| (MEMORY, bytes.to_string()));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(FOLDER, folder)
            .env(POLICY, policy)
            .env(PORT, port.to_string())
            .envs(memory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let lines = output.by_ref().lines().map_while(Result::ok);
        let line = { lines }.find(|line| line.starts_with("listens on "));
        let Some(line) = line else {
            child.wait().unwrap();
            return None;
        };
        let address = line.trim_start_matches("listens on ").parse().unwrap();
        Some(Process { child, address, _output: output })
    }

    /// Kills the process with SIGKILL.
    pub fn kill(self) {}
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Stops the cache of processes that were killed, so that no file of its RAM is left.
pub fn end(folder: &Path, policy: &str) {
    // The files of a killed process may be locked for a while.
    let deadline = Instant::now() + Duration::from_secs(60);
    let server = loop {
        match Server::start(&with_policy(folder, policy)) {
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(100)),
            started => break started.unwrap(),
        }
    };
    server.stop().unwrap();
}
