//! Dictionaries over Parquet files: `SOURCE(FILE(.. FORMAT Parquet))`.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Date32Array, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use granary_sql::format::{self, Format};
use granary_sql::{Options, Session};
use tempfile::TempDir;
use tokio::runtime::Runtime;

struct Granary {
    folder: TempDir,
    session: Session,
    runtime: Runtime,
}

impl Granary {
    fn new() -> Granary {
        let folder = TempDir::new().unwrap();
        let files = folder.path().join("user_files");
        fs::create_dir(&files).unwrap();
        let path = Some(folder.path().to_owned());
        let session = Session::open(Options { path, user_files: Some(files), ..Options::default() }).unwrap();
        Granary { folder, session, runtime: Runtime::new().unwrap() }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("user_files").join(name)
    }

    fn answer(&self, sql: &str) -> Result<String, granary_sql::Error> {
        let mut out = Vec::new();
        self.runtime.block_on(async {
            for statement in granary_sql::split(sql)? {
                let mut output = self.session.execute(&statement).await?;
                let mut writer = format::open(Format::TabSeparated, output.schema.clone(), &mut out)?;
                while let Some(batch) = output.next().await {
                    writer.write(&batch?)?;
                }
                writer.finish(output.progress().read())?;
            }
            Ok::<(), granary_sql::Error>(())
        })?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn create(&self, name: &str, columns: &str, key: &str, path: &str, layout: &str) {
        let sql = format!(
            "CREATE DICTIONARY {name} ({columns}) PRIMARY KEY {key} SOURCE(FILE(PATH '{path}' FORMAT 'Parquet')) \
             LAYOUT({layout})"
        );
        self.answer(&sql).unwrap();
    }
}

/// Writes columns in row groups of `group` rows, each in pages of a tenth of that.
fn write_columns(path: &Path, columns: &[(&str, ArrayRef)], group: usize) {
    let batch = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_data_page_row_count_limit(group / 10)
        .set_write_batch_size(group / 10)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_dictionary_enabled(false)
        .build();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn texts(rows: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.map(|row| format!("v{row}"))))
}

#[test]
fn rows_are_found_by_keys_of_every_kind() {
    let granary = Granary::new();
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values((0..10_000).map(|row| row * 2 - 100)));
    let numbers: ArrayRef =
        Arc::new(Int64Array::from_iter((0..10_000).map(|row| (row % 3 > 0).then_some(row))));
    let v = texts(0..10_000);
    write_columns(
        &granary.file("sorted.parquet"),
        &[("v", v.clone()), ("id", ids.clone()), ("n", numbers)],
        1000,
    );
    let columns = "id UInt64, v String DEFAULT 'none', n Nullable(UInt32), absent String DEFAULT 'a'";
    granary.create("by_id", columns, "id", "sorted.parquet", "DIRECT()");
    let found = granary.answer(
        "SELECT number, dictGet('by_id', ('v', 'n', 'absent'), number) FROM numbers(19896, 5) ORDER BY number; \
         SELECT dictGet('by_id', 'v', toUInt64(18446744073709551615)), dictHas('by_id', toUInt64(0)); \
         SELECT count() FROM numbers(20000) WHERE dictHas('by_id', number)",
    );
    let rows = "19896\t('v9998',9998,'a')\n19897\t('none',NULL,'a')\n19898\t('v9999',NULL,'a')\n\
                19899\t('none',NULL,'a')\n19900\t('none',NULL,'a')\n";
    assert_eq!(found.unwrap(), format!("{rows}none\t1\n9950\n"));
    // By a text, unsorted; of rows with the same key the last counts.
    let keys: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..10_000).map(|row| format!("k{}", row % 9_999))));
    write_columns(&granary.file("texts.parquet"), &[("k", keys), ("id", ids), ("v", v)], 1000);
    granary.create("by_text", "k String, v String", "k", "texts.parquet", "COMPLEX_KEY_DIRECT()");
    let sql = "SELECT dictGet('by_text', 'v', k) FROM (SELECT arrayJoin(['k0', 'k77', 'k9998', 'q']) AS k)";
    assert_eq!(granary.answer(sql).unwrap(), "v9999\nv77\nv9998\n\n");
    granary.create(
        "by_both",
        "k String, id Int64, v String",
        "k, id",
        "texts.parquet",
        "COMPLEX_KEY_DIRECT()",
    );
    let sql = "SELECT dictGet('by_both', 'v', ('k0', toInt64(-100))), dictGet('by_both', 'v', ('k0', toInt64(19898))), \
               dictHas('by_both', ('k0', toInt64(7)))";
    assert_eq!(granary.answer(sql).unwrap(), "v0\tv9999\t0\n");
    // Loaded whole, too.
    let sql = "CREATE DICTIONARY held (k String, v String) PRIMARY KEY k SOURCE(FILE(PATH 'texts.parquet' FORMAT \
               Parquet)) LAYOUT(COMPLEX_KEY_HASHED()) LIFETIME(0); SELECT dictGet('held', 'v', 'k77'), count() FROM held";
    assert_eq!(granary.answer(sql).unwrap(), "v77\t9999\n");
}

