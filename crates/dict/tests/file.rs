//! Dictionaries over files of rows.

mod common;

use arrow::array::{ArrayRef, Int64Array};
use common::*;
use granary_dict::{DictError, Dictionary, Environment};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

fn open(
    folder: &Path,
    columns: &str,
    key: &str,
    source: &str,
    layout: &str,
) -> Result<Dictionary, DictError> {
    let lifetime = if layout.contains("DIRECT") { "" } else { "LIFETIME(1000)" };
    let sql = format!(
        "CREATE DICTIONARY f ({columns}) PRIMARY KEY {key} SOURCE(FILE({source})) LAYOUT({layout}) {lifetime}"
    );
    let files = folder.join("user_files");
    let _ = std::fs::create_dir(&files);
    Dictionary::open(definition(&sql), &Environment { user_files: Some(files), ..Environment::new(folder) })
}

/// An empty text is a text; there is no empty number.
#[test]
fn empty_fields_of_csv() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("user_files")).unwrap();
    std::fs::write(folder.path().join("user_files/rows"), "1,,5\n2,\"\",\n3,x,\\N\n4,\\N,7\n").unwrap();
    let columns = "id UInt64, s String DEFAULT 'def', n UInt64 DEFAULT 9";
    let dictionary =
        open(folder.path(), columns, "id", "PATH 'rows' FORMAT CSV", "CACHE(SIZE_IN_CELLS 100)").unwrap();
    let answer = dictionary.get(&[0, 1], &u64s([1, 2, 3, 4])).unwrap();
    assert_eq!(texts(&answer.columns[0]), ["", "", "x", "def"]);
    assert_eq!(values(&answer.columns[1]), [5, 9, 9, 7]);
}

#[test]
fn an_answer_has_so_many_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("user_files");
    std::fs::create_dir(&files).unwrap();
    let rows: String = (1..=1000).map(|id| format!("{id},{id:0100}\n")).collect();
    std::fs::write(files.join("rows"), rows).unwrap();
    let sql = "CREATE DICTIONARY f (id UInt64, v String) PRIMARY KEY id SOURCE(FILE(PATH 'rows' FORMAT CSV)) LAYOUT(DIRECT())";
    let environment = Environment { user_files: Some(files), ..Environment::new(folder.path()) };
    an_answer_read_whole_is_bounded(
        |environment| Dictionary::open(definition(sql), environment).unwrap(),
        environment,
    );
}

/// Opening a pipe waits for a writer.
#[test]
fn what_is_no_regular_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("user_files")).unwrap();
    let pipe = folder.path().join("user_files/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::create_dir(folder.path().join("user_files/folder")).unwrap();
    for path in ["pipe", "folder"] {
        let source = format!("PATH '{path}' FORMAT CSV");
        let dictionary = open(folder.path(), "id UInt64", "id", &source, "DIRECT()").unwrap();
        let error = dictionary.has(&u64s([1])).unwrap_err();
        assert!(error.message().contains("it is no regular file"), "{path}: {error}");
    }
    let sql = format!(
        "CREATE DICTIONARY s (id UInt64) PRIMARY KEY id SOURCE(SQLITE(PATH '{}' TABLE 't')) LAYOUT(DIRECT())",
        pipe.display()
    );
    let dictionary = Dictionary::open(definition(&sql), &Environment::new(folder.path())).unwrap();
    let error = dictionary.has(&u64s([1])).unwrap_err();
    assert!(error.message().contains("it is no regular file"), "{error}");
}

/// Samba and NFS servers have leases on the files that their clients keep: opening one waits until it is given back.
#[test]
fn a_file_with_a_lease_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("user_files")).unwrap();
    let path = folder.path().join("user_files/rows");
    std::fs::write(&path, "1,10\n").unwrap();
    let holder = "import fcntl, os, signal, sys\n\
                  signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])\n\
                  file = os.open(sys.argv[1], os.O_RDWR)\n\
                  fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
                  print('held', flush=True)\n\
                  signal.sigwait([signal.SIGIO])\n\
                  fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)\n";
    let mut holder =
        Command::new("python3").args(["-c", holder]).arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 5];
    holder.stdout.take().unwrap().read_exact(&mut said).unwrap();
    let dictionary =
        open(folder.path(), "id UInt64, v UInt64", "id", "PATH 'rows' FORMAT CSV", "DIRECT()").unwrap();
    assert_eq!(values(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]), [10]);
    assert!(holder.wait().unwrap().success());
}

