//! A session for studies and demos, which returns text and seconds.

use std::path::Path;
use std::time::Instant;

use crate::memory;
use granary_sql::format::Format;
use granary_sql::{Options, Session, split};
use tokio::runtime::Runtime;

use crate::failure::{Failure, Result};
use crate::progress::Progress;

/// A session and the threads it runs on. Dropping it stops its dictionaries cleanly.
pub struct Client {
    // First, so that the runtime's threads exist until it is closed.
    session: Session,
    runtime: Runtime,
}

/// A query's answer.
pub struct Reply {
    /// The rows, in the format asked for.
    pub text: String,
    /// Seconds from parsing the statements to writing the last row.
    pub seconds: f64,
}

impl Client {
    /// Opens a folder; `allow_executable`: its dictionaries may run programs.
    pub fn open(path: &Path, allow_executable: bool) -> Result<Client> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::File("threads".to_owned(), error))?;
        let options = Options {
            path: Some(path.to_owned()),
            allow_executable,
            memory: Some(memory::options(None, || 0)),
            ..Options::default()
        };
        Ok(Client { session: Session::open(options)?, runtime })
    }

    /// Runs statements; returns the last one's answer in TabSeparated.
    pub fn ask(&self, sql: &str) -> Result<Reply> {
        self.answer(sql, Format::TabSeparated, None)
    }

    /// Runs statements, with the last one's answer in `format`; if `rows`, the number of rows to be read, is given,
    /// shows a progress bar.
    pub fn answer(&self, sql: &str, format: Format, rows: Option<u64>) -> Result<Reply> {
        let started = Instant::now();
        let mut text = Vec::new();
        for statement in split(sql)? {
            text.clear();
            let mut output = self.runtime.block_on(self.session.execute(&statement))?;
            let mut progress = rows.map(|rows| Progress::start_with_total(output.progress(), rows));
            let chosen = output.format.unwrap_or(format);
            let written = output.write(self.runtime.handle(), chosen, &mut text);
            if let Some(progress) = &mut progress {
                progress.stop();
            }
            written?;
        }
        let seconds = started.elapsed().as_secs_f64();
        Ok(Reply { text: String::from_utf8_lossy(&text).into_owned(), seconds })
    }

    /// The numbers in a query's one row.
    pub fn numbers<const N: usize>(&self, sql: &str) -> Result<[f64; N]> {
        let text = self.ask(sql)?.text;
        let numbers: Vec<f64> = text.split_whitespace().map_while(|cell| cell.parse().ok()).collect();
        numbers.try_into().map_err(|_| Failure::Answer(text))
    }
}
