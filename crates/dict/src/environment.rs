//! What surrounds a dictionary: folders, permissions, the clock.

use crate::config::Collections;
use crate::error::{Code, DictError};
use crate::limits;
use crate::lookup::Totals;
use crate::source::BatchSink;
use arrow::array::ArrayRef;
use granary_cache::Helpers;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What the server or the command line grants to its dictionaries.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The server's data folder; relative paths start in `user_files` below it.
    pub data_dir: PathBuf,
    /// Whether SOURCE(EXECUTABLE(..)) and SOURCE(EXECUTABLE_POOL(..)) may run programs.
    pub allow_executable: bool,
    /// Files named in DDL must lie below this folder; `None`: not confined.
    pub user_files: Option<PathBuf>,
    /// First wait after a source failed, in seconds (ClickHouse: 5).
    pub backoff_base_seconds: u64,
    /// Where the time comes from.
    pub clock: Clock,
    /// How lookups wait for sources.
    pub waiting: WaitLimit,
    /// The server's own tables, if there are any.
    pub own_tables: Option<OwnTables>,
    /// The reader of Parquet files, if there is one.
    pub parquet: Option<ParquetReader>,
    /// Named collections of sources' parameters.
    pub collections: Collections,
    /// Sums over all dictionaries.
    pub totals: Totals,
    /// The threads that help with large batches.
    pub helpers: Helpers,
    /// A folder on a tmpfs for the RAM tiers of SSD_CACHE, so that they survive a kill of the process; `None`: they do
    /// not.
    pub memory_folder: Option<PathBuf>,
    /// Maximum bytes of one answer of a source that is read whole.
    pub answer_bytes_max: u64,
}

/// Answers a SELECT in the FORMAT that it names, under the SETTINGS of a dictionary.
pub type AnswerQuery = dyn Fn(&str, &[(String, String)]) -> Result<Vec<u8>, DictError> + Send + Sync;

/// The server's own tables.
#[derive(Clone)]
pub struct OwnTables(pub Arc<AnswerQuery>);

impl fmt::Debug for OwnTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnTables")
    }
}

/// Hands over rows of a Parquet file, in columns with the file's names and types.
pub type ReadParquet =
    dyn Fn(&Path, &ParquetRequest<'_>, &mut BatchSink<'_>) -> Result<(), DictError> + Send + Sync;

/// A reader of Parquet files.
#[derive(Clone)]
pub struct ParquetReader(pub Arc<ReadParquet>);

impl fmt::Debug for ParquetReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParquetReader")
    }
}

/// What is wanted of a Parquet file.
#[derive(Debug)]
pub struct ParquetRequest<'a> {
    /// The columns, those of the key first. One that is not there is left out.
    pub columns: &'a [String],
    /// Values of the first column: rows with other values may be left out. `None`: all rows.
    pub keys: Option<&'a ArrayRef>,
}

/// How lookups wait for sources: on their own thread, at most [`LOOKUPS_WAITING_MAX`](limits::LOOKUPS_WAITING_MAX) at
/// once, so that threads are left for lookups that need not wait, and at most
/// [`LOOKUPS_WAITING_OF_ONE_MAX`](limits::LOOKUPS_WAITING_OF_ONE_MAX) of one dictionary, so that places are left for
/// others. Clones share the counts.
#[derive(Clone, Debug)]
pub struct WaitLimit {
    places: Places,
    /// Places of one dictionary; a lookup takes one here and one in `places`.
    own: Option<Places>,
    run: fn(&mut dyn FnMut()),
}

/// How many wait, and how many may.
#[derive(Clone, Debug)]
struct Places {
    taken: Arc<AtomicUsize>,
    most: usize,
}

impl WaitLimit {
    /// `run` is given each wait and calls it once, so that a runtime can learn that this thread will block.
    pub fn new(run: fn(&mut dyn FnMut())) -> Self {
        Self { places: Places::of(limits::LOOKUPS_WAITING_MAX), own: None, run }
    }

    /// Waits in `places` places of their own, which take none from lookups.
    pub fn with_own_limit(&self, places: usize) -> Self {
        Self { places: Places::of(places), own: None, run: self.run }
    }

    /// How lookups of one dictionary wait.
    pub(crate) fn of_one(&self) -> Self {
        Self { own: Some(Places::of(limits::LOOKUPS_WAITING_OF_ONE_MAX)), ..self.clone() }
    }

