//! CSV and TabSeparated files as tables.

mod kind;
mod pieces;
mod reader;
mod sample;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::PartitionStream;
use granary_dialect::Result;
use granary_dict::{DataType, TextFormat};

use super::provider::{Table, Wanted};
use super::scan::Scan;
use kind::ValueKind;
use pieces::{Range, TextPiece};
pub use reader::Compression;
use reader::Reader;
pub use sample::HeaderRow;

/// The table: its file's description; each query reads the rows anew.
#[derive(Debug)]
pub struct TextTable {
    file: Arc<TextFile>,
    schema: SchemaRef,
}

/// A file whose columns were guessed.
#[derive(Debug)]
struct TextFile {
    path: PathBuf,
    format: TextFormat,
    compression: Compression,
    /// The types that the decoder reads.
    columns: Vec<(String, DataType)>,
    kinds: Vec<ValueKind>,
    header_bytes: usize,
}

impl TextTable {
    /// Looks at the beginning of a file.
    pub fn open(
        path: &Path,
        format: TextFormat,
        compression: Compression,
        header: HeaderRow,
    ) -> Result<TextTable> {
        let sample = Reader::open(path, compression, format, 0..u64::MAX)
            .and_then(|mut reader| reader.next_rows())
            .map_err(|error| error.at(path))?
            .unwrap_or_default();
        let guess = sample::guess(format, header, &sample).map_err(|error| error.at(path))?;
        let fields: Vec<_> = guess.columns.iter().map(|(name, kind)| kind.field(name)).collect();
        let kinds = guess.columns.iter().map(|(_, kind)| *kind).collect();
        let columns = guess.columns.into_iter().map(|(name, kind)| (name, kind.data_type())).collect();
        let file = TextFile {
            path: path.to_owned(),
            format,
            compression,
            columns,
            kinds,
            header_bytes: guess.header_bytes,
        };
        Ok(TextTable { file: Arc::new(file), schema: Arc::new(Schema::new(fields)) })
    }
}

impl Table for TextTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn scan(&self, wanted: &Wanted<'_>) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        let (columns, schema) = (wanted.columns(&self.schema), wanted.schema(&self.schema)?);
        let threads = wanted.config.target_partitions();
        let ranges = pieces::ranges(&self.file, threads).map_err(|error| error.at(&self.file.path))?;
        let piece = |range: Range| {
            let (file, schema) = (Arc::clone(&self.file), Arc::clone(&schema));
            Arc::new(TextPiece { file, range, columns: columns.clone(), schema }) as Arc<dyn PartitionStream>
        };
        let pieces = ranges.into_iter().map(piece).collect();
        Ok(Arc::new(Scan::new("text file", schema, pieces)))
    }
}
