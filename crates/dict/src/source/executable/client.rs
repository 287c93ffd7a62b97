//! Starts a program, writes keys to it, and reads its rows.

use super::command::{ChunkHeader, CommandLine, KeyEcho, Program};
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::limits;
use crate::source::format::{pass_rows, read_rows, write_keys};
use crate::source::rows::Rows;
use crate::source::{Source, Take};
use crate::types::DataType;
use arrow::array::{Array, ArrayRef, RecordBatch};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Starts the program anew for each request.
pub(super) struct Executable {
    program: Program,
    structure: Structure,
    keys: Vec<(String, DataType)>,
    command: CommandLine,
    /// How long it may run.
    patience: Duration,
}

impl Executable {
    pub fn new(
        program: &Program,
        command: &CommandLine,
        structure: &Structure,
        patience: Duration,
    ) -> Executable {
        let keys = structure.key_columns().into_iter().map(|key| (key.name, key.data_type)).collect();
        Executable {
            program: program.clone(),
            structure: structure.clone(),
            keys,
            command: command.clone(),
            patience,
        }
    }

    /// Writes `input`, reads everything, all at once: a program may answer before it has read, or read all
    /// before it answers.
    fn run(&self, input: Vec<u8>) -> Result<Vec<u8>, DictError> {
        let failed = |what: &str, e: io::Error| {
            DictError::new(Code::ChildWasNotExitedNormally, format!("{what} '{}': {e}", self.program.command))
        };
        let mut command = self.command.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that what a shell started can be ended with it.
        command.process_group(0);
        let mut child = Reaped(command.spawn().map_err(|e| failed("Cannot start", e))?);
        let (stdin, stdout, stderr) = (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take());
        let mut output = Vec::new();
        let (group, patience) = (child.0.id(), self.patience);
        let (read, errors, end) = std::thread::scope(|scope| {
            let (ended, end) = channel::<()>();
            let watch = scope.spawn(move || match end.recv_timeout(patience) {
                Err(RecvTimeoutError::Timeout) => {
                    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status();
                    End::Overdue
                }
                Ok(()) | Err(RecvTimeoutError::Disconnected) => End::Own,
            });
            scope.spawn(move || {
                // A program need not read its keys; whether it did well is for its exit status to say.
                let _ = stdin.map(|mut stdin| stdin.write_all(&input));
            });
            let errors = scope.spawn(move || stderr.map(tail).unwrap_or_default());
            let read = stdout.map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut output));
            let errors = errors.join().unwrap_or_default();
            drop(ended);
            (read, errors, watch.join().unwrap_or(End::Own))
        });
        if end == End::Overdue {
            return Err(DictError::new(
                Code::TimeoutExceeded,
                format!("Command '{}' was killed after {} ms", self.program.command, patience.as_millis()),
            ));
        }
        read.map_err(|e| failed("Cannot read from", e))?;
        let status = child.0.wait().map_err(|e| failed("Cannot wait for", e))?;
        if !status.success() {
            return Err(DictError::new(
                Code::ChildWasNotExitedNormally,
                format!("Command '{}' {}{}", self.program.command, ended(status), said(&errors)),
            ));
        }
        Ok(output)
    }
}

impl Source for Executable {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let count = keys[0].len();
        let mut input = match self.program.chunk_header {
            ChunkHeader::None => Vec::new(),
            ChunkHeader::RowCount => format!("{count}\n").into_bytes(),
        };
        input.extend(write_keys(self.program.format, &self.keys, keys)?);
        let output = self.run(input)?;
        match self.program.key_echo {
            KeyEcho::Repeated => {
                let mut rows = Rows::new(&self.structure);
                read_rows(self.program.format, &output, &mut rows)?;
                Ok(vec![rows.finish(&[])?])
            }
            KeyEcho::Implicit => {
                let mut rows = Rows::of_attributes(&self.structure);
                read_rows(self.program.format, &output, &mut rows)?;
                if rows.len() != count {
                    return Err(DictError::new(
                        Code::IncorrectData,
                        format!(
                            "Command '{}' answered {} rows to {count} keys; with IMPLICIT_KEY there must be as many",
                            self.program.command,
                            rows.len()
                        ),
                    ));
                }
                Ok(vec![rows.finish(keys)?])
            }
        }
    }

    fn load_all(&mut self, take: &mut Take<'_>) -> Result<(), DictError> {
        if self.program.key_echo == KeyEcho::Implicit {
            return Err(DictError::new(
                Code::UnsupportedMethod,
                "An executable source with IMPLICIT_KEY cannot be read whole",
            ));
        }
        // Whether it did well is known when it has ended.
        let output = self.run(Vec::new())?;
        pass_rows(self.program.format, &output[..], Rows::new(&self.structure), take)
    }
}

/// What ended a program.
#[derive(PartialEq)]
enum End {
    Own,
    Overdue,
}

/// A child that does not outlive its request.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // Both do nothing after a successful `wait`.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads to the end, keeps the last bytes.
fn tail(mut from: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(limits::STDERR_TAIL_BYTES);
        kept.drain(..excess);
    }
    kept
}

pub(in crate::source) fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exited with status {code}"),
        None => format!("ended by {status}"),
    }
}

pub(in crate::source) fn said(errors: &[u8]) -> String {
    match String::from_utf8_lossy(errors).trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}