/// Damage where a key cannot be is not noticed; where all rows are read, it is an error that names the file.
#[test]
fn what_cannot_have_the_keys_is_not_read() {
    let granary = Granary::new();
    let path = granary.file("sorted.parquet");
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
    write_columns(&path, &[("id", ids), ("v", texts(0..10_000))], 1000);
    granary.create("d", "id UInt64, v String", "id", "sorted.parquet", "DIRECT()");
    assert_eq!(granary.answer("SELECT count() FROM d").unwrap(), "10000\n");
    let mut bytes = fs::read(&path).unwrap();
    // The first tenth of the file lies in the first row groups.
    let damaged = 100..bytes.len() / 10;
    bytes[damaged].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let sql = "SELECT dictGet('d', 'v', number) FROM numbers(9000, 2) ORDER BY number";
    assert_eq!(granary.answer(sql).unwrap(), "v9000\nv9001\n");
    for sql in ["SELECT count() FROM d", "SELECT dictGet('d', 'v', toUInt64(5))"] {
        let error = granary.answer(sql).unwrap_err();
        assert!(error.message.contains("sorted.parquet"), "{error}");
    }
}

#[test]
fn a_file_may_be_replaced_and_must_be_there_and_parquet() {
    let granary = Granary::new();
    let path = granary.file("f.parquet");
    granary.create("d", "id UInt64, v String", "id", "f.parquet", "DIRECT()");
    let sql = "SELECT dictGet('d', 'v', toUInt64(5))";
    assert!(granary.answer(sql).unwrap_err().message.contains("f.parquet: No such file"));
    let write = |first: i64| {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        write_columns(&path, &[("id", ids), ("v", texts(first..first + 100))], 50);
    };
    write(0);
    assert_eq!(granary.answer(sql).unwrap(), "v5\n");
    write(1000);
    assert_eq!(granary.answer(sql).unwrap(), "v1005\n");
    fs::write(&path, "no Parquet at all").unwrap();
    assert!(granary.answer(sql).unwrap_err().message.contains("f.parquet: "));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    write_columns(&path, &[("other", ids)], 50);
    assert!(granary.answer(sql).unwrap_err().message.contains("Column id of the key is missing"));
}

#[test]
fn a_date_that_the_type_does_not_have_is_refused() {
    let granary = Granary::new();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![0, -7154]));
    write_columns(&granary.file("d.parquet"), &[("id", ids), ("day", dates)], 10);
    granary.create("d", "id UInt64, day Date", "id", "d.parquet", "DIRECT()");
    let error = granary.answer("SELECT dictGet('d', 'day', toUInt64(2))").unwrap_err();
    assert!(error.message.contains("Value -7154 is out of the range of Date"), "{}", error.message);
}
