//! Files and standard input as tables.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

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
        if !path.exists() {
            let what = format!("There is no file {}; a query is given with -q", path.display());
            return Err(Error::file_doesnt_exist(what));
        }
        // With several files, the format in a file's name wins over --input-format, which is then standard input's.
        let format = InputFormat::of(path).ok().filter(|_| files.len() > 1).or(format);
        if i == 0 {
            session.add_file(ONLY_TABLE, path, format).await?;
        }
        if let Some(name) = table_name(path).filter(|name| *name != ONLY_TABLE) {
            session.add_file(name, path, format).await?;
        }
    }
    Ok(if files.is_empty() { FirstTable::Absent } else { FirstTable::Given })
}

/// A file's name without its extensions: `users` for `users.csv.gz`.
fn table_name(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    Path::new(name).file_stem()?.to_str()
}

/// Makes the piped input the table `table`, read when a statement names it.
pub fn add_piped(session: &Session, format: Option<InputFormat>) {
    let input = std::io::stdin();
    if !input.is_terminal() {
        session.add_piped(ONLY_TABLE, input, format.unwrap_or(InputFormat::TabSeparated));
    }
}
