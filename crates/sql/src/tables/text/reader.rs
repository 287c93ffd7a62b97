//! Whole rows of a file, some at a time.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use granary_dialect::{Error, Result};
use granary_dict::TextFormat;

use crate::limits::{TEXT_CHUNK_BYTES, TEXT_ROW_BYTES_MAX};

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
}

/// Reads a file from one row's beginning to another's.
pub struct Reader {
    input: Box<dyn Read + Send>,
    format: TextFormat,
    /// Bytes read after the last whole row.
    rest: Vec<u8>,
}

impl Reader {
    /// `range` is in unpacked bytes and begins with a row.
    pub fn open(
        path: &Path,
        compression: Compression,
        format: TextFormat,
        range: Range<u64>,
    ) -> Result<Reader> {
        let mut file = File::open(path).map_err(cannot_read)?;
        let length = range.end - range.start;
        let input: Box<dyn Read + Send> = match compression {
            Compression::None => {
                file.seek(SeekFrom::Start(range.start)).map_err(cannot_read)?;
                Box::new(file.take(length))
            }
            Compression::Gzip => {
                let mut unpacked = MultiGzDecoder::new(file);
                std::io::copy(&mut (&mut unpacked).take(range.start), &mut std::io::sink())
                    .map_err(cannot_read)?;
                Box::new(unpacked.take(length))
            }
        };
        Ok(Reader { input, format, rest: Vec::new() })
    }

    /// The next whole rows, in the order of the file; `None` at its end.
    pub fn next_rows(&mut self) -> Result<Option<Vec<u8>>> {
        let mut rows = std::mem::take(&mut self.rest);
        loop {
            if rows.len() > TEXT_ROW_BYTES_MAX {
                return Err(Error::cannot_parse_text(format!(
                    "A row is longer than {TEXT_ROW_BYTES_MAX} bytes"
                )));
            }
            let wanted = TEXT_CHUNK_BYTES.max(rows.len());
            let came = self.input.by_ref().take(wanted as u64).read_to_end(&mut rows).map_err(cannot_read)?;
            if came < wanted {
                // The end: the last row may lack its line end.
                return Ok((!rows.is_empty()).then_some(rows));
            }
            let end = self.format.whole_rows(&rows);
            if end > 0 {
                self.rest = rows.split_off(end);
                return Ok(Some(rows));
            }
        }
    }
}

fn cannot_read(error: std::io::Error) -> Error {
    Error::cannot_open_file(format!("Cannot read: {error}"))
}
