//! `Parquet`: the result as one file, compressed with zstd.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

use super::{BatchWriter, Statistics};
use crate::error::{Error, Result};

/// One Parquet file a result.
pub struct Parquet<'a> {
    /// Taken when the file is finished.
    writer: Option<ArrowWriter<&'a mut (dyn Write + Send)>>,
}

impl<'a> Parquet<'a> {
    pub fn open(schema: SchemaRef, out: &'a mut (dyn Write + Send)) -> Result<Self> {
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let writer = ArrowWriter::try_new(out, schema, Some(properties)).map_err(failed)?;
        Ok(Self { writer: Some(writer) })
    }
}

fn failed(error: ParquetError) -> Error {
    Error::cannot_write(error.to_string())
}

impl BatchWriter for Parquet<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.writer {
            Some(writer) => writer.write(batch).map_err(failed),
            None => Err(Error::logical_error("A Parquet file was written to after its end")),
        }
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        match self.writer.take() {
            Some(writer) => writer.close().map(|_| ()).map_err(failed),
            None => Ok(()),
        }
    }
}
