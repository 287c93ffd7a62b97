//! EXECUTABLE_POOL(COMMAND, FORMAT ..): programs that are started once and answer request after request. Their input
//! never ends, so that only the number of rows shows the end of an answer.

use super::exchange::{AnswerState, Timeouts};
use super::{EXECUTION_TIME_S, POOL_SIZE, READ_TIMEOUT_MS, TERMINATION_TIMEOUT_S, WRITE_TIMEOUT_MS};
use crate::config::Values;
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::limits;
use crate::row::KeyFormat;
use crate::source::executable::command::{ChunkHeader, CommandLine, KeyEcho, Program};
use crate::source::format::names::Format;
use crate::source::format::{End, Reader, write_keys};
use crate::source::process::Process;
use crate::source::rows::Rows;
use crate::source::{BatchSink, Source};
use crate::types::DataType;
use arrow::array::{Array, ArrayRef, RecordBatch};
use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The processes of one dictionary, which its source threads share.
pub(super) struct Processes {
    command: CommandLine,
    /// POOL_SIZE; `None`: no limit.
    most: Option<usize>,
    /// How long a request waits for one of them.
    timeout: Duration,
    termination: Duration,
    state: Mutex<ProcessPoolState>,
    returned: Condvar,
}

/// Invariant: `idle.len() <= running`.
#[derive(Default)]
struct ProcessPoolState {
    idle: Vec<Process>,
    running: usize,
}

impl Processes {
    pub fn new(values: &Values, command: CommandLine) -> Processes {
        Processes {
            command,
            most: usize::try_from(values.number(POOL_SIZE)).ok().filter(|&size| size > 0),
            timeout: Duration::from_secs(values.number(EXECUTION_TIME_S)),
            termination: Duration::from_secs(values.number(TERMINATION_TIMEOUT_S)),
            state: Mutex::default(),
            returned: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProcessPoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An idle process, or a new one if the limit allows it.
    fn borrow(&self) -> Result<Borrowed<'_>, DictError> {
        let deadline = Instant::now() + self.timeout;
        let mut state = self.lock();
        loop {
            if let Some(process) = state.idle.pop() {
                // Unrequested output would be taken for the answer to the next keys.
                if process.is_ready() {
                    return Ok(Borrowed { processes: self, process: Some(process) });
                }
                state.running -= 1;
                continue;
            }
            if self.most.is_none_or(|most| state.running < most) {
                state.running += 1;
                drop(state);
                let started = Process::start(&self.command);
                return match started {
                    Ok(process) => Ok(Borrowed { processes: self, process: Some(process) }),
                    Err(e) => {
                        self.lock().running -= 1;
                        self.returned.notify_one();
                        Err(e)
                    }
                };
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                let text = format!(
                    "Could not get process from pool, max command execution timeout exceeded {} seconds",
                    self.timeout.as_secs()
                );
                return Err(DictError::new(Code::TimeoutExceeded, text));
            };
            state = self.returned.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let deadline = Instant::now() + self.termination;
        let mut state = self.lock();
        state.idle.iter_mut().for_each(Process::close);
        for mut process in state.idle.drain(..) {
            process.end(deadline.saturating_duration_since(Instant::now()));
        }
    }
}

/// A process on loan. Unless it is given back, it is killed, which makes room for another.
struct Borrowed<'p> {
    processes: &'p Processes,
    /// `None`: given back.
    process: Option<Process>,
}

impl Borrowed<'_> {
    fn give_back(mut self) {
        let process = self.process.take();
        self.processes.lock().idle.extend(process);
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if self.process.take().is_some() {
            self.processes.lock().running -= 1;
        }
        self.processes.returned.notify_one();
    }
}

/// Asks one process at a time.
#[derive(Clone)]
pub(super) struct ExecutablePool {
    processes: Arc<Processes>,
    program: Program,
    structure: Structure,
    keys: Vec<(String, DataType)>,
    timeouts: Timeouts,
    answer_bytes_max: u64,
}

impl ExecutablePool {
    pub fn new(
        processes: Arc<Processes>,
        values: &Values,
        structure: Structure,
        timeout: Duration,
        answer_bytes_max: u64,
    ) -> ExecutablePool {
        let timeouts = Timeouts {
            read: Duration::from_millis(values.number(READ_TIMEOUT_MS)),
            write: Duration::from_millis(values.number(WRITE_TIMEOUT_MS)),
            whole: timeout,
        };
        let keys = structure.key_columns().into_iter().map(|key| (key.name, key.data_type)).collect();
        ExecutablePool {
            processes,
            program: Program::of(values),
            structure,
            keys,
            timeouts,
            answer_bytes_max,
        }
    }
}

