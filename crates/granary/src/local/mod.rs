//! `granary local`.

mod dictionaries;
mod input;
mod prompt;
mod statements;
mod stop;

use std::cell::Cell;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use crate::memory;
use clap::Args;
use granary_sql::format::Format;
use granary_sql::limits::DEFAULT_MEMORY_FOLDER;
use granary_sql::{Error, InputFormat, Options, STACK_BYTES, Session};

use statements::Runner;
use stop::Stop;

/// Shown at the end of `granary local --help`.
pub const EXAMPLES: &str = "\
Examples:
  A query:
    granary local -q 'SELECT sum(number) FROM numbers(1000000)'

  Files are tables, named after themselves; the first one is also called `table`:
    granary local -q 'SELECT city, count() AS users FROM users GROUP BY city ORDER BY users DESC' users.csv
    granary local -q \"SELECT * FROM 'events.parquet' LIMIT 10\"
    cat users.csv | granary local --input-format CSVWithNames -q 'SELECT count() FROM table'
    cat users.csv | granary local -q 'CREATE TABLE t (id UInt64, name String) ENGINE = Memory;
                                      INSERT INTO t FORMAT CSVWithNames' -q 'SELECT max(id) FROM t'

  A dictionary over an SQLite table, cached on SSD, kept in ./data and warm at the next start:
    granary local --path data -q \"
      CREATE DICTIONARY users (id UInt64, name String, city String DEFAULT 'unknown')
      PRIMARY KEY id
      SOURCE(SQLITE(PATH '/srv/users.db' TABLE 'users'))
      LIFETIME(MIN 300 MAX 600)
      LAYOUT(SSD_CACHE(PATH 'users' FILE_SIZE 1073741824 WRITE_BUFFER_SIZE 1048576))\"
    granary local --path data -q \"SELECT dictGet('users', ('name', 'city'), number) FROM numbers(10)\"
    granary local --path data -q 'SELECT name, hit_rate, element_count, bytes_allocated
                                  FROM system.dictionaries FORMAT Vertical'

  The dictionaries of a ClickHouse server, by its XML configuration:
    granary local --path data --dictionaries '/etc/clickhouse-server/*_dictionary.xml' \
      -q \"SELECT dictGet('cities', 'name', 42)\"

  Several statements from a file, seconds of each on standard error:
    granary local --time --queries-file setup.sql

Output formats: TabSeparated, CSV, JSON, JSONCompact, JSONEachRow, Pretty, PrettyCompact, Vertical, Values,
RowBinary, Native, Parquet, Arrow, ArrowStream, Null and their relatives, such as TabSeparatedWithNames.
Exit status: 0, or ClickHouse's error code modulo 256; 129, 130 and 143 behind SIGHUP, SIGINT and
SIGTERM, which close dictionaries as any other end does.";

/// Arguments of `granary local`.
#[derive(Args)]
pub struct LocalArguments {
    /// Statements to run, separated by semicolons; may be given several times. Without it they come from
    /// standard input, or are typed at a prompt
    #[arg(short, long = "query", value_name = "SQL")]
    query: Vec<String>,

    /// A file of statements to run (after those of --query)
    #[arg(long, alias = "queries_file", value_name = "FILE")]
    queries_file: Vec<PathBuf>,

    /// CSV, TSV or Parquet files, each a table named after the file; the first is also called `table`
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Folder for dictionaries: they are there, and warm, at the next start. Without it a temporary one
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,

    /// ClickHouse's XML files with dictionaries; may be given several times. Each dictionary is created, or
    /// replaced if it has changed
    #[arg(long, value_name = "FILE_OR_GLOB")]
    dictionaries: Vec<String>,

    /// Output format, unless a statement says FORMAT: TabSeparated into a file or a pipe, PrettyCompact on a
    /// terminal
    #[arg(long, visible_alias = "output-format", alias = "output_format", value_name = "FORMAT")]
    format: Option<Format>,

    /// Format of standard input (as `table`; TabSeparated unless this says so), of a lone file, and of files
    /// whose name does not tell: CSV, CSVWithNames, TabSeparated, TabSeparatedWithNames, Parquet
    #[arg(long, alias = "input_format", value_name = "FORMAT")]
    input_format: Option<InputFormat>,

    /// Print the seconds of each statement on standard error
    #[arg(long)]
    time: bool,

    /// Allow dictionaries to run programs: SOURCE(EXECUTABLE(...)), SOURCE(EXECUTABLE_POOL(...))
    #[arg(long)]
    allow_executable: bool,
}

/// Runs the command; the exit status tells the error's code.
pub fn run(arguments: LocalArguments) -> ExitCode {
    match go(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain!("{error}");
            status(&error)
        }
    }
}

fn status(error: &Error) -> ExitCode {
    match u8::try_from(error.code.rem_euclid(256)) {
        Ok(code) if code > 0 => ExitCode::from(code),
        _ => ExitCode::FAILURE,
    }
}

fn go(arguments: LocalArguments) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()
        .map_err(|error| Error::logical_error(format!("Cannot start threads: {error}")))?;
    let session = Arc::new(Session::open(Options {
        path: arguments.path.clone(),
        memory_folder: arguments.path.is_some().then(|| DEFAULT_MEMORY_FOLDER.into()),
        allow_executable: arguments.allow_executable,
        memory: Some(memory::options(None, || 0)),
        ..Options::default()
    })?);
    let stop = Stop::watch(&session)
        .map_err(|error| Error::logical_error(format!("Cannot watch for signals: {error}")))?;
    let runner = Runner {
        session: &session,
        runtime: &runtime,
        stop: &stop,
        format: arguments.format,
        is_closed: Cell::new(false),
        timing: if arguments.time { statements::Timing::Printed } else { statements::Timing::Off },
    };
    let result = work(&runner, &arguments);
    if Arc::into_inner(session).is_none() {
        // A signal arrived: the thread that closes the session ends the program, too.
        stop::wait_for_the_end();
    }
    result
}

fn work(runner: &Runner, arguments: &LocalArguments) -> Result<(), Error> {
    let (session, runtime) = (runner.session, runner.runtime);
    dictionaries::add(session, &arguments.dictionaries)?;
    let statements_given = !arguments.query.is_empty() || !arguments.queries_file.is_empty();
    let first = runtime.block_on(input::add_files(session, &arguments.files, arguments.input_format))?;
    if statements_given && first == input::FirstTable::Absent {
        input::add_piped(session, arguments.input_format);
    }
    for text in &arguments.query {
        runner.run_beside_input(text)?;
    }
    for path in &arguments.queries_file {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::cannot_open_file(format!("Cannot read {}: {error}", path.display())))?;
        runner.run_beside_input(&text)?;
    }
    if statements_given {
        return Ok(());
    }
    if std::io::stdin().is_terminal() {
        return prompt::run(runner);
    }
    prompt::run_piped(runner)
}
