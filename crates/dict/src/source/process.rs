//! A running program: pipes to it that never block, and a group of its own to end it with.

use crate::error::{Code, DictError};
use crate::limits;
use crate::source::executable::command::CommandLine;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub(super) const BUFFER_BYTES: usize = 64 << 10;
/// Interval at which a process that should end is checked.
pub(super) const LOOK: Duration = Duration::from_millis(2);

/// Reads of standard error in a row: a program that never stops writing there must not delay the check of the deadline.
const ERRORS_READ_MAX: usize = 16;

/// A running program. Dropped, it is killed with all that it started.
pub(super) struct Process {
    /// `None`: it was reaped.
    pub child: Option<Child>,
    /// `None`: closed, as no more input comes.
    pub stdin: Option<ChildStdin>,
    pub stdout: ChildStdout,
    /// `None`: the program has closed it.
    stderr: Option<ChildStderr>,
    /// The end of its standard error.
    pub errors: Vec<u8>,
    pub command: CommandLine,
}

impl Process {
    pub fn start(command: &CommandLine) -> Result<Process, DictError> {
        let cannot = |e: io::Error| {
            DictError::new(Code::ChildWasNotExitedNormally, format!("Cannot start '{command}': {e}"))
        };
        let mut child = command
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else { unreachable!("all three are piped") };
        for pipe in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
            let flags = fcntl_getfl(pipe).map_err(|e| cannot(e.into()))?;
            fcntl_setfl(pipe, flags | OFlags::NONBLOCK).map_err(|e| cannot(e.into()))?;
        }
        let (child, stdin, stderr) = (Some(child), Some(stdin), Some(stderr));
        Ok(Process { child, stdin, stdout, stderr, errors: Vec::new(), command: command.clone() })
    }

    /// Waits until a pipe is ready; false: none was for `timeout`.
    pub fn wait(&self, writes: bool, timeout: Duration) -> Result<bool, DictError> {
        let mut waited = vec![PollFd::new(&self.stdout, PollFlags::IN)];
        waited.extend(self.stderr.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        waited.extend(self.stdin.as_ref().filter(|_| writes).map(|stdin| PollFd::new(stdin, PollFlags::OUT)));
        let timeout = Timespec::try_from(timeout).ok();
        loop {
            match poll(&mut waited, timeout.as_ref()) {
                Err(Errno::INTR) => {}
                Ok(ready) => return Ok(ready > 0),
                Err(e) => {
                    let text = format!("Cannot wait for '{}': {e}", self.command);
                    return Err(DictError::new(Code::ChildWasNotExitedNormally, text));
                }
            }
        }
    }

    /// Reads standard error, and keeps its end.
    pub fn read_errors(&mut self, buffer: &mut [u8]) {
        for _ in 0..ERRORS_READ_MAX {
            let Some(stderr) = &mut self.stderr else { return };
            match stderr.read(buffer) {
                Err(e) if is_nothing(&e) => return,
                Ok(0) | Err(_) => self.stderr = None,
                Ok(count) => {
                    self.errors.extend_from_slice(&buffer[..count]);
                    let excess = self.errors.len().saturating_sub(limits::STDERR_TAIL_BYTES);
                    self.errors.drain(..excess);
                }
            }
        }
    }

    /// Checks without reaping the process: until it is reaped its pid, which is its group's id, cannot be reused.
    pub fn is_running(&self) -> bool {
        let Some(pid) = self.child.as_ref().map(Pid::from_child) else { return false };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(pid), options), Ok(None))
    }

    /// Kills its process group, and reaps it.
    pub fn kill_and_reap(&mut self) -> Option<ExitStatus> {
        let mut child = self.child.take()?;
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        child.wait().ok()
    }

    /// Writes `input` and reads all that comes, until the program has ended, which it must within `timeout`. It may
    /// answer before it has read, read all before it answers, or not read at all.
    ///
    /// # Errors
    /// The answer is longer than `bytes_max`, or the program takes longer than `timeout` or exits without success. It
    /// is killed then.
    pub fn run(mut self, input: &[u8], timeout: Duration, bytes_max: u64) -> Result<Vec<u8>, DictError> {
        let deadline = Instant::now() + timeout;
        let (mut unsent, mut output) = (input, Vec::new());
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            if unsent.is_empty() {
                self.close();
            }
            // A process that it started may keep its output open, and have left its group.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.wait(!unsent.is_empty(), left)? {
                return Err(self.overdue(timeout));
            }
            self.read_errors(&mut buffer);
            if let Some(stdin) = self.stdin.as_mut() {
                match stdin.write(unsent) {
                    Ok(count) => unsent = &unsent[count..],
                    Err(e) if is_nothing(&e) => {}
                    // Its exit status says whether it succeeded.
                    Err(_) => unsent = &[],
                }
            }
            match self.stdout.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => output.extend_from_slice(&buffer[..count]),
                Err(e) if is_nothing(&e) => {}
                Err(e) => return Err(self.unreadable(&e)),
            }
            if output.len() as u64 > bytes_max {
                let text = format!("Command '{}' answered more than {bytes_max} bytes", self.command);
                return Err(DictError::new(Code::LimitExceeded, text));
            }
        }
        self.close();
        let mut pause = LOOK / 32;
        while self.is_running() {
            if Instant::now() >= deadline {
                return Err(self.overdue(timeout));
            }
            self.read_errors(&mut buffer);
            std::thread::sleep(pause);
            pause = LOOK.min(pause * 2);
        }
        self.read_errors(&mut buffer);
        // Processes that it leaves running are not killed.
        match self.child.take().and_then(|mut child| child.wait().ok()) {
            Some(status) if status.success() => Ok(output),
            status => {
                let how = status.map_or("has ended".to_string(), ended);
                let text = format!("Command '{}' {how}{}", self.command, said(&self.errors));
                Err(DictError::new(Code::ChildWasNotExitedNormally, text))
            }
        }
    }

    fn overdue(&self, timeout: Duration) -> DictError {
        let text = format!("Command '{}' was killed after {} ms", self.command, timeout.as_millis());
        DictError::new(Code::TimeoutExceeded, text)
    }

    pub fn unreadable(&self, e: &io::Error) -> DictError {
        let text = format!("Cannot read from '{}': {e}", self.command);
        DictError::new(Code::ChildWasNotExitedNormally, text)
    }

    /// Tells it that no more keys come.
    pub fn close(&mut self) {
        self.stdin = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_and_reap();
    }
}