impl ExecutablePool {
    /// Refuses an answer with two rows of a key that was asked for: then the row of another key is still to come, and
    /// that key would count as absent.
    fn refuse_twice(&self, asked: &[ArrayRef], answer: &RecordBatch) -> Result<(), DictError> {
        let format = KeyFormat::new(&self.structure);
        let (asked, answered) = (format.encode(asked)?, format.encode(&answer.columns()[..self.keys.len()])?);
        // A row of a key that was not asked for stands in for a missing row, and may repeat.
        let mut missing: HashSet<&[u8]> = (0..asked.len()).map(|row| asked.get(row)).collect();
        let wanted = missing.clone();
        let mut keys = (0..answered.len()).map(|row| answered.get(row));
        if keys.all(|key| missing.remove(key) || !wanted.contains(key)) {
            return Ok(());
        }
        let text = "The command answered a key twice: it must write one row for each key that it reads";
        Err(DictError::new(Code::IncorrectData, text))
    }
}

impl Source for ExecutablePool {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let program = &self.program;
        let count = keys[0].len();
        let mut input = match program.chunk_header {
            ChunkHeader::None => Vec::new(),
            ChunkHeader::RowCount => format!("{count}\n").into_bytes(),
        };
        input.extend(write_keys(program.format, &self.keys, keys)?);
        let (rows, leading) = match program.key_echo {
            KeyEcho::Repeated => (Rows::new(&self.structure), &[][..]),
            KeyEcho::Implicit => (Rows::of_attributes(&self.structure), keys),
        };
        let rows = rows.at_most(self.answer_bytes_max);
        let (format, reader) = (program.format, Reader::without_detection(program.format));
        let mut incoming = Incoming { format, reader, rows, rest: Vec::new(), count };
        let mut borrowed = self.processes.borrow()?;
        let process = borrowed.process.as_mut().expect("there is one until it is given back");
        process.exchange(&input, self.timeouts, |bytes| incoming.take(bytes))?;
        let answer = incoming.rows.finish(leading)?;
        if program.key_echo == KeyEcho::Repeated {
            self.refuse_twice(keys, &answer)?;
        }
        borrowed.give_back();
        Ok(vec![answer])
    }

    fn load_all(&mut self, _sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        let text = "An executable_pool source cannot be read whole: its programs answer keys";
        Err(DictError::new(Code::UnsupportedMethod, text))
    }
}

/// Rows as they come.
struct Incoming {
    format: Format,
    /// Reader of one answer: the next one begins anew, with a bracket of its own where there is one around the rows.
    reader: Reader,
    rows: Rows,
    /// An incomplete row.
    rest: Vec<u8>,
    count: usize,
}

impl Incoming {
    fn take(&mut self, bytes: &[u8]) -> Result<AnswerState, DictError> {
        self.rest.extend_from_slice(bytes);
        let whole = self.reader.read(whole_lines(self.format, &self.rest), End::Later, &mut self.rows)?;
        self.rest.drain(..whole);
        self.rows.check_bytes()?;
        if self.rest.len() > limits::ROW_BYTES_MAX {
            let text = format!("A row or block of more than {} bytes", limits::ROW_BYTES_MAX);
            return Err(DictError::new(Code::LimitExceeded, text));
        }
        match self.rows.len() {
            rows if rows < self.count => Ok(AnswerState::Unfinished),
            // The bracket around the rows, or the end of its line, is still to come.
            rows if rows == self.count && self.reader.is_open() && is_end_of_array(&self.rest) => {
                Ok(AnswerState::Unfinished)
            }
            rows if rows == self.count && self.rest.is_empty() => Ok(AnswerState::Whole),
            _ => Err(DictError::new(
                Code::IncorrectData,
                format!("The command answered more rows than the {} keys it was sent", self.count),
            )),
        }
    }
}

/// Whether these bytes are nothing but blanks and a bracket, or a part of that.
fn is_end_of_array(bytes: &[u8]) -> bool {
    matches!(bytes.trim_ascii(), b"" | b"]")
}

/// The part of `bytes` that can be read: where the format has lines, whole ones.
fn whole_lines(format: Format, bytes: &[u8]) -> &[u8] {
    match format {
        // An object is complete before its line end has come, which would then be excess output.
        Format::Json(_) => &bytes[..bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)],
        _ => bytes,
    }
}
