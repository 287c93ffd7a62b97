//! Statements of docs/clickhouse.md about Granary that no other test covers.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs statements on the dictionaries of a folder; returns the cells of each answer in a list.
#[track_caller]
fn run(folder: &Path, statements: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_granary"))
        .args(["local", "--allow-executable", "--path"])
        .arg(folder)
        .args(["-q", statements])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{statements}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

/// The dictionary `d`, whose values are printed by an awk program.
fn create(program: &str, value: &str, lifetime: &str, layout: &str) -> String {
    let program = program.replace('\\', "\\\\").replace('\'', "\\'");
    format!(
        "CREATE DICTIONARY d (id UInt64, v {value}) PRIMARY KEY id \
         SOURCE(EXECUTABLE(COMMAND 'awk \\'{program}\\'' FORMAT 'TabSeparated')) \
         LIFETIME({lifetime}) LAYOUT({layout});"
    )
}

const TEN_TIMES: &str = r#"{print $1 "\t" $1 * 10}"#;

/// A key may evict another one with its tag from the index, which is then asked for again.
const LOST: u64 = 10;

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

#[test]
fn a_record_of_any_length_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let long = r#"{printf "%d\t%" $1 "s|\n", $1, ""}"#;
    let layout = "SSD_CACHE(PATH 'd' FILE_SIZE 67108864 WRITE_BUFFER_SIZE 65536 MEMORY_CACHE_SIZE 0)";
    let wrong = "SELECT countIf(length(dictGet('d', 'v', number + 1)) != number + 2) FROM numbers(5000);";
    let sql = create(long, "String", "MIN 1000 MAX 2000", layout);
    assert_eq!(run(folder.path(), &format!("{sql}{wrong}{wrong}")), ["0", "0"]);
    let counters = "SELECT hits_flash, source_keys, flash_blocks_corrupt FROM system.dictionaries";
    let seen = run(folder.path(), &format!("{wrong}{counters}"));
    let [wrong, on_flash, asked, corrupt] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!((wrong.as_str(), corrupt.as_str()), ("0", "0"));
    assert!(number(on_flash) >= 5000 - LOST && number(asked) <= LOST, "{seen:?}");
}

#[test]
fn a_file_written_over_and_over_gives_no_value_of_another_key() {
    let folder = tempfile::tempdir().unwrap();
    let layout = "SSD_CACHE(PATH 'd' FILE_SIZE 16384 MAX_PARTITIONS_COUNT 4 WRITE_BUFFER_SIZE 4096 MEMORY_CACHE_SIZE 0)";
    let mut sql = create(TEN_TIMES, "UInt64", "MIN 1 MAX 2", layout);
    let mut looked_up = 0;
    for i in 0..60 {
        let (first, count) = (i * 7919 % 9000, 500 + i * 1237 % 8500);
        looked_up += count;
        sql += &format!(
            "SELECT countIf(dictGet('d', 'v', number + {first}) != (number + {first}) * 10) FROM numbers({count});"
        );
    }
    sql += "SELECT keys_requested, flash_bytes_written > 3 * 65536 FROM system.dictionaries";
    let mut answers = run(folder.path(), &sql);
    assert_eq!(answers.split_off(60), [looked_up.to_string().as_str(), "1"]);
    assert!(answers.iter().all(|wrong| wrong == "0"), "{answers:?}");
}

