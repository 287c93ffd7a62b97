//! `ArrowStream` and `Arrow`: Arrow's IPC stream, and its file.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::writer::{FileWriter, StreamWriter};
use granary_dialect::Result;

use super::arrow_types::{written_batch, written_schema};
use super::{BatchWriter, Statistics};

/// One IPC stream a result.
pub struct ArrowStream<'a> {
    writer: StreamWriter<&'a mut (dyn Write + Send)>,
    schema: SchemaRef,
}

impl<'a> ArrowStream<'a> {
    pub fn open(schema: &Schema, out: &'a mut (dyn Write + Send)) -> Result<Self> {
        let schema = written_schema(schema);
        Ok(Self { writer: StreamWriter::try_new(out, &schema)?, schema })
    }
}

impl BatchWriter for ArrowStream<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Ok(self.writer.write(&written_batch(batch, &self.schema)?)?)
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        Ok(self.writer.finish()?)
    }
}

/// One IPC file a result.
pub struct ArrowFile<'a> {
    writer: FileWriter<&'a mut (dyn Write + Send)>,
    schema: SchemaRef,
}

impl<'a> ArrowFile<'a> {
    pub fn open(schema: &Schema, out: &'a mut (dyn Write + Send)) -> Result<Self> {
        let schema = written_schema(schema);
        Ok(Self { writer: FileWriter::try_new(out, &schema)?, schema })
    }
}

impl BatchWriter for ArrowFile<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Ok(self.writer.write(&written_batch(batch, &self.schema)?)?)
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        Ok(self.writer.finish()?)
    }
}