    /// A place to wait at; `None`: too many are waiting already.
    pub(crate) fn wait_permit(&self) -> Option<WaitPermit> {
        let own = match &self.own {
            Some(own) => Some(own.take()?),
            None => None,
        };
        Some(WaitPermit { taken: [Some(self.places.take()?), own], run: self.run })
    }

    /// The result of `wait`; `None`: too many are waiting already.
    pub fn wait<T>(&self, wait: impl FnOnce() -> T) -> Option<T> {
        self.wait_permit()?.wait(wait)
    }
}

/// A place among the threads that wait, for as long as this is held.
pub(crate) struct WaitPermit {
    taken: [Option<TakenPlace>; 2],
    run: fn(&mut dyn FnMut()),
}

impl WaitPermit {
    /// The place of a thread that serves nothing else: it takes none of the others.
    pub fn unlimited() -> WaitPermit {
        WaitPermit { taken: [None, None], run: |wait| wait() }
    }

    /// Gives the place to others. Later waits take none.
    pub fn give_back(&mut self) {
        self.taken = [None, None];
    }

    /// The result of `wait`; `None`: it was not called.
    pub fn wait<T>(&self, wait: impl FnOnce() -> T) -> Option<T> {
        let (mut wait, mut result) = (Some(wait), None);
        (self.run)(&mut || result = wait.take().map(|wait| wait()));
        result
    }
}

impl Places {
    fn of(most: usize) -> Self {
        Self { taken: Arc::default(), most }
    }

    fn take(&self) -> Option<TakenPlace> {
        // Given back at once if there is none left.
        let place = TakenPlace(Arc::clone(&self.taken));
        (self.taken.fetch_add(1, Ordering::Relaxed) < self.most).then_some(place)
    }
}

/// One place, until it is dropped.
struct TakenPlace(Arc<AtomicUsize>);

impl Drop for TakenPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where the time comes from.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// Unix seconds that a test sets.
    Manual(Arc<AtomicU64>),
    /// Unix seconds that a test sets, and separately the seconds of a clock that is never set back.
    Apart {
        /// Unix seconds.
        unix: Arc<AtomicU64>,
        /// What [`elapsed`](Clock::elapsed) tells, in seconds.
        elapsed: Arc<AtomicU64>,
    },
}

impl Clock {
    /// Unix time in seconds.
    pub fn now(&self) -> u64 {
        match self {
            Clock::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            Clock::Manual(unix) | Clock::Apart { unix, .. } => unix.load(Ordering::SeqCst),
        }
    }

    /// Time since an arbitrary moment. The machine's is monotonic.
    pub(crate) fn elapsed(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        match self {
            Clock::System => START.elapsed(),
            Clock::Manual(elapsed) | Clock::Apart { elapsed, .. } => {
                Duration::from_secs(elapsed.load(Ordering::SeqCst))
            }
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
            waiting: WaitLimit::new(|wait| wait()),
            own_tables: None,
            parquet: None,
            collections: Collections::default(),
            totals: Totals::default(),
            helpers: Helpers::default(),
            memory_folder: None,
            answer_bytes_max: limits::ANSWER_BYTES_MAX,
        }
    }

    /// Resolves a PATH of a definition: relative ones start in the user files' folder.
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
    fn so_many_wait_and_no_more() {
        fn nested(waiting: &WaitLimit, left: usize) -> Option<usize> {
            match left {
                0 => Some(0),
                _ => waiting.wait(|| nested(&waiting.clone(), left - 1))?.map(|waits| waits + 1),
            }
        }
        let waiting = WaitLimit::new(|wait| wait());
        let most = limits::LOOKUPS_WAITING_MAX;
        assert_eq!(nested(&waiting, most), Some(most));
        assert_eq!(nested(&waiting, most + 1), None);
        assert_eq!(waiting.wait(|| 5), Some(5), "places are given back");
        let others = waiting.with_own_limit(1);
        assert_eq!(others.wait(|| (others.wait(|| 5), waiting.wait(|| 6))), Some((None, Some(6))));
        let (one, another) = (waiting.of_one(), waiting.of_one());
        let share = limits::LOOKUPS_WAITING_OF_ONE_MAX;
        let held: Vec<_> = (0..share).map(|_| one.wait_permit().unwrap()).collect();
        assert!(one.clone().wait_permit().is_none());
        let others = (0..most - share).map(|_| another.wait_permit().unwrap());
        assert_eq!(others.collect::<Vec<_>>().len(), most - share);
        drop(held);
        assert_eq!(nested(&one, share), Some(share), "places are given back");
    }

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
