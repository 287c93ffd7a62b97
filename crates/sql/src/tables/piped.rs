//! A stream as a table: read when it is first named, kept in an unnamed file.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use futures::lock::Mutex;
use granary_dialect::{Error, Result};

use super::files::{self, InputFormat};

/// The piped input. A table is read more than once, so its bytes are kept in a file; an unnamed file is gone with the
/// process, however that ends.
pub struct Piped {
    format: InputFormat,
    state: Mutex<State>,
}

enum State {
    Unread(Box<dyn Read + Send>),
    Read(Option<SpooledTable>),
    Failed(Error),
}

struct SpooledTable {
    /// Each reader of the table opens it again, by the system's name for an open file.
    _file: File,
    table: Arc<dyn TableProvider>,
}

impl fmt::Debug for Piped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piped").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Piped {
    /// Nothing is read yet.
    pub fn new(input: Box<dyn Read + Send>, format: InputFormat) -> Piped {
        Piped { format, state: Mutex::new(State::Unread(input)) }
    }

    /// The table; `None` if the input is empty. The first call reads it to the end.
    pub async fn table(&self) -> Result<Option<Arc<dyn TableProvider>>> {
        let mut state = self.state.lock().await;
        if let State::Unread(_) = &*state {
            // A caller that stops waiting leaves a stream that was read in part.
            let abandoned = State::Failed(Error::cannot_open_file("Standard input was read in part"));
            let State::Unread(input) = std::mem::replace(&mut *state, abandoned) else { unreachable!() };
            *state = match keep(input, self.format).await {
                Ok(kept) => State::Read(kept),
                Err(error) => State::Failed(error),
            };
        }
        match &*state {
            State::Read(kept) => Ok(kept.as_ref().map(|kept| Arc::clone(&kept.table))),
            State::Failed(error) => Err(error.clone()),
            State::Unread(_) => unreachable!("it was read above"),
        }
    }
}

async fn keep(input: Box<dyn Read + Send>, format: InputFormat) -> Result<Option<SpooledTable>> {
    let file = tokio::task::spawn_blocking(move || copy(input))
        .await
        .map_err(|error| Error::logical_error(error.to_string()))?
        .map_err(|error| Error::cannot_open_file(format!("Cannot keep standard input: {error}")))?;
    let Some(file) = file else { return Ok(None) };
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let table = files::open(&path, Some(format)).await?;
    Ok(Some(SpooledTable { _file: file, table }))
}

/// Copies the input to a file. An empty or closed standard input is `None`: programs are often run with /dev/null
/// there.
fn copy(input: Box<dyn Read + Send>) -> std::io::Result<Option<File>> {
    let mut file = tempfile::tempfile()?;
    std::io::copy(&mut BufReader::new(input), &mut file)?;
    file.flush()?;
    Ok((file.stream_position()? > 0).then_some(file))
}
