//! Dictionaries over programs.

mod common;

use arrow::array::{ArrayRef, Int32Array};
use common::*;
use granary_dict::{DictError, Dictionary, Environment};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

fn try_open(folder: &Path, columns: &str, key: &str, source: &str) -> Result<Dictionary, DictError> {
    let sql = format!(
        "CREATE DICTIONARY e ({columns}) PRIMARY KEY {key} SOURCE(EXECUTABLE({source})) \
         LAYOUT(COMPLEX_KEY_DIRECT())"
    );
    let sql = if key == "id" { sql.replace("COMPLEX_KEY_", "") } else { sql };
    let environment = Environment { allow_executable: true, ..Environment::new(folder) };
    Dictionary::open(definition(&sql), &environment)
}

fn open(columns: &str, key: &str, source: &str) -> Dictionary {
    try_open(&std::env::temp_dir(), columns, key, source).unwrap()
}

/// Echoes each key and ten times the key, in each format.
#[test]
fn speaks_each_format() {
    let binary = "python3 -c \"import sys,struct; d=sys.stdin.buffer.read(); \
        [sys.stdout.buffer.write(struct.pack(''<QQ'',k,k*10)) for (k,) in struct.iter_unpack(''<Q'',d)]\"";
    let json = "python3 -c \"import sys,json; \
        [print(json.dumps({''v'':json.loads(l)[''id'']*10,''id'':json.loads(l)[''id'']})) for l in sys.stdin]\"";
    let awk = |separator: &str| format!("awk -F{separator} ''{{print $1 \"{separator}\" $1 * 10}}''");
    for (format, command) in [
        ("TabSeparated", awk("\\\\t").replace("-F\\\\t ", "")),
        ("CSV", awk(",")),
        ("JSONEachRow", json.to_string()),
        ("RowBinary", binary.to_string()),
    ] {
        let source = format!("COMMAND '{command}' FORMAT {format}");
        let dictionary = open("id UInt64, v UInt64", "id", &source);
        let answer = dictionary.get(&[0], &u64s([7, 1, 7, 30])).unwrap_or_else(|e| panic!("{format}: {e}"));
        assert_eq!(values(&answer.columns[0]), [70, 10, 70, 300], "{format}");
        assert_eq!(answer.found.true_count(), 4);
    }
}

#[test]
fn the_seed_s_source_answers_any_key() {
    let source = "COMMAND 'sed ''s/$/\\ttesttesttest/''' FORMAT TabSeparated";
    let dictionary = open("id UInt64, s String", "id", source);
    let keys: Vec<u64> = (0..300_000).collect();
    let answer = dictionary.get(&[0], &u64s(keys)).unwrap();
    assert_eq!(answer.found.true_count(), 300_000);
    assert!(texts(&answer.columns[0]).iter().all(|text| text == "testtesttest"));
    assert_eq!(dictionary.status().source_requests, 5);
}

/// Answers far more than a pipe holds before the keys, far more than a pipe holds, are read; and the other
/// way round.
#[test]
fn big_batches_do_not_lock_up() {
    let columns = "id UInt64, k String, v String";
    let keys: Vec<ArrayRef> = vec![
        Arc::new(arrow::array::UInt64Array::from_iter_values(0..60_000)),
        Arc::new(arrow::array::StringArray::from_iter_values((0..60_000).map(|i| format!("{i:050}")))),
    ];
    let eager =
        "awk '' BEGIN { for (i = 0; i < 50000; i++) printf \"%d\\t%050d\\t%050d\\n\", i, i, i } { }''";
    let patient = "python3 -c \"import sys; k=sys.stdin.read().splitlines(); \
        print(chr(10).join(l + chr(9) + l.split(chr(9))[1] for l in k))\"";
    for (command, count) in [(eager, 50_000), (patient, 60_000)] {
        let source = format!(
            "COMMAND '{}' FORMAT TabSeparated",
            command.replace("\\t", "\\\\t").replace("\\n", "\\\\n")
        );
        let dictionary = open(columns, "id, k", &source);
        let answer = dictionary.get(&[0], &keys).unwrap();
        assert_eq!(answer.found.true_count(), count);
        assert_eq!(texts(&answer.columns[0])[41], format!("{:050}", 41));
    }
}

#[test]
fn a_program_need_not_read_its_keys() {
    let source = "COMMAND 'printf ''5\\t50\\n''' FORMAT TabSeparated";
    let dictionary = open("id UInt64, v UInt64", "id", source);
    let answer = dictionary.get(&[0], &u64s(0..60_000)).unwrap();
    assert_eq!((answer.found.true_count(), values(&answer.columns[0])[5]), (1, 50));
}

