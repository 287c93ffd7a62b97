//! `system.dictionaries`, `system.columns`, `system.databases`, `system.tables`, `system.events`, `system.metrics`,
//! `system.named_collections`, `system.settings`, `system.one`, `system.numbers`.

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use granary_dialect::Error;
use granary_dict::{Definition, Form, Key, Status};

use super::columns::columns;
use super::{Catalogue, Entry, Home, SYSTEM_DATABASE};
use crate::rights::Rights;
use crate::settings::{ExplicitSettings, KNOWN, Setting};
use crate::tables::numbers::Numbers;
use crate::tables::provider::{Provider, Table, Wanted};

/// The table of the system database whose rows depend on the settings of the query that reads it.
pub const SETTINGS_TABLE: &str = "settings";

/// A table of the system database, made on demand.
pub fn table(catalogue: &Catalogue, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
    if name == "numbers" {
        return Ok(Some(Provider::of(Numbers { first: 0, rows: u64::MAX })));
    }
    if name == SETTINGS_TABLE {
        return Ok(Some(Provider::of(SettingsTable {
            schema: settings(&ExplicitSettings::default())?.schema(),
        })));
    }
    if name == "dictionaries" {
        let rows = rows(catalogue);
        let names = rows.iter().map(|row| row.full_name.clone()).collect();
        return Ok(Some(Provider::of(DictionariesTable { names, rows: dictionaries(&rows)? })));
    }
    let Some(batch) = rows_of(catalogue, name)? else { return Ok(None) };
    Ok(Some(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?)))
}

/// The table's rows, if their number is bounded.
fn rows_of(catalogue: &Catalogue, name: &str) -> Result<Option<RecordBatch>> {
    Ok(Some(match name {
        "one" => one()?,
        "columns" => columns(catalogue)?,
        "databases" => databases(catalogue)?,
        "dictionaries" => dictionaries(&rows(catalogue))?,
        "events" => events(catalogue)?,
        "metrics" => metrics(catalogue)?,
        "named_collections" => named_collections(catalogue)?,
        SETTINGS_TABLE => settings(&ExplicitSettings::default())?,
        "tables" => tables(catalogue)?,
        _ => return Ok(None),
    }))
}

impl Catalogue {
    /// Whether the system database has such a table.
    ///
    /// # Errors
    /// Returns what keeps it from being made.
    pub fn has_system_table(&self, name: &str) -> granary_dialect::Result<bool> {
        Ok(table(self, name)?.is_some())
    }

    /// The rows of a table of the system database.
    ///
    /// # Errors
    /// UNKNOWN_TABLE.
    pub fn system_rows(&self, table: &str) -> granary_dialect::Result<RecordBatch> {
        let unknown = || Error::unknown_table(format!("Table {SYSTEM_DATABASE}.{table} does not exist"));
        rows_of(self, table)?.ok_or_else(unknown)
    }
}

pub(super) fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

fn one() -> Result<RecordBatch> {
    batch(vec![("dummy", Arc::new(UInt8Array::from(vec![0])))])
}

fn databases(catalogue: &Catalogue) -> Result<RecordBatch> {
    let names = catalogue.databases();
    let engines = || texts(names.iter().map(|_| "Atomic".to_owned()));
    batch(vec![("engine", engines()), ("engine_full", engines()), ("name", texts(names))])
}

