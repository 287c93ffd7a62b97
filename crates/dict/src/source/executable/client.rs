//! Starts a program, writes keys to it, and reads its rows.

use super::command::{ChunkHeader, CommandLine, KeyEcho, Program};
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::limits;
use crate::source::format::{pass_answer, read_answer, write_keys};
use crate::source::process::Process;
use crate::source::rows::Rows;
use crate::source::{BatchSink, Source};
use crate::types::DataType;
use arrow::array::{Array, ArrayRef, RecordBatch};
use std::time::Duration;

/// Starts the program anew for each request.
pub(super) struct Executable {
    program: Program,
    structure: Structure,
    keys: Vec<(String, DataType)>,
    command: CommandLine,
    /// How long it may run.
    timeout: Duration,
}

impl Executable {
    pub fn new(
        program: &Program,
        command: &CommandLine,
        structure: &Structure,
        timeout: Duration,
    ) -> Executable {
        let keys = structure.key_columns().into_iter().map(|key| (key.name, key.data_type)).collect();
        Executable {
            program: program.clone(),
            structure: structure.clone(),
            keys,
            command: command.clone(),
            timeout,
        }
    }

    fn run(&self, input: &[u8]) -> Result<Vec<u8>, DictError> {
        Process::start(&self.command)?.run(input, self.timeout, limits::ANSWER_BYTES_MAX)
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
        let output = self.run(&input)?;
        match self.program.key_echo {
            KeyEcho::Repeated => {
                let mut rows = Rows::new(&self.structure);
                read_answer(self.program.format, &output, &mut rows)?;
                Ok(vec![rows.finish(&[])?])
            }
            KeyEcho::Implicit => {
                let mut rows = Rows::of_attributes(&self.structure);
                read_answer(self.program.format, &output, &mut rows)?;
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

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        if self.program.key_echo == KeyEcho::Implicit {
            return Err(DictError::new(
                Code::UnsupportedMethod,
                "An executable source with IMPLICIT_KEY cannot be read whole",
            ));
        }
        // Its success is known at its end.
        let output = self.run(&[])?;
        pass_answer(self.program.format, &output[..], Rows::new(&self.structure), sink)
    }
}
