//! Runs statements one after the other and writes their answers.

use std::cell::Cell;
use std::io::{BufWriter, IsTerminal, Read, Write};
use std::time::Instant;

use granary_sql::format::{self, Format};
use granary_sql::{Error, Session, Statement, split};
use tokio::runtime::Runtime;

use super::stop::{self, Stop};
use crate::progress::Progress;

/// Whether the seconds of each statement are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    Off,
    Printed,
}

/// What statements need to run.
pub struct Runner<'a> {
    pub session: &'a Session,
    pub runtime: &'a Runtime,
    pub stop: &'a Stop,
    pub format: Option<Format>,
    pub timing: Timing,
    /// Whether the reader of the output has closed its end.
    pub is_closed: Cell<bool>,
}

impl Runner<'_> {
    /// Runs all statements of a text; the first error ends it.
    pub fn run_text(&self, text: &str) -> Result<(), Error> {
        split(text)?.iter().try_for_each(|statement| self.run(statement))
    }

    /// Runs all statements of a text that did not come from standard input, which has the rows of an INSERT that ends
    /// with its FORMAT.
    pub fn run_beside_input(&self, text: &str) -> Result<(), Error> {
        for mut statement in split(text)? {
            let mut input = std::io::stdin();
            if statement.wants_rows() && !input.is_terminal() {
                input.read_to_end(&mut statement.data)?;
            }
            self.run(&statement)?;
        }
        Ok(())
    }

    /// Runs one statement.
    pub fn run(&self, statement: &Statement) -> Result<(), Error> {
        let started = Instant::now();
        let result = self.runtime.block_on(async {
            tokio::select! {
                result = self.answer(statement) => Some(result),
                () = self.stop.asked() => None,
            }
        });
        // The statement's resources are released by now.
        let Some(result) = result else { stop::wait_for_the_end() };
        if self.timing == Timing::Printed {
            complain!("{:.3}", started.elapsed().as_secs_f64());
        }
        match result {
            // The reader has closed its end, as in `granary local ... | head`: what follows is still done.
            Err(End::PipeClosed) => {
                self.is_closed.set(true);
                Ok(())
            }
            Err(End::Failed(error)) => Err(error),
            Ok(()) => Ok(()),
        }
    }

    async fn answer(&self, statement: &Statement) -> Result<(), End> {
        let mut output = self.session.execute(statement).await?;
        if !output.has_columns() {
            return Ok(());
        }
        let mut progress = Progress::start(output.progress());
        let stdout = std::io::stdout();
        let default = if stdout.is_terminal() { Format::PrettyCompact } else { Format::TabSeparated };
        let chosen = output.format.or(self.format).unwrap_or(default);
        // Not locked: DataFusion's threads never write here, and a lock cannot be held across an await.
        let mut out = BufWriter::new(stdout);
        let mut writer = format::open(chosen, output.schema.clone(), &mut out)?;
        while let Some(batch) = output.next().await {
            let batch = batch?;
            progress.stop();
            writer.write(&batch)?;
        }
        progress.stop();
        writer.finish(output.progress().read())?;
        drop(writer);
        out.flush().map_err(|error| End::from(Error::from(error)))
    }
}

/// Why a statement ended early.
enum End {
    PipeClosed,
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        if error.is_broken_pipe() { End::PipeClosed } else { End::Failed(error) }
    }
}