/// Tables in RAM, and dictionaries, which can be read as tables, too.
fn tables(catalogue: &Catalogue) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for database in catalogue.databases() {
        for (name, entry) in catalogue.entries(&database) {
            let engine = match &entry {
                Entry::Table(table) => table.engine.clone(),
                Entry::Open(_) | Entry::Unloaded(_) | Entry::Failed(_) => "Dictionary".to_owned(),
            };
            let total = match &entry {
                Entry::Table(table) if table.view.is_none() => Some(table.rows() as u64),
                _ => None,
            };
            let comment = match &entry {
                Entry::Table(table) => table.comment(),
                other => other.definition().map(|definition| definition.comment.clone()).unwrap_or_default(),
            };
            let create = match &entry {
                Entry::Table(table) => table.to_sql(&database, &name, Form::OneLine),
                other => other.definition().map(|it| it.to_sql_in(Form::OneLine)).unwrap_or_default(),
            };
            rows.push((database.clone(), name, engine, total, comment, create));
        }
    }
    let columns: [(&str, ArrayRef); 6] = [
        ("database", texts(rows.iter().map(|row| row.0.clone()))),
        ("name", texts(rows.iter().map(|row| row.1.clone()))),
        ("engine", texts(rows.iter().map(|row| row.2.clone()))),
        ("total_rows", Arc::new(UInt64Array::from_iter(rows.iter().map(|row| row.3)))),
        ("comment", texts(rows.iter().map(|row| row.4.clone()))),
        ("create_table_query", texts(rows.iter().map(|row| row.5.clone()))),
    ];
    let field = |(name, array): &(&str, ArrayRef)| {
        Field::new(*name, array.data_type().clone(), *name == "total_rows")
    };
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// Counters over all dictionaries since the start, dropped ones too, under ClickHouse's names.
fn events(catalogue: &Catalogue) -> Result<RecordBatch> {
    let sums = catalogue.environment.totals.read();
    let events = [
        (
            "DictCacheKeysRequested",
            sums.keys_missed + sums.keys_joined,
            "Number of keys requested from the data source for the dictionaries of 'cache' types.",
        ),
        (
            "DictCacheKeysRequestedMiss",
            sums.source_keys_absent,
            "Number of keys requested from the data source for dictionaries of 'cache' types but not found in the data source.",
        ),
        (
            "DictCacheKeysRequestedFound",
            sums.source_keys_found,
            "Number of keys requested from the data source for dictionaries of 'cache' types and found in the data source.",
        ),
        (
            "DictCacheKeysExpired",
            sums.keys_expired,
            "Number of keys looked up in the dictionaries of 'cache' types and found in the cache but they were obsolete.",
        ),
        (
            "DictCacheKeysNotFound",
            sums.keys_missed,
            "Number of keys looked up in the dictionaries of 'cache' types and not found.",
        ),
        (
            "DictCacheKeysHit",
            sums.keys_hit,
            "Number of keys looked up in the dictionaries of 'cache' types and found in the cache.",
        ),
        (
            "DictCacheRequests",
            sums.source_requests,
            "Number of bulk requests to an external data source for the dictionaries of 'cache' types.",
        ),
    ];
    // As in ClickHouse, events that have not happened are not listed.
    let events: Vec<_> = events.into_iter().filter(|(_, value, _)| *value > 0).collect();
    batch(vec![
        ("event", texts(events.iter().map(|event| event.0.to_owned()))),
        ("value", Arc::new(UInt64Array::from_iter_values(events.iter().map(|event| event.1)))),
        ("description", texts(events.iter().map(|event| event.2.to_owned()))),
    ])
}

/// Current values, under ClickHouse's names.
fn metrics(catalogue: &Catalogue) -> Result<RecordBatch> {
    let rows = rows(catalogue);
    let sum = |f: fn(&Status) -> u64| rows.iter().map(|row| f(&row.status)).sum::<u64>() as i64;
    let metrics = [
        ("AttachedDictionary", rows.len() as i64, "Active dictionaries, attached to databases."),
        (
            "CacheDictionaryUpdateQueueBatches",
            sum(|s| s.source_queue),
            "Number of 'batches' (a set of keys) in update queue in CacheDictionaries.",
        ),
        (
            "CacheDictionaryUpdateQueueKeys",
            sum(|s| s.source_queue_keys),
            "Exact number of keys in update queue in CacheDictionaries.",
        ),
        (
            "CacheDictionaryThreads",
            sum(|s| s.source_threads),
            "Number of threads in the CacheDictionary thread pool.",
        ),
        (
            "CacheDictionaryThreadsActive",
            sum(|s| s.source_threads_active),
            "Number of threads in the CacheDictionary thread pool running a task.",
        ),
        (
            "CacheDictionaryThreadsScheduled",
            sum(|s| s.source_threads_active + s.source_queue),
            "Number of queued or active jobs in the CacheDictionary thread pool.",
        ),
        (
            "DictCacheRequests",
            sum(|s| s.source_under_way),
            "Number of requests in fly to data sources of dictionaries of cache type.",
        ),
        ("DictionaryBytesAllocated", sum(|s| s.bytes_allocated), "RAM of all dictionaries, in bytes."),
        ("DictionaryElements", sum(|s| s.element_count), "Entries of all dictionaries."),
    ];
    batch(vec![
        ("metric", texts(metrics.iter().map(|metric| metric.0.to_owned()))),
        ("value", Arc::new(Int64Array::from_iter_values(metrics.iter().map(|metric| metric.1)))),
        ("description", texts(metrics.iter().map(|metric| metric.2.to_owned()))),
    ])
}

