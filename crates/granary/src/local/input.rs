//! Files and standard input as tables.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;

use granary_sql::{Error, InputFormat, Session};

/// The table's name when there is one input, as in `clickhouse local`.
const ONLY_TABLE: &str = "table";

/// Whether a file took the name `table`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FirstTable {
    Absent,
    Given,
}

/// Makes each file a table named after it, the first one also `table`.
pub async fn add_files(
    session: &Session,
    files: &[PathBuf],
    format: Option<InputFormat>,
) -> Result<FirstTable, Error> {
    for (i, path) in files.iter().enumerate() {
        // A name that tells the format wins over --input-format, which is then standard input's.
        let format = InputFormat::of(path).ok().filter(|_| files.len() > 1).or(format);
        if i == 0 {
            session.add_file(ONLY_TABLE, path, format).await?;
        }
        if let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != ONLY_TABLE)
        {
            session.add_file(stem, path, format).await?;
        }
    }
    Ok(if files.is_empty() { FirstTable::Absent } else { FirstTable::Given })
}

/// A copy of standard input on disk, removed when dropped.
pub struct Piped {
    path: PathBuf,
}

impl Drop for Piped {
    fn drop(&mut self) {
        // Nobody can act on a failure here; the folder is temporary.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Makes what is piped in the table `table`: a table is read more than once, so it is kept in a file first.
pub async fn add_piped(session: &Session, format: Option<InputFormat>) -> Result<Option<Piped>, Error> {
    let mut input = std::io::stdin().lock();
    if input.is_terminal() {
        return Ok(None);
    }
    let mut first = [0; 1];
    // An empty or closed standard input is none: programs are often run with /dev/null there.
    if !matches!(input.read(&mut first), Ok(1)) {
        return Ok(None);
    }
    let format = format.unwrap_or(InputFormat::TabSeparated);
    let extension = if format == InputFormat::Parquet { "parquet" } else { "csv" };
    let name = format!("granary-stdin-{}.{extension}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let failed =
        |error: std::io::Error| Error::cannot_open_file(format!("Cannot keep standard input: {error}"));
    let mut file = File::create_new(&path).map_err(failed)?;
    let piped = Piped { path };
    file.write_all(&first).map_err(failed)?;
    std::io::copy(&mut input, &mut file).map_err(failed)?;
    session.add_file(ONLY_TABLE, &piped.path, Some(format)).await?;
    Ok(Some(piped))
}
