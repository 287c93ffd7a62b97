//! A server that a test starts for itself: one process, ended with the test.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Loopback ports that were free a moment ago.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Starts a server on ports of its own. Another process may have got one of them first; then it is started on others.
pub fn on_free_ports<const N: usize>(start: impl Fn([u16; N]) -> Option<Process>) -> ([u16; N], Process) {
    let mut tries = (0..5).map(|_| free_ports());
    tries.find_map(|ports| Some((ports, start(ports)?))).expect("the server has ended")
}

/// Starts a server again on the ports that it had, which another process may have for a while.
pub fn again(start: impl Fn() -> Option<Process>) -> Process {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(process) = start() {
            return process;
        }
        assert!(Instant::now() < deadline, "the server has ended");
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a server and waits until it answers; `None`: it has ended instead.
    pub fn start(command: &mut Command, answers: impl Fn() -> bool) -> Option<Process> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let name = quiet.get_program().to_string_lossy().into_owned();
        let child =
            quiet.spawn().unwrap_or_else(|e| panic!("{name} (run scripts/install-test-servers.sh): {e}"));
        let mut process = Process { child };
        let deadline = Instant::now() + Duration::from_secs(60);
        // Another process may answer.
        while process.is_running() {
            if answers() && process.is_running() {
                return Some(process);
            }
            assert!(Instant::now() < deadline, "{name} does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        eprintln!("{name} has ended");
        None
    }

    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal to this one process.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal}");
    }

    /// Ends the server at once; connections break.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