fn named_collections(catalogue: &Catalogue) -> Result<RecordBatch> {
    let (names, statements): (Vec<String>, Vec<String>) = catalogue.collections().into_iter().unzip();
    batch(vec![("name", texts(names)), ("create_query", texts(statements))])
}

/// `system.settings`, with the values of the query that reads it.
#[derive(Debug)]
struct SettingsTable {
    schema: SchemaRef,
}

impl Table for SettingsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn scan(&self, wanted: &Wanted<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = settings(&wanted.config.get_extension::<ExplicitSettings>().unwrap_or_default())?;
        wanted.of_batches(rows.schema(), vec![rows])
    }
}

/// `system.dictionaries`, restricted to the dictionaries that the user may read.
#[derive(Debug)]
struct DictionariesTable {
    /// The dictionary of each row, as [`Rights`] name it.
    names: Vec<String>,
    rows: RecordBatch,
}

impl Table for DictionariesTable {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn scan(&self, wanted: &Wanted<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        // Without this extension, all may be read.
        let rights = wanted.config.get_extension::<Rights>().unwrap_or_default();
        let shown = self.names.iter().map(|name| Some(rights.may_read(name)));
        let rows = filter_record_batch(&self.rows, &BooleanArray::from_iter(shown))?;
        wanted.of_batches(rows.schema(), vec![rows])
    }
}

fn settings(said: &ExplicitSettings) -> Result<RecordBatch> {
    let text = |f: fn(&Setting) -> &str| texts(KNOWN.iter().map(|setting| f(setting).to_owned()));
    let zeros = || -> ArrayRef { Arc::new(UInt8Array::from(vec![0; KNOWN.len()])) };
    let values: Vec<Option<String>> = KNOWN.iter().map(|setting| said.value(setting)).collect();
    let changed: UInt8Array = values.iter().map(|value| Some(u8::from(value.is_some()))).collect();
    let value = |(setting, value): (&Setting, Option<String>)| value.unwrap_or(setting.default.to_owned());
    batch(vec![
        ("name", text(|setting| setting.name)),
        ("value", texts(KNOWN.iter().zip(values).map(value))),
        ("changed", Arc::new(changed)),
        ("description", text(|setting| setting.description)),
        ("readonly", zeros()),
        ("type", text(|setting| setting.type_name)),
        ("default", text(|setting| setting.default)),
    ])
}

pub(super) fn texts(values: impl IntoIterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// The UUIDs; zeros where a dictionary has none, as those from files.
fn uuids(rows: &[DictionariesRow]) -> Result<ArrayRef> {
    let uuid = |row: &DictionariesRow| {
        row.definition.as_ref().and_then(|definition| definition.uuid).unwrap_or_default()
    };
    let uuids = rows.iter().map(|row| Some(uuid(row)));
    Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids, 16)?))
}

fn lists(values: impl IntoIterator<Item = Vec<String>>) -> ArrayRef {
    let item = Field::new("item", DataType::Utf8, false);
    let mut builder = ListBuilder::new(StringBuilder::new()).with_field(Arc::new(item));
    for list in values {
        list.iter().for_each(|text| builder.values().append_value(text));
        builder.append(true);
    }
    Arc::new(builder.finish())
}

/// One row of `system.dictionaries`.
struct DictionariesRow {
    /// `database.name`, with the database that keeps the dictionary.
    full_name: String,
    database: String,
    name: String,
    state: &'static str,
    definition: Option<Definition>,
    status: Status,
    origin: String,
}

