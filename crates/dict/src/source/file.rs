//! FILE(PATH, FORMAT): a file of rows, read from its beginning to its end for each request.

use super::format::read_rows;
use super::rows::Rows;
use super::{Source, Take};
use crate::config::FileConfig;
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::limits;
use crate::row::KeyFormat;
use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use std::collections::HashSet;
use std::fs::File as Handle;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Nothing is kept between requests: the file may be replaced at any time.
pub(super) struct File {
    path: PathBuf,
    config: FileConfig,
    structure: Structure,
    key_format: KeyFormat,
}

impl File {
    pub fn new(path: &Path, config: &FileConfig, structure: &Structure) -> File {
        File {
            path: path.to_path_buf(),
            config: config.clone(),
            structure: structure.clone(),
            key_format: KeyFormat::new(structure),
        }
    }

    fn read(&self) -> Result<RecordBatch, DictError> {
        let bytes =
            contents(&self.path, ", and would be read for each request; put it into an SQLite database")?;
        let mut rows = Rows::new(&self.structure);
        read_rows(self.config.format, &bytes, &mut rows)
            .map_err(|e| e.within(format_args!("File {}", self.path.display())))?;
        rows.finish(&[])
    }
}

/// All bytes of a file, if they are not too many: `advice` is for whoever has more.
pub(super) fn contents(path: &Path, advice: &str) -> Result<Vec<u8>, DictError> {
    let failed = |e: io::Error| DictError::new(Code::CannotOpenFile, format!("File {}: {e}", path.display()));
    let mut bytes = Vec::new();
    let file = Handle::open(path).map_err(failed)?;
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
        let all = self.read()?;
        let asked = self.key_format.encode(keys)?;
        let asked: HashSet<&[u8]> = (0..asked.len()).map(|row| asked.get(row)).collect();
        let theirs = self.key_format.encode(&all.columns()[..keys.len()])?;
        let wanted: BooleanArray =
            (0..theirs.len()).map(|row| Some(asked.contains(theirs.get(row)))).collect();
        let rows = filter_record_batch(&all, &wanted)
            .map_err(|e| DictError::new(Code::IncorrectData, e.to_string()))?;
        Ok(vec![rows])
    }

    fn load_all(&mut self, take: &mut Take<'_>) -> Result<(), DictError> {
        take(self.read()?)
    }
}