#[test]
fn a_failing_program_is_an_error_with_what_it_said() {
    let dictionary = open("id UInt64, v UInt64", "id", "COMMAND 'cat; echo no luck >&2; exit 3' FORMAT TSV");
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert_eq!(error.code(), 302);
    assert!(error.message().ends_with("exited with status 3: no luck"), "{error}");
    let dictionary = open("id UInt64, v UInt64", "id", "COMMAND 'kill -9 $$' FORMAT TSV");
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.message().contains("signal: 9"), "{error}");
    let dictionary = open("id UInt64, v UInt64", "id", "COMMAND 'cat' FORMAT TSV");
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.message().contains("TabSeparated row 1: Expected 2 columns, got 1"), "{error}");
}

#[test]
fn implicit_keys_and_chunk_headers() {
    let columns = "a Int32, b String, v UInt64, w String";
    let keys: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![-1, 2])), strings(&["x\ty", "z"])];
    let command = "read n; while read -r line; do printf ''%s\\t%s\\n'' \"$n\" \"done\"; done";
    let source = format!(
        "COMMAND '{}' FORMAT TabSeparated IMPLICIT_KEY 1 SEND_CHUNK_HEADER 1",
        command.replace("\\t", "\\\\t").replace("\\n", "\\\\n")
    );
    let dictionary = open(columns, "(a, b)", &source);
    let answer = dictionary.get(&[0, 1], &keys).unwrap();
    assert_eq!(values(&answer.columns[0]), [2, 2]);
    assert_eq!(texts(&answer.columns[1]), ["done", "done"]);
    let short = open(columns, "(a, b)", "COMMAND 'printf ''1\\tx\\n''' FORMAT TSV IMPLICIT_KEY 1");
    let error = short.get(&[0], &keys).unwrap_err();
    assert!(error.message().contains("answered 1 rows to 2 keys"), "{error}");
}

/// ClickHouse takes no line of a program's for a header.
#[test]
fn answers_that_are_names_of_columns_are_rows() {
    let keys: Vec<ArrayRef> = vec![strings(&["a", "b"])];
    for format in ["TSV", "CSV"] {
        let source = format!("COMMAND 'echo w; echo x' FORMAT {format} IMPLICIT_KEY 1");
        let dictionary = open("k String, w String", "k", &source);
        assert_eq!(texts(&dictionary.get(&[0], &keys).unwrap().columns[0]), ["w", "x"], "{format}");
    }
    let dictionary = open("k String, w String", "k", "COMMAND 'echo k,w; echo a,y' FORMAT CSV");
    let names: Vec<ArrayRef> = vec![strings(&["k", "a"])];
    assert_eq!(texts(&dictionary.get(&[0], &names).unwrap().columns[0]), ["w", "y"]);
}

#[test]
fn programs_need_permission_and_direct_ones_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let sql = "CREATE DICTIONARY e (id UInt64) PRIMARY KEY id SOURCE(EXECUTABLE(COMMAND 'cat' FORMAT TSV)) LAYOUT(DIRECT)";
    let refused = Dictionary::open(definition(sql), &Environment::new(folder.path())).err().unwrap();
    assert_eq!((refused.code(), refused.name()), (482, "DICTIONARY_ACCESS_DENIED"));
    let scripts = folder.path().join("user_scripts");
    std::fs::create_dir(&scripts).unwrap();
    let script = scripts.join("times.sh");
    std::fs::write(&script, "#!/bin/sh\nwhile read -r id; do printf '%s\\t%s\\n' $id $((id * $1)); done\n")
        .unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let columns = "id UInt64, v UInt64";
    let source = |command: &str| format!("COMMAND '{command}' FORMAT TSV EXECUTE_DIRECT 1");
    let dictionary = try_open(folder.path(), columns, "id", &source("times.sh 3")).unwrap();
    assert_eq!(values(&dictionary.get(&[0], &u64s([5])).unwrap().columns[0]), [15]);
    for outside in ["../times.sh", "/bin/cat"] {
        assert_eq!(try_open(folder.path(), columns, "id", &source(outside)).err().unwrap().code(), 481);
    }
}

#[test]
fn a_program_that_hangs_is_killed_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let sql = "CREATE DICTIONARY e (id UInt64) PRIMARY KEY id SOURCE(EXECUTABLE(COMMAND 'sleep 1000; cat' FORMAT TSV)) \
               LAYOUT(CACHE(SIZE_IN_CELLS 8 QUERY_WAIT_TIMEOUT_MILLISECONDS 1000)) LIFETIME(1)";
    let environment = Environment { allow_executable: true, ..Environment::new(folder.path()) };
    let dictionary = Dictionary::open(definition(sql), &environment).unwrap();
    let said = gives_up(&dictionary);
    assert!(said.contains("was killed after 2000 ms"), "{said}");
}