#[test]
fn max_stored_keys_bounds_keys_that_the_source_lacks_too() {
    let folder = tempfile::tempdir().unwrap();
    let odd = r#"$1 % 2 {print $1 "\t" $1 * 10}"#;
    let layout = "SSD_CACHE(PATH 'd' FILE_SIZE 16777216 WRITE_BUFFER_SIZE 65536 MAX_STORED_KEYS 1024)";
    let sql = create(odd, "UInt64", "MIN 1000 MAX 2000", layout)
        + "SELECT sum(ignore(dictGet('d', 'v', number))) FROM numbers(50000);
           SELECT sum(ignore(dictGet('d', 'v', number * 2))) FROM numbers(50000);
           SELECT sum(ignore(dictGet('d', 'v', number * 2))) FROM numbers(50000);
           SELECT element_count, capacity, index_bytes, bytes_allocated - buffer_bytes FROM system.dictionaries";
    let answers = run(folder.path(), &sql);
    let [.., entries, capacity, index_bytes, bytes] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(capacity, "1024");
    assert!((1..=1024).contains(&number(entries)), "{entries} entries");
    assert!(number(index_bytes) < 64 << 10, "{index_bytes} bytes");
    // The index, and as many entries in the RAM tier, in chunks, where those that wait for the device stay longer;
    // without the bound it is 2.8 MB. Write buffers do not count: with a slow device many of them wait, whatever the
    // bound on entries.
    assert!(number(bytes) < 512 << 10, "{bytes} bytes");
}

#[test]
fn a_flipped_bit_is_a_counted_miss() {
    let folder = tempfile::tempdir().unwrap();
    let layout = "SSD_CACHE(PATH 'd' FILE_SIZE 4194304 WRITE_BUFFER_SIZE 65536)";
    let wrong = "SELECT countIf(dictGet('d', 'v', number) != number * 10) FROM numbers(20000);";
    run(folder.path(), &(create(TEN_TIMES, "UInt64", "MIN 1000 MAX 2000", layout) + wrong));

    let path = folder.path().join("user_files/d.bin");
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    // Segments have 16 blocks, the last few of which are summaries.
    for block in (0..1024).filter(|block| block % 16 == 2) {
        let mut byte = [0];
        file.seek(SeekFrom::Start(block * 4096 + 1000)).unwrap();
        file.read_exact(&mut byte).unwrap();
        file.seek(SeekFrom::Start(block * 4096 + 1000)).unwrap();
        file.write_all(&[byte[0] ^ 4]).unwrap();
    }
    file.sync_all().unwrap();

    let counters = "SELECT flash_blocks_corrupt, source_keys FROM system.dictionaries;";
    let answers = run(folder.path(), &format!("{wrong}{counters}{wrong}{counters}"));
    let [first, corrupt, asked, second, _, asked_again] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!((first.as_str(), second.as_str()), ("0", "0"), "no answer is wrong, and no query fails");
    assert!(number(corrupt) > 0 && (1..20000).contains(&number(asked)), "{answers:?}");
    assert!(number(asked_again) - number(asked) <= LOST, "what was asked for is there again: {answers:?}");
}

#[test]
fn rows_that_nobody_asked_for_are_ignored_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let too_much = r#"{print $1 "\t" $1 * 10; print $1 + 1000 "\t1"}"#;
    let counter = "SELECT source_rows_uninvited, element_count FROM system.dictionaries;";
    let query = "SELECT sum(dictGet('d', 'v', number)), sum(dictHas('d', number)) FROM numbers(10);";
    let sql = create(too_much, "UInt64", "MIN 1000 MAX 2000", "CACHE(SIZE_IN_CELLS 10000)") + query + counter;
    let seen = run(folder.path(), &format!("{sql}SELECT count() FROM d WHERE id >= 1000; DROP DICTIONARY d"));
    assert_eq!(seen, ["450", "10", "10", "10", "0"]);
    // Each of the two functions asks a DIRECT dictionary, and both return.
    let sql = create(too_much, "UInt64", "", "DIRECT()").replace("LIFETIME()", "") + query + counter;
    assert_eq!(run(folder.path(), &sql), ["450", "10", "20", "0"]);
}

#[test]
fn drop_dictionary_removes_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let layout = "SSD_CACHE(PATH 'd' FILE_SIZE 4194304 WRITE_BUFFER_SIZE 65536)";
    let files = || std::fs::read_dir(folder.path().join("user_files")).unwrap().count();
    run(
        folder.path(),
        &(create(TEN_TIMES, "UInt64", "MIN 1000 MAX 2000", layout) + "SELECT dictGet('d', 'v', 1)"),
    );
    assert!(files() > 0);
    run(folder.path(), "DROP DICTIONARY d");
    assert_eq!(files(), 0);
}