fn rows(catalogue: &Catalogue) -> Vec<DictionariesRow> {
    let mut rows = Vec::new();
    for database in catalogue.databases() {
        for (name, entry) in catalogue.entries(&database) {
            let origin = catalogue.origins.of(&database, &name);
            let (state, definition, mut status) = match entry {
                Entry::Open(dictionary) => {
                    let status = dictionary.status();
                    (status.state.name(), Some(dictionary.definition().clone()), status)
                }
                Entry::Unloaded(unloaded) => ("NOT_LOADED", Some(*unloaded.definition), Status::default()),
                Entry::Failed(failure) => {
                    let last_exception = failure.error.to_string();
                    let status = Status { last_exception, error_count: 1, ..Status::default() };
                    ("FAILED", failure.definition.map(|definition| *definition), status)
                }
                Entry::Table(_) => continue,
            };
            // As in ClickHouse, a dictionary whose file names no database is in none.
            // The dictionary that is in use may be an earlier one than its file describes.
            if let Some(error) = origin.as_ref().and_then(|origin| origin.failure.as_ref())
                && status.last_exception.is_empty()
            {
                status.last_exception = error.to_string();
                status.error_count = 1;
            }
            let (shown, origin) = match origin {
                Some(origin) if origin.home == Home::Everywhere => (String::new(), origin.path),
                Some(origin) => (database.clone(), origin.path),
                None => (database.clone(), origin_of(definition.as_ref(), &database, &name)),
            };
            let full_name = format!("{database}.{name}");
            rows.push(DictionariesRow {
                full_name,
                database: shown,
                name,
                state,
                definition,
                status,
                origin,
            });
        }
    }
    rows
}

/// The origin of a dictionary of DDL: its UUID, as in ClickHouse, or its name if it has none.
fn origin_of(definition: Option<&Definition>, database: &str, name: &str) -> String {
    let uuid = definition.and_then(Definition::uuid_text);
    uuid.unwrap_or_else(|| format!("{database}.{name}"))
}

/// The type of a key; a tuple for a complex key.
fn key_type(definition: &Definition) -> String {
    let types: Vec<String> =
        definition.structure.key_columns().iter().map(|key| key.data_type.to_string()).collect();
    match definition.structure.key {
        Key::Simple { .. } => types.concat(),
        Key::Complex(_) => format!("({})", types.join(", ")),
    }
}