#[test]
fn finds_keys_in_each_format() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("user_files")).unwrap();
    let binary: Vec<u8> = (1..=3u64)
        .flat_map(|id| [id.to_le_bytes().to_vec(), vec![2, b'v', b'0' + id as u8]].concat())
        .collect();
    for (format, bytes) in [
        ("CSV", b"1,v1\n2,\"v2\"\n3,v3".to_vec()),
        ("TabSeparated", b"1\tv1\n2\tv2\n3\tv3\n".to_vec()),
        (
            "JSONEachRow",
            b"{\"id\":1,\"v\":\"v1\"}\n{\"v\":\"v2\",\"id\":\"2\"}\n{\"id\":3,\"v\":\"v3\"}".to_vec(),
        ),
        ("RowBinary", binary),
    ] {
        std::fs::write(folder.path().join("user_files/rows"), &bytes).unwrap();
        let source = format!("PATH 'rows' FORMAT {format}");
        let layout = "CACHE(SIZE_IN_CELLS 100)";
        let dictionary =
            open(folder.path(), "id UInt64, v String DEFAULT '-'", "id", &source, layout).unwrap();
        let answer = dictionary.get(&[0], &u64s([3, 9, 1])).unwrap();
        assert_eq!(texts(&answer.columns[0]), ["v3", "-", "v1"], "{format}");
        let status = dictionary.status();
        assert_eq!(
            (status.source_rows, status.source_rows_uninvited, status.element_count),
            (2, 0, 3),
            "{format}"
        );
        let direct = open(folder.path(), "id UInt64, v String", "id", &source, "DIRECT()").unwrap();
        assert_eq!(all_rows(&direct).unwrap().num_rows(), 3, "{format}");
    }
}

#[test]
fn composite_keys_nulls_and_a_file_that_changes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("user_files")).unwrap();
    let path = folder.path().join("user_files/pairs.tsv");
    std::fs::write(&path, "1\tx\t10\n\\N\tx\t11\n1\ty\t12\n1\tx\t13\n").unwrap();
    let columns = "a Nullable(Int64), b String, v UInt64";
    let dictionary =
        open(folder.path(), columns, "a, b", "PATH 'pairs.tsv' FORMAT TSV", "COMPLEX_KEY_DIRECT()").unwrap();
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(2)]));
    let keys = [a, strings(&["x", "x", "x"])];
    // Of rows with the same key the last counts.
    assert_eq!(values(&dictionary.get(&[0], &keys).unwrap().columns[0]), [13, 11, 0]);
    std::fs::write(&path, "2\tx\t20\n").unwrap();
    assert_eq!(values(&dictionary.get(&[0], &keys).unwrap().columns[0]), [0, 0, 20]);
}

#[test]
fn errors_name_the_file_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let columns = "id UInt64, v UInt64";
    let layout = "CACHE(SIZE_IN_CELLS 100)";
    let dictionary = open(folder.path(), columns, "id", "PATH 'rows.csv' FORMAT CSV", layout).unwrap();
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.message().contains("rows.csv: No such file"), "{error}");
    std::fs::write(folder.path().join("user_files/rows.csv"), "1,10\n2,x\n").unwrap();
    let direct = open(folder.path(), columns, "id", "PATH 'rows.csv' FORMAT CSV", "DIRECT()").unwrap();
    let error = direct.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.message().contains("rows.csv: CSV row 2: Column v"), "{error}");
    assert_eq!(dictionary.status().element_count, 0);
    for outside in ["../rows.csv", "/etc/passwd"] {
        let source = format!("PATH '{outside}' FORMAT CSV");
        assert_eq!(open(folder.path(), columns, "id", &source, "DIRECT()").err().unwrap().code(), 481);
    }
    // Longer than what is read for each request; sparse, so that it takes no room.
    let long = std::fs::File::create(folder.path().join("user_files/long")).unwrap();
    long.set_len(granary_dict::limits::SOURCE_FILE_BYTES_MAX + 1).unwrap();
    let direct = open(folder.path(), columns, "id", "PATH 'long' FORMAT CSV", "DIRECT()").unwrap();
    assert!(direct.get(&[0], &u64s([1])).unwrap_err().message().contains("put it into a Parquet file"));
}
