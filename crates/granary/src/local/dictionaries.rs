//! `--dictionaries`: ClickHouse's XML files.

use std::path::{Path, PathBuf};

use granary_sql::{Error, Session};

/// Creates the dictionaries of the files that are named or matched, in this order.
pub fn add(session: &Session, patterns: &[String]) -> Result<(), Error> {
    for pattern in patterns {
        for path in files(pattern)? {
            // An error of one dictionary does not affect the others.
            session.add_dictionaries(&path)?.iter().for_each(|error| complain!("{error}"));
        }
    }
    Ok(())
}

/// The file of this name, or the files that match it, sorted.
fn files(pattern: &str) -> Result<Vec<PathBuf>, Error> {
    if Path::new(pattern).exists() {
        return Ok(vec![pattern.into()]);
    }
    let matches = glob::glob(pattern)
        .map_err(|error| Error::bad_arguments(format!("--dictionaries {pattern}: {error}")))?;
    let files: Vec<PathBuf> = matches.filter_map(Result::ok).collect();
    if files.is_empty() {
        return Err(Error::cannot_open_file(format!("--dictionaries {pattern}: there is no such file")));
    }
    Ok(files)
}