pub(super) fn is_nothing(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

pub(super) fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exited with status {code}"),
        None => format!("ended by {status}"),
    }
}

pub(super) fn said(errors: &[u8]) -> String {
    match String::from_utf8_lossy(errors).trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str, timeout_ms: u64, bytes_max: u64) -> Result<Vec<u8>, DictError> {
        let process = Process::start(&CommandLine::Shell(line.to_string())).unwrap();
        process.run(b"5\n", Duration::from_millis(timeout_ms), bytes_max)
    }

    #[test]
    fn an_answer_has_a_length() {
        assert_eq!(run("cat; printf 123", 20_000, 5).unwrap(), b"5\n123");
        let error = run("head -c 1000000 /dev/zero", 20_000, 99_999).unwrap_err();
        assert_eq!(error.kind(), Code::LimitExceeded);
        assert!(error.message().contains("answered more than 99999 bytes"), "{error}");
    }

    /// A process that left the group is not killed with it, and holds the output or the errors open.
    #[test]
    fn a_request_ends_in_time_whoever_holds_the_pipes() {
        let held = |line| {
            let began = Instant::now();
            let error = run(line, 200, 99).unwrap_err();
            assert!(error.message().contains("was killed after 200 ms"), "{line}: {error}");
            assert!(began.elapsed() < Duration::from_secs(60), "{line}");
        };
        ["setsid sleep 90 & echo", "exec >&-; sleep 90", "yes >&2"].into_iter().for_each(held);
        assert_eq!(run("setsid sleep 90 >/dev/null & echo", 60_000, 99).unwrap(), b"\n");
    }
}
