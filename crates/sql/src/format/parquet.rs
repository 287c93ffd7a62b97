//! `Parquet`: the result as one file, compressed with zstd, its types spelled as ClickHouse does.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use datafusion::parquet::basic::{Compression, LogicalType, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::schema::types::{SchemaDescriptor, Type};
use granary_dialect::{Error, Result};

use super::arrow_types::{fixed_width, is_bool, is_uuid, written_batch};
use super::{BatchWriter, Statistics};

/// One Parquet file a result.
pub struct Parquet<'a> {
    /// Taken when the file is finished.
    writer: Option<ArrowWriter<&'a mut (dyn Write + Send)>>,
    schema: SchemaRef,
}

impl<'a> Parquet<'a> {
    pub fn open(given: &Schema, out: &'a mut (dyn Write + Send)) -> Result<Self> {
        let schema = Arc::new(Schema::new(given.fields().iter().map(stored).collect::<Vec<_>>()));
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_parquet_schema(parquet_schema(&schema, given).map_err(failed)?);
        let writer = ArrowWriter::try_new_with_options(out, Arc::clone(&schema), options).map_err(failed)?;
        Ok(Self { writer: Some(writer), schema })
    }
}

fn failed(error: ParquetError) -> Error {
    Error::cannot_write(error.to_string())
}

/// The field as stored in a file: Parquet has no seconds, a comparison is a number, and a FixedString is bytes.
fn stored(field: &FieldRef) -> FieldRef {
    if let (DataType::Utf8, Some(width)) = (field.data_type(), fixed_width(field)) {
        return Arc::new(Field::new(field.name(), DataType::FixedSizeBinary(width), field.is_nullable()));
    }
    let data_type = match field.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
        }
        DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, Some("UTC".into())),
        DataType::Boolean if !is_bool(field) => DataType::UInt8,
        DataType::List(item) => DataType::List(stored(item)),
        DataType::Map(entry, ordered) => DataType::Map(stored(entry), *ordered),
        DataType::Struct(items) => DataType::Struct(items.iter().map(stored).collect()),
        other => other.clone(),
    };
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(field.metadata().clone()))
}

/// Sixteen bytes that are given are a UUID: Arrow has no such type, Parquet has.
fn parquet_schema(schema: &Schema, given: &Schema) -> Result<SchemaDescriptor, ParquetError> {
    let plain = ArrowSchemaConverter::new().convert(schema)?;
    let columns = plain.root_schema().get_fields().iter().zip(given.fields());
    let columns = columns.map(|(column, field)| match is_uuid(field) {
        true => {
            let info = column.get_basic_info();
            Type::primitive_type_builder(column.name(), column.get_physical_type())
                .with_length(16)
                .with_repetition(info.repetition())
                .with_logical_type(Some(LogicalType::Uuid))
                .build()
                .map(Arc::new)
        }
        false => Ok(Arc::clone(column)),
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let root = Type::group_type_builder(plain.root_schema().name()).with_fields(columns).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

impl BatchWriter for Parquet<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(writer) = &mut self.writer else {
            return Err(Error::logical_error("A Parquet file was written to after its end"));
        };
        writer.write(&written_batch(batch, &self.schema)?).map_err(failed)
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        match self.writer.take() {
            Some(writer) => writer.close().map(|_| ()).map_err(failed),
            None => Ok(()),
        }
    }
}
