//! The database file that is there when a request begins: another one may have replaced it since the last.

use super::client::Sqlite;
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::source::select::Select;
use crate::source::{BatchSink, Changes, NewestChange, Source};
use arrow::array::{ArrayRef, RecordBatch};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// The path of a database file, and what is read from it.
#[derive(Clone)]
pub(super) struct SqliteDatabase {
    pub path: PathBuf,
    pub select: Select,
    pub structure: Structure,
    pub timeout: Duration,
    /// Bytes of an answer that is read whole.
    pub answer_bytes_max: u64,
}

/// A connection to the file that the path leads to now. A connection to a file that was replaced (`mv new.db users.db`,
/// a symbolic link that is turned) would go on reading the old one.
pub(super) struct Current {
    database: SqliteDatabase,
    /// Which file is open; `None`: there was none to open.
    file: Option<FileId>,
    sqlite: Sqlite,
}

/// Device and inode of a file, which identify it while it is open.
type FileId = (u64, u64);

impl Current {
    pub fn open(database: SqliteDatabase) -> Result<Current, DictError> {
        // Before it is opened: a file that is replaced in between is opened once more.
        let file = database.file()?;
        let sqlite = Sqlite::open(&database)?;
        Ok(Current { database, file, sqlite })
    }

    fn sqlite(&mut self) -> Result<&mut Sqlite, DictError> {
        if self.database.file()? != self.file {
            *self = Current::open(self.database.clone())?;
        }
        Ok(&mut self.sqlite)
    }
}

impl SqliteDatabase {
    /// The file that is there; `None`: there is none.
    ///
    /// # Errors
    /// It is no regular file: SQLite would wait for the other end of a pipe.
    fn file(&self) -> Result<Option<FileId>, DictError> {
        match fs::metadata(&self.path).ok() {
            Some(found) if !found.is_file() => {
                let text = format!("SQLite database {}: it is no regular file", self.path.display());
                Err(DictError::new(Code::SqliteEngineError, text))
            }
            found => Ok(found.map(|found| (found.dev(), found.ino()))),
        }
    }
}

impl Source for Current {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        self.sqlite()?.load(keys)
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        self.sqlite()?.load_all(sink)
    }

    fn newest_change(&mut self, watermark: Option<&str>) -> Result<NewestChange, DictError> {
        self.sqlite()?.newest_change(watermark)
    }

    fn changes(&mut self, watermark: &str) -> Result<Changes, DictError> {
        self.sqlite()?.changes(watermark)
    }
}
