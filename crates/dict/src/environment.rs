//! What surrounds a dictionary: folders, permissions, the clock.

use crate::error::{Code, DictError};
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the server or the command line grants to its dictionaries.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where the server keeps its own; relative paths start in `user_files` below it.
    pub data_dir: PathBuf,
    /// Whether SOURCE(EXECUTABLE(..)) and SOURCE(EXECUTABLE_POOL(..)) may run programs.
    pub allow_executable: bool,
    /// Files named in DDL must lie below this folder; `None`: not confined.
    pub user_files: Option<PathBuf>,
    /// First wait after a source failed, in seconds (ClickHouse: 5).
    pub backoff_base_seconds: u64,
    /// Where the time comes from.
    pub clock: Clock,
    /// The tables beside the dictionaries, if there are any.
    pub own_tables: Option<OwnTables>,
}

/// Answers a SELECT in the FORMAT that it names.
pub type AnswerQuery = dyn Fn(&str) -> Result<Vec<u8>, DictError> + Send + Sync;

/// The tables beside the dictionaries.
#[derive(Clone)]
pub struct OwnTables(pub Arc<AnswerQuery>);

impl fmt::Debug for OwnTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnTables")
    }
}

/// Where the time comes from.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// Unix seconds that a test sets.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// Unix time in seconds.
    pub fn now(&self) -> u64 {
        match self {
            Clock::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            Clock::Manual(seconds) => seconds.load(Ordering::SeqCst),
        }
    }
}

impl Environment {
    /// Nothing allowed but files anywhere; the system's clock.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            allow_executable: false,
            user_files: None,
            backoff_base_seconds: 5,
            clock: Clock::System,
            own_tables: None,
        }
    }

    /// Where a PATH of a definition leads: relative ones start in the user files' folder.
    ///
    /// # Errors
    /// `PATH_ACCESS_DENIED` if files are confined and the path leads out, through `..` or a symbolic link.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, DictError> {
        let root = self.user_files.clone().unwrap_or_else(|| self.data_dir.join("user_files"));
        let resolved = lexically_normal(
            &std::path::absolute(root.join(path))
                .map_err(|e| DictError::new(Code::CannotOpenFile, format!("PATH '{path}': {e}")))?,
        );
        if self.user_files.is_none() {
            return Ok(resolved);
        }
        let root = lexically_normal(&std::path::absolute(&root).unwrap_or(root));
        if resolved.starts_with(&root) && resolved != root && real(&resolved).starts_with(real(&root)) {
            Ok(resolved)
        } else {
            Err(DictError::new(
                Code::PathAccessDenied,
                format!("File path {} is not inside {}", resolved.display(), root.display()),
            ))
        }
    }
}

fn lexically_normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// The path with the symbolic links of its existing part followed.
fn real(path: &Path) -> PathBuf {
    let mut existing = path;
    loop {
        if let Ok(found) = existing.canonicalize() {
            return match path.strip_prefix(existing) {
                Ok(rest) if !rest.as_os_str().is_empty() => found.join(rest),
                _ => found,
            };
        }
        // A dangling link could be pointed anywhere later: what it names is not known to be inside.
        if existing.symlink_metadata().is_ok() {
            return PathBuf::from("/dangling");
        }
        match existing.parent() {
            Some(parent) => existing = parent,
            None => return path.to_path_buf(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_start_in_user_files() {
        let environment = Environment::new("/data");
        assert_eq!(environment.resolve("a/b").unwrap(), Path::new("/data/user_files/a/b"));
        assert_eq!(environment.resolve("/x/./y").unwrap(), Path::new("/x/y"));
    }

    #[test]
    fn a_confined_path_stays_inside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("files");
        std::fs::create_dir(&root).unwrap();
        let environment = Environment { user_files: Some(root.clone()), ..Environment::new("/data") };
        assert_eq!(environment.resolve("a").unwrap(), root.join("a"));
        assert_eq!(environment.resolve(root.join("b").to_str().unwrap()).unwrap(), root.join("b"));
        for path in ["../a", "/etc/passwd", "a/../../b", ".", ""] {
            assert_eq!(environment.resolve(path).unwrap_err().code(), 481, "{path}");
        }
        std::os::unix::fs::symlink(folder.path(), root.join("out")).unwrap();
        assert_eq!(environment.resolve("out/a").unwrap_err().code(), 481);
        std::os::unix::fs::symlink("/nowhere/at/all", root.join("dangling")).unwrap();
        assert_eq!(environment.resolve("dangling").unwrap_err().code(), 481);
    }
}
