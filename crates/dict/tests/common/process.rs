//! A server that a test starts for itself: one process, ended with the test.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A loopback port that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a server and waits until it answers.
    pub fn start(command: &mut Command, answers: impl Fn() -> bool) -> Process {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let name = quiet.get_program().to_string_lossy().into_owned();
        let child =
            quiet.spawn().unwrap_or_else(|e| panic!("{name} (run scripts/install-test-servers.sh): {e}"));
        let mut process = Process { child };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !answers() {
            assert!(process.is_running(), "{name} has ended");
            assert!(Instant::now() < deadline, "{name} does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        process
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
