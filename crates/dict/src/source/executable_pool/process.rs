//! A program that stays: pipes to it that never block, and a group of its own to end it with.

use crate::error::{Code, DictError};
use crate::limits;
use crate::source::executable::client::{ended, said};
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

const BUFFER_BYTES: usize = 64 << 10;
/// How often a process that should end is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// A running program. Dropped, it is killed with all that it started.
pub(super) struct Process {
    /// `None`: buried.
    child: Option<Child>,
    /// `None`: it was told that nothing more comes.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// `None`: it has closed it.
    stderr: Option<ChildStderr>,
    /// The last that it said there.
    errors: Vec<u8>,
    command: CommandLine,
}

/// For how long a process may do nothing.
#[derive(Clone, Copy)]
pub(super) struct Timeouts {
    pub read: Duration,
    pub write: Duration,
    /// For how long it may do anything.
    pub whole: Duration,
}

/// Whether an answer is whole.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Answer {
    Whole,
    Unfinished,
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

    /// Writes `input` and hands over what comes, until that is whole and all was written.
    pub fn exchange(
        &mut self,
        input: &[u8],
        timeouts: Timeouts,
        mut take: impl FnMut(&[u8]) -> Result<Answer, DictError>,
    ) -> Result<(), DictError> {
        let deadline = Instant::now() + timeouts.whole;
        let (mut unsent, mut answer) = (input, Answer::Unfinished);
        let mut buffer = vec![0; BUFFER_BYTES];
        while !unsent.is_empty() || answer == Answer::Unfinished {
            let left = deadline.saturating_duration_since(Instant::now());
            let (what, patience) = match unsent.is_empty() {
                true => ("read", timeouts.read),
                false => ("write", timeouts.write),
            };
            if !self.wait(!unsent.is_empty(), patience.min(left))? {
                let text = match left < patience {
                    true => format!("Command '{}' was killed after {:?}", self.command, timeouts.whole),
                    false => format!(
                        "Command '{}': Pipe {what} timeout exceeded {} milliseconds",
                        self.command,
                        patience.as_millis()
                    ),
                };
                return Err(DictError::new(Code::TimeoutExceeded, text));
            }
            self.read_errors(&mut buffer);
            if let Some(stdin) = self.stdin.as_mut().filter(|_| !unsent.is_empty()) {
                match stdin.write(unsent) {
                    Ok(count) => unsent = &unsent[count..],
                    Err(e) if is_nothing(&e) => {}
                    Err(_) => return Err(self.has_ended(&mut buffer)),
                }
            }
            match self.stdout.read(&mut buffer) {
                Ok(0) => return Err(self.has_ended(&mut buffer)),
                Ok(count) => answer = take(&buffer[..count])?,
                Err(e) if is_nothing(&e) => {}
                Err(e) => {
                    let text = format!("Cannot read from '{}': {e}", self.command);
                    return Err(DictError::new(Code::ChildWasNotExitedNormally, text));
                }
            }
        }
        Ok(())
    }

    /// Until there is something to do; false: there was nothing for so long.
    fn wait(&self, writes: bool, patience: Duration) -> Result<bool, DictError> {
        let mut waited = vec![PollFd::new(&self.stdout, PollFlags::IN)];
        waited.extend(self.stderr.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        waited.extend(self.stdin.as_ref().filter(|_| writes).map(|stdin| PollFd::new(stdin, PollFlags::OUT)));
        let patience = Timespec::try_from(patience).ok();
        loop {
            match poll(&mut waited, patience.as_ref()) {
                Err(Errno::INTR) => {}
                Ok(ready) => return Ok(ready > 0),
                Err(e) => {
                    let text = format!("Cannot wait for '{}': {e}", self.command);
                    return Err(DictError::new(Code::ChildWasNotExitedNormally, text));
                }
            }
        }
    }

    /// Keeps the last of what stands in standard error.
    fn read_errors(&mut self, buffer: &mut [u8]) {
        while let Some(stderr) = &mut self.stderr {
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

    /// Why a program that should have stayed did not.
    fn has_ended(&mut self, buffer: &mut [u8]) -> DictError {
        self.end(LOOK * 50);
        let how = match self.is_running() {
            true => "closed its output".to_string(),
            false => self.bury().map_or("has ended".to_string(), ended),
        };
        self.read_errors(buffer);
        let text =
            format!("Command '{}' {how} before it had answered all keys{}", self.command, said(&self.errors));
        DictError::new(Code::ChildWasNotExitedNormally, text)
    }

    /// Whether it waits for keys: has said nothing unasked and has not ended.
    pub fn is_ready(&self) -> bool {
        matches!(self.wait_for_output(), Ok(0)) && self.is_running()
    }

    /// Looks without burying it: its number is its group's, and nobody else's as long as it is not buried.
    fn is_running(&self) -> bool {
        let Some(pid) = self.child.as_ref().map(Pid::from_child) else { return false };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(pid), options), Ok(None))
    }

    /// Kills what is left of it and of what it started.
    fn bury(&mut self) -> Option<ExitStatus> {
        let mut child = self.child.take()?;
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        child.wait().ok()
    }

    fn wait_for_output(&self) -> Result<usize, Errno> {
        poll(&mut [PollFd::new(&self.stdout, PollFlags::IN)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
    }

    /// Tells it that no more keys come.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end, at most so long.
    pub fn end(&mut self, patience: Duration) {
        self.close();
        let deadline = Instant::now() + patience;
        while self.is_running() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.bury();
    }
}

fn is_nothing(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
