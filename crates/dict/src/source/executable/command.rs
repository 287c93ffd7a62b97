//! The command of a program, and how to communicate with it.

use crate::config::Values;
use crate::environment::Environment;
use crate::error::{Code, DictError};
use crate::source::format::names::Format;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

/// How a program is spoken to.
#[derive(Clone)]
pub(in crate::source) struct Program {
    /// COMMAND.
    pub command: String,
    /// FORMAT of keys and rows.
    pub format: Format,
    pub key_echo: KeyEcho,
    pub chunk_header: ChunkHeader,
}

/// Whether the rows of a program repeat their keys (IMPLICIT_KEY).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum KeyEcho {
    /// Key columns, then attributes.
    Repeated,
    /// Attributes only, a row for each key, in the keys' order.
    Implicit,
}

/// Whether a line with the number of keys goes before them (SEND_CHUNK_HEADER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum ChunkHeader {
    /// Keys alone.
    None,
    /// The number of keys in decimal digits.
    RowCount,
}

impl Program {
    pub fn of(values: &Values) -> Program {
        Program {
            command: values.text("COMMAND").to_string(),
            format: Format::of(values),
            key_echo: if values.flag("IMPLICIT_KEY") { KeyEcho::Implicit } else { KeyEcho::Repeated },
            chunk_header: match values.flag("SEND_CHUNK_HEADER") {
                true => ChunkHeader::RowCount,
                false => ChunkHeader::None,
            },
        }
    }
}

/// The command that is started.
#[derive(Clone, Debug)]
pub(in crate::source) enum CommandLine {
    /// `sh -c command`.
    Shell(String),
    /// EXECUTE_DIRECT: a file below `<data_dir>/user_scripts`, its arguments cut at blanks.
    Direct { program: PathBuf, arguments: Vec<String> },
}

impl CommandLine {
    /// # Errors
    /// `DICTIONARY_ACCESS_DENIED` unless the environment allows programs; EXECUTE_DIRECT starts only what lies
    /// in `<data_dir>/user_scripts`.
    pub fn new(values: &Values, kind: &str, environment: &Environment) -> Result<CommandLine, DictError> {
        if !environment.allow_executable {
            return Err(DictError::new(
                Code::DictionaryAccessDenied,
                format!(
                    "Dictionaries with the {kind} dictionary source are not allowed: --allow-executable, or allow_executable = true in the server's configuration, lets them run programs"
                ),
            ));
        }
        let command = values.text("COMMAND");
        if !values.flag("EXECUTE_DIRECT") {
            return Ok(CommandLine::Shell(command.to_string()));
        }
        let mut words = command.split_whitespace().map(str::to_string);
        let script = words.next().unwrap_or_default();
        let scripts = Environment {
            user_files: Some(environment.data_dir.join("user_scripts")),
            ..environment.clone()
        };
        let program = scripts.resolve(&script).map_err(|e| e.within("SOURCE: EXECUTE_DIRECT"))?;
        Ok(CommandLine::Direct { program, arguments: words.collect() })
    }

    pub fn command(&self) -> Command {
        match self {
            CommandLine::Shell(line) => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(line);
                command
            }
            CommandLine::Direct { program, arguments } => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
        }
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandLine::Shell(line) => f.write_str(line),
            CommandLine::Direct { program, arguments } => {
                write!(f, "{}", program.display())?;
                arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
            }
        }
    }
}
