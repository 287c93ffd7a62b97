//! FILE(PATH, FORMAT): a file of rows, read from its beginning to its end for each request; of Parquet, only parts that
//! may hold the keys.

use crate::definition::Structure;
use crate::environment::{ParquetReader, ParquetRequest};
use crate::error::{Code, DictError};
use crate::limits;
use crate::row::KeyFormat;
use crate::source::format::names::Format;
use crate::source::format::{push_batch, read_rows};
use crate::source::rows::Rows;
use crate::source::{BatchSink, Source};
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use rustix::fs::OFlags;
use std::collections::HashSet;
use std::fs::File as Handle;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How the rows lie in a file.
#[derive(Clone, Copy)]
pub(super) enum FileFormat {
    /// Rows lie as they come on a pipe.
    Rows(Format),
    Parquet,
}

/// Nothing is kept between requests: the file may be replaced at any time.
pub(super) struct File {
    path: PathBuf,
    format: FileFormat,
    parquet: Option<ParquetReader>,
    structure: Structure,
    key_format: KeyFormat,
    answer_bytes_max: u64,
}

impl File {
    pub fn new(
        path: &Path,
        format: FileFormat,
        parquet: Option<ParquetReader>,
        structure: &Structure,
        answer_bytes_max: u64,
    ) -> File {
        File {
            path: path.to_path_buf(),
            format,
            parquet,
            structure: structure.clone(),
            key_format: KeyFormat::new(structure),
            answer_bytes_max,
        }
    }

    /// Hands over the rows with these keys, or all rows; others may be among them.
    fn read(&self, keys: Option<&[ArrayRef]>, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        let mut rows = Rows::new(&self.structure);
        match self.format {
            FileFormat::Rows(format) => {
                let advice = ", and would be read for each request; put it into a Parquet file that is sorted by the \
                              key, or an SQLite database";
                let bytes = contents(&self.path, advice)?;
                read_rows(format, &bytes, &mut rows).map_err(|e| self.within(e))?;
                sink(rows.finish(&[])?)
            }
            FileFormat::Parquet => {
                let Some(reader) = &self.parquet else {
                    let text = "FILE: Parquet is read by `granary local` and `granary server` alone";
                    return Err(DictError::new(Code::NotImplemented, text));
                };
                // The reader opens the path itself, and would wait at a pipe.
                open_regular(&self.path).map_err(|e| unreadable(&self.path, &e))?;
                let columns: Vec<String> =
                    (0..rows.width()).map(|column| rows.name(column).to_owned()).collect();
                let wanted = ParquetRequest { columns: &columns, keys: keys.and_then(<[_]>::first) };
                let mut adopt = |batch: RecordBatch| {
                    push_batch(&batch, &mut rows).map_err(|e| self.within(e))?;
                    rows.flush(sink)
                };
                (reader.0)(&self.path, &wanted, &mut adopt)
            }
        }
    }

    fn within(&self, error: DictError) -> DictError {
        error.within(format_args!("File {}", self.path.display()))
    }
}

/// Opens a regular file for reading. A pipe would block until it is written to, and be empty at the next request; a
/// device may have no end.
pub(in crate::source) fn open_regular(path: &Path) -> io::Result<Handle> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = match Handle::options().read(true).custom_flags(flags).open(path) {
        // Another process has a lease on it, and gives it back while we wait.
        Err(e) if e.kind() == io::ErrorKind::WouldBlock && path.metadata()?.is_file() => Handle::open(path)?,
        opened => opened?,
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

fn unreadable(path: &Path, e: &io::Error) -> DictError {
    DictError::new(Code::CannotOpenFile, format!("File {}: {e}", path.display()))
}

/// All bytes of a file, unless they are too many: then the error gives `advice`.
pub(in crate::source) fn contents(path: &Path, advice: &str) -> Result<Vec<u8>, DictError> {
    let failed = |e| unreadable(path, &e);
    let mut bytes = Vec::new();
    let file = open_regular(path).map_err(failed)?;
    file.take(limits::SOURCE_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 > limits::SOURCE_FILE_BYTES_MAX {
        false => Ok(bytes),
        true => {
            let (path, most) = (path.display(), limits::SOURCE_FILE_BYTES_MAX);
            let text = format!("File {path} is longer than {most} bytes{advice}");
            Err(DictError::new(Code::LimitExceeded, text))
        }
    }
}

impl Source for File {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let asked = self.key_format.encode(keys)?;
        let asked: HashSet<&[u8]> = (0..asked.len()).map(|row| asked.get(row)).collect();
        let bound = Rows::new(&self.structure).at_most(self.answer_bytes_max);
        let (mut found, mut bytes) = (Vec::new(), 0);
        self.read(Some(keys), &mut |batch| {
            let theirs = self.key_format.encode(&batch.columns()[..keys.len()])?;
            let wanted: BooleanArray =
                (0..theirs.len()).map(|row| Some(asked.contains(theirs.get(row)))).collect();
            let rows = filter_record_batch(&batch, &wanted)
                .map_err(|e| DictError::new(Code::IncorrectData, e.to_string()))?;
            if rows.num_rows() > 0 {
                bytes += rows.columns().iter().map(|column| column.get_buffer_memory_size()).sum::<usize>();
                bound.check_answer(bytes).map_err(|e| self.within(e))?;
                found.push(rows);
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        self.read(None, sink)
    }
}
