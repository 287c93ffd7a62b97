//! A program that stays: it answers a request, and waits for the next one.

use crate::error::{Code, DictError};
use crate::source::process::{BUFFER_BYTES, LOOK, Process, ended, is_nothing, said};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// How long a process may be idle.
#[derive(Clone, Copy)]
pub(in crate::source) struct Timeouts {
    pub read: Duration,
    pub write: Duration,
    /// How long an exchange may take.
    pub whole: Duration,
}

/// Whether an answer is whole.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::source) enum AnswerState {
    Whole,
    Unfinished,
}

impl Process {
    /// Writes `input` and passes output to `take`, until the answer is whole and all was written.
    pub fn exchange(
        &mut self,
        input: &[u8],
        timeouts: Timeouts,
        mut take: impl FnMut(&[u8]) -> Result<AnswerState, DictError>,
    ) -> Result<(), DictError> {
        let deadline = Instant::now() + timeouts.whole;
        let (mut unsent, mut answer) = (input, AnswerState::Unfinished);
        let mut buffer = vec![0; BUFFER_BYTES];
        while !unsent.is_empty() || answer == AnswerState::Unfinished {
            let left = deadline.saturating_duration_since(Instant::now());
            let (what, timeout) = match unsent.is_empty() {
                true => ("read", timeouts.read),
                false => ("write", timeouts.write),
            };
            // A program that keeps writing to standard error never lets `wait` time out.
            if left.is_zero() || !self.wait(!unsent.is_empty(), timeout.min(left))? {
                let text = match left < timeout {
                    true => format!("Command '{}' was killed after {:?}", self.command, timeouts.whole),
                    false => format!(
                        "Command '{}': Pipe {what} timeout exceeded {} milliseconds",
                        self.command,
                        timeout.as_millis()
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
                Err(e) => return Err(self.unreadable(&e)),
            }
        }
        Ok(())
    }

    /// The error of a program that ended too early.
    fn has_ended(&mut self, buffer: &mut [u8]) -> DictError {
        self.end(LOOK * 50);
        let how = match self.is_running() {
            true => "closed its output".to_string(),
            false => self.kill_and_reap().map_or("has ended".to_string(), ended),
        };
        self.read_errors(buffer);
        let text =
            format!("Command '{}' {how} before it had answered all keys{}", self.command, said(&self.errors));
        DictError::new(Code::ChildWasNotExitedNormally, text)
    }

    /// Whether it waits for keys: without unrequested output, and still running.
    pub fn is_ready(&self) -> bool {
        matches!(self.wait_for_output(), Ok(0)) && self.is_running()
    }

    fn wait_for_output(&self) -> Result<usize, Errno> {
        poll(&mut [PollFd::new(&self.stdout, PollFlags::IN)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
    }

    /// Closes its input and waits for its end, at most `timeout`.
    pub fn end(&mut self, timeout: Duration) {
        self.close();
        let deadline = Instant::now() + timeout;
        while self.is_running() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }
}
