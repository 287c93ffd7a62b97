//! Dictionaries from ClickHouse's XML files, read at the start and again whenever a file changes.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use granary_sql::{Error, Session};

use crate::limits::CONFIGURATION_SECONDS;

/// A file's modification time and length: they tell whether it has changed.
type Modified = (SystemTime, u64);

/// A file as last read, and its errors: what failed is tried again, as the cause may pass.
struct FileState {
    version: Modified,
    was_read: bool,
    wrong: Vec<String>,
}

/// The files, as last read.
pub struct DictionaryFiles {
    session: Arc<Session>,
    patterns: Vec<String>,
    seen: HashMap<PathBuf, FileState>,
    was_read: bool,
}

impl DictionaryFiles {
    pub fn new(session: Arc<Session>, patterns: Vec<String>) -> Self {
        Self { session, patterns, seen: HashMap::new(), was_read: false }
    }

    /// Reads new and changed files. Errors are logged and do not stop the rest; a deleted file leaves its dictionaries
    /// as they are.
    pub fn read(&mut self) {
        let is_first = !std::mem::replace(&mut self.was_read, true);
        for path in self.files(is_first) {
            self.read_file(path);
        }
    }

    /// The files of all patterns in the order of their paths, each once, however many paths lead to it: of several
    /// files that describe one dictionary the first counts.
    fn files(&self, is_first: bool) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for pattern in &self.patterns {
            let before = paths.len();
            match glob::glob(pattern) {
                Ok(found) => paths.extend(found.flatten()),
                Err(error) => {
                    tracing::error!(%pattern, %error, "the pattern of dictionary files is wrong");
                    continue;
                }
            }
            if is_first && paths.len() == before {
                tracing::warn!(%pattern, "no file of dictionaries is of this pattern");
            }
        }
        paths.sort_unstable();
        let mut files = HashSet::new();
        paths.retain(|path| files.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
        paths
    }

    fn read_file(&mut self, path: PathBuf) {
        let Some(version) = look(&path) else { return };
        let before = self.seen.get(&path).filter(|seen| seen.version == version);
        if before.is_some_and(|seen| seen.wrong.is_empty()) {
            return;
        }
        let read = caught(|| match before {
            Some(before) if before.was_read => self.session.add_failed_dictionaries(&path),
            _ => self.session.add_dictionaries(&path),
        });
        let was_read = read.is_ok();
        let wrong = read.unwrap_or_else(|error| vec![error]);
        let texts: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        let is_told = before.is_some_and(|before| before.wrong == texts);
        if !is_told && wrong.is_empty() {
            tracing::info!(path = %path.display(), "dictionaries are as the file says");
        }
        for error in wrong.iter().filter(|_| !is_told) {
            tracing::error!(%error, "a dictionary of a file is not available");
        }
        self.seen.insert(path, FileState { version, was_read, wrong: texts });
    }

    /// Reads the files periodically, for ever.
    pub async fn watch(mut self) {
        if self.patterns.is_empty() {
            return;
        }
        loop {
            tokio::time::sleep(Duration::from_secs(CONFIGURATION_SECONDS)).await;
            // Opening and closing dictionaries may wait for the device.
            let read = tokio::task::spawn_blocking(move || {
                self.read();
                self
            });
            self = match read.await {
                Ok(back) => back,
                Err(error) => {
                    tracing::error!(%error, "files of dictionaries are not looked at any more");
                    return;
                }
            };
        }
    }
}

/// Reads a file. A panic is an error of that file: the others, and later versions of it, are read all the same.
fn caught(read: impl FnOnce() -> Result<Vec<Error>, Error>) -> Result<Vec<Error>, Error> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Error::logical_error(format!("A file of dictionaries cannot be read: {said}")))
    })
}

fn look(path: &Path) -> Option<Modified> {
    let metadata = path.metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_the_file() {
        let read = caught(|| panic!("a {} in the reader", "bug"));
        assert_eq!(read.unwrap_err().to_string().matches("a bug in the reader").count(), 1);
        assert!(caught(|| Ok(Vec::new())).unwrap().is_empty());
    }
}