/// ClickHouse's columns in ClickHouse's order, then counters of our own.
fn dictionaries(rows: &[DictionariesRow]) -> Result<RecordBatch> {
    let text = |f: &dyn Fn(&DictionariesRow) -> String| texts(rows.iter().map(f));
    let list = |f: &dyn Fn(&Definition) -> Vec<String>| {
        lists(rows.iter().map(|row| row.definition.as_ref().map(f).unwrap_or_default()))
    };
    let count = |f: &dyn Fn(&Status) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| f(&row.status))))
    };
    let rate = |f: &dyn Fn(&Status) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| f(&row.status))))
    };
    let time = |f: &dyn Fn(&Status) -> u64| -> ArrayRef {
        Arc::new(TimestampSecondArray::from_iter_values(rows.iter().map(|row| f(&row.status) as i64)))
    };
    let keys = |d: &Definition| d.structure.key_columns();
    let attributes = |d: &Definition| d.named_attributes().to_vec();
    batch(vec![
        ("database", text(&|row| row.database.clone())),
        ("name", text(&|row| row.name.clone())),
        ("uuid", uuids(rows)?),
        ("status", text(&|row| row.state.to_owned())),
        ("origin", text(&|row| row.origin.clone())),
        ("type", text(&|row| row.status.layout_type.to_owned())),
        ("key.names", list(&|d| keys(d).into_iter().map(|key| key.name).collect())),
        ("key.types", list(&|d| keys(d).into_iter().map(|key| key.data_type.to_string()).collect())),
        ("attribute.names", list(&|d| attributes(d).into_iter().map(|a| a.name).collect())),
        ("attribute.types", list(&|d| attributes(d).into_iter().map(|a| a.data_type.to_string()).collect())),
        ("bytes_allocated", count(&|s| s.bytes_allocated)),
        ("hierarchical_index_bytes_allocated", count(&|s| s.hierarchy_bytes)),
        ("query_count", count(&|s| s.keys_requested)),
        ("hit_rate", rate(&|s| s.hit_rate)),
        ("found_rate", rate(&|s| s.found_rate)),
        ("element_count", count(&|s| s.element_count)),
        ("load_factor", rate(&|s| s.load_factor)),
        ("source", text(&|row| row.status.source.clone())),
        ("lifetime_min", count(&|s| s.lifetime_min_seconds)),
        ("lifetime_max", count(&|s| s.lifetime_max_seconds)),
        ("loading_start_time", time(&|s| s.loading_start_time)),
        ("last_successful_update_time", time(&|s| s.last_successful_update_time)),
        ("error_count", count(&|s| s.error_count)),
        ("loading_duration", Arc::new(Float32Array::from_iter_values(rows.iter().map(|_| 0.0)))),
        ("last_exception", text(&|row| row.status.last_exception.clone())),
        ("comment", text(&|row| row.definition.as_ref().map(|d| d.comment.clone()).unwrap_or_default())),
        ("key", text(&|row| row.definition.as_ref().map(key_type).unwrap_or_default())),
        ("capacity", count(&|s| s.capacity)),
        ("index_bytes", count(&|s| s.index_bytes)),
        ("memory_bytes", count(&|s| s.memory_bytes)),
        ("block_bytes", count(&|s| s.block_bytes)),
        ("buffer_bytes", count(&|s| s.buffer_bytes)),
        ("keys_requested", count(&|s| s.keys_requested)),
        ("keys_hit", count(&|s| s.keys_hit)),
        ("keys_expired", count(&|s| s.keys_expired)),
        ("keys_missed", count(&|s| s.keys_missed)),
        ("keys_negative", count(&|s| s.keys_negative)),
        ("keys_joined", count(&|s| s.keys_joined)),
        ("keys_updated", count(&|s| s.keys_updated)),
        ("rows_bad", count(&|s| s.rows_bad)),
        ("entries_dropped", count(&|s| s.entries_dropped)),
        ("entries_too_large", count(&|s| s.entries_too_large)),
        ("index_evictions", count(&|s| s.index_evictions)),
        ("index_displaced", count(&|s| s.index_displaced)),
        ("index_displaced_at_start", count(&|s| s.index_displaced_at_start)),
        ("hits_memory", count(&|s| s.hits_memory)),
        ("hits_block", count(&|s| s.hits_block)),
        ("hits_buffer", count(&|s| s.hits_buffer)),
        ("hits_flash", count(&|s| s.hits_flash)),
        ("flash_block_reads", count(&|s| s.flash_block_reads)),
        ("flash_blocks_corrupt", count(&|s| s.flash_blocks_corrupt)),
        ("flash_bytes_read", count(&|s| s.flash_bytes_read)),
        ("flash_bytes_written", count(&|s| s.flash_bytes_written)),
        ("bytes_put", count(&|s| s.bytes_put)),
        ("write_amplification", rate(&|s| s.write_amplification)),
        ("compression_ratio", rate(&|s| s.compression_ratio)),
        ("compression_versions", count(&|s| s.compression_versions)),
        ("compression_trainings", count(&|s| s.compression_trainings)),
        ("compression_memory", count(&|s| s.compression_bytes)),
        ("lookups", count(&|s| s.lookups.count())),
        ("lookup_us_p50", count(&|s| s.lookups.quantile_us(0.5))),
        ("lookup_us_p99", count(&|s| s.lookups.quantile_us(0.99))),
        ("source_requests", count(&|s| s.source_requests)),
        ("source_keys", count(&|s| s.source_keys)),
        ("source_rows", count(&|s| s.source_rows)),
        ("source_rows_uninvited", count(&|s| s.source_rows_uninvited)),
        ("source_errors", count(&|s| s.source_errors)),
    ])
}
