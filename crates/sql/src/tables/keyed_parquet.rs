//! Rows of a Parquet file by key, for `SOURCE(FILE(.. FORMAT Parquet))`: in a file sorted by its key, only the pages
//! are read that may have one of the keys. The statistics of row groups and pages are read for each request, as the
//! file may have been replaced.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowFilter,
    RowSelection, RowSelector,
};
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::PageIndexPolicy;
use granary_dict::{BatchSink, Code, DictError, ParquetReader, ParquetRequest, caught_quietly};

type Builder = ParquetRecordBatchReaderBuilder<File>;

/// The reader, for the dictionaries' environment.
pub fn reader() -> ParquetReader {
    ParquetReader(Arc::new(|path: &Path, wanted: &ParquetRequest<'_>, sink: &mut BatchSink<'_>| {
        let wrong = |error: &dyn std::fmt::Display| {
            DictError::new(Code::IncorrectData, format!("File {}: {error}", path.display()))
        };
        let file = File::open(path)
            .map_err(|e| DictError::new(Code::CannotOpenFile, format!("File {}: {e}", path.display())))?;
        // The reader trusts some of the file's metadata, so panics are caught.
        let mut batches = guarded(|| open(file, wanted)?.build()).map_err(|e| wrong(&e))?;
        while let Some(batch) = guarded(|| Ok(batches.next().transpose()?)).map_err(|e| wrong(&e))? {
            sink(batch)?;
        }
        Ok(())
    }))
}

fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    caught_quietly(read)
        .unwrap_or_else(|| Err(ParquetError::General("what it says of itself makes no sense".into())))
}

fn open(file: File, wanted: &ParquetRequest<'_>) -> Result<Builder> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
    let metadata = ArrowReaderMetadata::load(&file, options)?;
    let builder = Builder::new_with_metadata(file, metadata);
    let place = |name: &String| builder.schema().index_of(name).ok();
    let columns: Vec<usize> = wanted.columns.iter().filter_map(place).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), columns);
    let builder = builder.with_projection(mask);
    let Some((keys, place)) = wanted.keys.zip(wanted.columns.first().and_then(|name| {
        let schema = builder.schema();
        schema.index_of(name).ok()
    })) else {
        return Ok(builder);
    };
    match WantedKeys::of(keys, builder.schema().field(place).data_type())? {
        Some(wanted) => narrowed(builder, place, wanted),
        None => Ok(builder),
    }
}

/// The wanted keys, in the file's type.
struct WantedKeys {
    converter: RowConverter,
    /// The keys as order-preserving bytes, sorted.
    keys: Vec<Vec<u8>>,
}

impl WantedKeys {
    /// `None`: equality of values of these types differs from the file's.
    fn of(keys: &ArrayRef, in_file: &DataType) -> Result<Option<WantedKeys>> {
        let alike = keys.data_type().is_integer() && in_file.is_integer()
            || keys.data_type().is_string() && in_file.is_string()
            || keys.data_type() == in_file && !in_file.is_nested() && !in_file.is_floating();
        if !alike || keys.null_count() > 0 {
            return Ok(None);
        }
        // A number that the file's type cannot hold is not in the file.
        let theirs = cast(keys, in_file)?;
        let converter = RowConverter::new(vec![SortField::new(in_file.clone())])?;
        let rows = converter.convert_columns(std::slice::from_ref(&theirs))?;
        let there = (0..theirs.len()).filter(|at| theirs.is_valid(*at));
        let mut keys: Vec<Vec<u8>> = there.map(|at| rows.row(at).as_ref().to_vec()).collect();
        keys.sort_unstable();
        Ok(Some(WantedKeys { converter, keys }))
    }

    /// Whether a key lies between two bounds, for each pair of bounds. An unknown bound excludes none.
    fn between(&self, least: &ArrayRef, greatest: &ArrayRef) -> Result<Vec<bool>> {
        let from = self.converter.convert_columns(std::slice::from_ref(least))?;
        let to = self.converter.convert_columns(std::slice::from_ref(greatest))?;
        let may_have = |at: usize| {
            if least.is_null(at) || greatest.is_null(at) {
                return true;
            }
            let first = self.keys.partition_point(|key| key.as_slice() < from.row(at).as_ref());
            self.keys.get(first).is_some_and(|key| key.as_slice() <= to.row(at).as_ref())
        };
        Ok((0..least.len()).map(may_have).collect())
    }
}

/// Skips row groups, pages and rows that have none of the keys in column `place`.
fn narrowed(builder: Builder, place: usize, wanted: WantedKeys) -> Result<Builder> {
    let metadata = Arc::clone(builder.metadata());
    let (schema, groups) = (Arc::clone(builder.schema()), metadata.row_groups());
    let name = schema.field(place).name();
    let statistics = StatisticsConverter::try_new(name, &schema, builder.parquet_schema())?;
    let kept = wanted.between(&statistics.row_group_mins(groups)?, &statistics.row_group_maxes(groups)?)?;
    let kept: Vec<usize> = (0..groups.len()).filter(|group| kept[*group]).collect();
    let mut pages = None;
    if let (Some(columns), Some(offsets)) = (metadata.column_index(), metadata.offset_index())
        && let Some(rows) = statistics.data_page_row_counts(offsets, groups, &kept)?
    {
        let least = statistics.data_page_mins(columns, offsets, &kept)?;
        let greatest = statistics.data_page_maxes(columns, offsets, &kept)?;
        pages = Some(selection(&rows, &wanted.between(&least, &greatest)?));
    }
    let of_key = ProjectionMask::roots(builder.parquet_schema(), [place]);
    let filter = RowFilter::new(vec![Box::new(ArrowPredicateFn::new(of_key, having(wanted)))]);
    let builder = builder.with_row_groups(kept).with_row_filter(filter);
    Ok(match pages {
        Some(pages) => builder.with_row_selection(pages),
        None => builder,
    })
}

fn selection(rows: &UInt64Array, kept: &[bool]) -> RowSelection {
    let page = |(rows, kept): (u64, &bool)| match kept {
        true => RowSelector::select(rows as usize),
        false => RowSelector::skip(rows as usize),
    };
    rows.values().iter().copied().zip(kept).map(page).collect::<Vec<_>>().into()
}

/// A filter for batches of the key column alone: the rows that have one of the keys.
fn having(wanted: WantedKeys) -> impl FnMut(RecordBatch) -> std::result::Result<BooleanArray, ArrowError> {
    let WantedKeys { converter, keys } = wanted;
    let keys: HashSet<Vec<u8>> = keys.into_iter().collect();
    move |batch| {
        let rows = converter.convert_columns(batch.columns())?;
        Ok((0..rows.num_rows()).map(|row| Some(keys.contains(rows.row(row).as_ref()))).collect())
    }
}
