//! `granary local`, run as by a person or a script.

#[path = "../../cache/tests/common/room.rs"]
mod room;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn granary(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_granary"));
    command.arg("local").args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    granary(arguments).output().unwrap()
}

fn run_with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = granary(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn answer(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn failure(output: &Output) -> (i32, String) {
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A dictionary over a program that knows odd keys and logs each request's keys.
fn odd_names(name: &str, layout: &str, log: &Path) -> String {
    format!(
        "CREATE DICTIONARY {name} (id UInt64, name String DEFAULT 'none') PRIMARY KEY id \
         SOURCE(EXECUTABLE(COMMAND 'tee -a {} | awk \\'$1 % 2 {{print $1 \"\\\\tn\" $1}}\\'' FORMAT 'TabSeparated')) \
         LIFETIME(MIN 10000 MAX 20000) LAYOUT({layout})",
        log.display()
    )
}

const SSD: &str = "SSD_CACHE(PATH 'names' FILE_SIZE 4194304 WRITE_BUFFER_SIZE 65536)";

#[test]
fn queries_and_statements_answer_in_order() {
    assert_eq!(
        answer(run(&["-q", "SELECT 1, 'a\tb'; SELECT 2 FORMAT CSV", "-q", "SELECT 3"])),
        "1\ta\\tb\n2\n3\n"
    );
    assert_eq!(answer(run_with_input(&[], "SELECT 1;\n-- nothing\nSELECT 2")), "1\n2\n");
    assert_eq!(
        answer(run(&["--format", "JSONEachRow", "-q", "SELECT 1 AS a, 1 AS a"])),
        "{\"a\":1,\"a\":1}\n"
    );
}

#[test]
fn rows_of_an_insert_may_come_from_standard_input() {
    let statements = [
        "-q",
        "CREATE TABLE t (a UInt8, b String) ENGINE = Memory; INSERT INTO t FORMAT CSV",
        "-q",
        "SELECT sum(a), max(b) FROM t; INSERT INTO t FORMAT CSV",
        "-q",
        "SELECT count() FROM t",
    ];
    assert_eq!(answer(run_with_input(&statements, "1,x\n2,y\n")), "3\ty\n2\n", "they are read once");
}

#[test]
fn a_reader_that_goes_early_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let demo = |output: Stdio| {
        Command::new(env!("CARGO_BIN_EXE_granary"))
            .args(["demo", "--users", "100", "--events", "1000", "--path"])
            .arg(folder.path().join("demo"))
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut child = demo(Stdio::piped());
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(failure(&output).0, 0, "{}", failure(&output).1);
    // A full device.
    let output = demo(std::fs::File::create("/dev/full").unwrap().into()).wait_with_output().unwrap();
    let (status, error) = failure(&output);
    assert_eq!(status, 1);
    assert!(error.contains("cannot write to standard output") && !error.contains("panicked"), "{error}");
}

/// The statement whose reader is gone ends, those behind it run, and nothing is left behind.
#[test]
fn statements_behind_one_whose_reader_is_gone_are_run() {
    let folder = tempfile::tempdir().unwrap();
    let (temporary, data) = (folder.path().join("tmp"), folder.path().join("data"));
    std::fs::create_dir(&temporary).unwrap();
    let local = |queries: &str, standard_error: Stdio, keeps: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_granary"));
        command.args(["local", "--time", "-q", queries]).env("TMPDIR", &temporary);
        if keeps {
            command.arg("--path").arg(&data);
        }
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(standard_error).spawn().unwrap();
        drop(child.stdout.take());
        child.wait_with_output().unwrap()
    };
    let endless = "SELECT * FROM numbers(1000000000000)";
    let creates = format!("{endless}; CREATE DATABASE behind");
    let output = local(&creates, Stdio::piped(), true);
    assert_eq!(failure(&output).0, 0, "{}", failure(&output).1);
    let path = data.to_str().unwrap();
    assert_eq!(answer(run(&["--path", path, "-q", "EXISTS DATABASE behind"])), "1\n");
    assert_eq!(failure(&local(endless, Stdio::piped(), false)).0, 0);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "the temporary folder is removed");
    // Nor does it matter that nobody can be told how long they took, or what is wrong with one.
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(local(endless, full(), false).status.code(), Some(0));
    assert_eq!(local("SELECT nosuch", full(), false).status.code(), Some(47));
}

#[test]
fn errors_have_codes_words_and_a_status() {
    let (status, error) = failure(&run(&["-q", "SELECT dictGet('d.x', 'a', 1)"]));
    assert_eq!(status, 36);
    assert_eq!(error, "Code: 36. DB::Exception: Dictionary (`d.x`) not found. (BAD_ARGUMENTS)\n");
    let output = run(&["-q", "SELECT 1; SELEC 2; SELECT 3"]);
    assert_eq!(failure(&output).0, 62);
    assert_eq!(output.stdout, b"1\n", "what comes before the error is answered, what comes after is not run");
    assert_eq!(failure(&run(&["-q", "SELECT * FROM 'nosuch.csv'"])).0, 76);
    let (status, error) = failure(&run(&["SELECT 1"]));
    assert_eq!(status, 107);
    assert!(error.contains("There is no file SELECT 1; a query is given with -q"), "{error}");
    assert_eq!(failure(&run(&["-q", "SELECT 1 FORMAT Nosuch"])).0, 73);
}

#[test]
fn files_and_standard_input_are_tables() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("users.csv");
    std::fs::write(&csv, "id,name\n1,ann\n2,\"b,ob\"\n").unwrap();
    let csv = csv.to_str().unwrap();
    assert_eq!(answer(run(&["-q", "SELECT name, id + 1 FROM users ORDER BY id", csv])), "ann\t2\nb,ob\t3\n");
    assert_eq!(answer(run(&["-q", "SELECT count() FROM table", csv])), "2\n");
    let exist = "EXISTS users; EXISTS TABLE default.table; EXISTS nosuch; EXISTS nosuch.users; EXISTS DICTIONARY users";
    assert_eq!(answer(run(&["-q", exist, csv])), "1\n1\n0\n0\n0\n");
    assert_eq!(answer(run(&["-q", &format!("SELECT max(id) FROM '{csv}'")])), "2\n");
    assert_eq!(answer(run(&["-q", &format!("SELECT max(id) FROM file('{csv}', 'CSVWithNames')")])), "2\n");

    let bare = folder.path().join("bare.csv");
    std::fs::write(&bare, "1,x\n2,y\n").unwrap();
    assert_eq!(
        answer(run(&["-q", "SELECT c2, c1 FROM bare ORDER BY c1", bare.to_str().unwrap()])),
        "x\t1\ny\t2\n"
    );

    let piped = run_with_input(
        &["--input-format", "CSVWithNames", "-q", "SELECT sum(a), count() FROM table"],
        "a\n1\n2\n",
    );
    assert_eq!(answer(piped), "3\t2\n");

    let parquet = folder.path().join("numbers.parquet");
    std::fs::write(
        &parquet,
        run(&["-q", "SELECT number, toString(number) AS s FROM numbers(70000) FORMAT Parquet"]).stdout,
    )
    .unwrap();
    let query = "SELECT count(), sum(number), max(s), toTypeName(max(number)) FROM numbers";
    assert_eq!(answer(run(&["-q", query, parquet.to_str().unwrap()])), "70000\t2449965000\t9999\tUInt64\n");
}

#[test]
fn standard_input_is_read_only_when_table_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // An input that never ends, and is left open.
    let mut child = granary(&["-q", "SELECT 1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .env("TMPDIR", folder.path())
        .spawn()
        .unwrap();
    let held = child.stdin.take();
    assert_eq!(answer(child.wait_with_output().unwrap()), "1\n");
    drop(held);

    let junk = run_with_input(&["-q", "SELECT 2"], "\u{1}\t\"\n\0");
    assert_eq!(answer(junk), "2\n");
    let twice = "SELECT count() FROM table; SELECT sum(a) FROM `table` WHERE a IN (SELECT a FROM table)";
    let piped = run_with_input(
        &["--input-format", "CSVWithNames", "-q", twice, "-q", "DESCRIBE TABLE table"],
        "a\n1\n2\n",
    );
    assert_eq!(answer(piped).lines().take(2).collect::<Vec<_>>(), ["2", "3"]);

    // However a query ends, no file of the piped input remains.
    let mut child = granary(&[
        "-q",
        "SELECT count() FROM table; SELECT 'ready'; SELECT sum(number) FROM numbers(100000000000000)",
    ])
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .env("TMPDIR", folder.path())
    .spawn()
    .unwrap();
    child.stdin.take().unwrap().write_all(b"1\n2\n").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!([lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap()], ["2", "ready"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("stdin")), "{left:?}");
    assert_eq!(failure(&run(&["-q", "SELECT * FROM table"])).0, 60, "an empty input is no table");
}

#[test]
fn time_prints_a_line_a_statement() {
    let output = run(&["--time", "-q", "SELECT 1; SELECT 2"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    let seconds: Vec<f64> = errors.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(seconds.len(), 2);
    assert!(seconds.iter().all(|&seconds| (0.0..60.0).contains(&seconds)));
}

#[test]
fn programs_run_only_when_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let query =
        format!("{}; SELECT dictGet('d', 'name', 5)", odd_names("d", "CACHE(SIZE_IN_CELLS 100)", &log));
    let (status, error) = failure(&run(&["-q", &query]));
    assert_ne!(status, 0);
    assert!(error.contains("DICTIONARY_ACCESS_DENIED"), "{error}");
    assert!(!log.exists(), "the program must not run");
    assert_eq!(answer(run(&["--allow-executable", "-q", &query])), "n5\n");
}

#[test]
fn dictionaries_are_there_and_warm_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("data"), folder.path().join("log"));
    let arguments = ["--allow-executable", "--path", path.to_str().unwrap(), "-q"];
    let with = |query: &str| run(&[&arguments[..], &[query]].concat());

    let query = "SELECT count(), countIf(dictGet('names', 'name', number) = 'none') FROM numbers(2000)";
    assert_eq!(answer(with(&format!("{}; {query}", odd_names("names", SSD, &log)))), "2000\t1000\n");
    let asked = || std::fs::read_to_string(&log).unwrap().lines().count();
    assert_eq!(asked(), 2000, "each key is asked for once, those that are not there too");

    assert_eq!(answer(with(query)), "2000\t1000\n");
    // A key may evict another one with its tag from the index, which is then asked for again.
    assert!(asked() <= 2010, "the next start answers from the SSD: {} keys asked", asked());
    let counters = "SELECT status, hits_flash + hits_buffer + hits_memory >= 1990, source_keys < 10 FROM system.dictionaries";
    assert_eq!(answer(with(&format!("{query} FORMAT Null; {counters}"))), "LOADED\t1\t1\n");
    assert!(path.join("metadata/default/names.sql").exists());

    // As warm in another database.
    let moved = "CREATE DATABASE other; RENAME DICTIONARY names TO other.names";
    assert_eq!(answer(with(moved)), "");
    assert!(path.join("metadata/other/names.sql").exists());
    assert_eq!(answer(with(&query.replace("'names'", "'other.names'"))), "2000\t1000\n");
    assert!(asked() <= 2020, "the file came along: {} keys asked", asked());

    assert_eq!(answer(with("DROP DICTIONARY other.names; SHOW DICTIONARIES FROM other")), "");
    assert_eq!(failure(&with("SELECT dictGet('other.names', 'name', 1)")).0, 36);
}

#[test]
fn one_bad_dictionary_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("data"), folder.path().join("log"));
    let arguments = ["--allow-executable", "--path", path.to_str().unwrap(), "-q"];
    let with = |query: &str| run(&[&arguments[..], &[query]].concat());
    answer(with(&odd_names("good", SSD, &log)));
    std::fs::write(path.join("metadata/default/bad.sql"), "CREATE DICTIONARY bad (").unwrap();

    assert_eq!(answer(with("SELECT dictGet('good', 'name', 3)")), "n3\n");
    let states = "SELECT name, status, last_exception != '' FROM system.dictionaries ORDER BY name";
    assert_eq!(answer(with(states)), "bad\tFAILED\t1\ngood\tLOADED\t0\n");
    assert_eq!(failure(&with("SELECT dictGet('bad', 'name', 3)")).0, 62);
    assert_eq!(answer(with("DROP DICTIONARY bad; SHOW DICTIONARIES")), "good\n");
}

#[test]
fn a_folder_has_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut first = granary(&["--path", path]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut statements, answers) = (first.stdin.take().unwrap(), first.stdout.take().unwrap());
    let mut answers = BufReader::new(answers).lines();
    statements.write_all(b"SELECT 1;\n").unwrap();
    assert_eq!(answers.next().unwrap().unwrap(), "1");
    // It holds the folder while it waits for statements.
    let (status, error) = failure(&run(&["--path", path, "-q", "SELECT 1"]));
    assert_eq!(status, 76);
    assert!(error.contains("another granary is working in this folder"), "{error}");
    drop(statements);
    assert!(first.wait().unwrap().success());
    assert_eq!(answer(run(&["--path", path, "-q", "SELECT 1"])), "1\n");
}

/// Sends a signal by name.
fn send(signal: &str, child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

/// Sends a signal by name, and returns the output and the exit status.
fn stopped_by(signal: &str, mut child: Child) -> (String, Option<i32>) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.next().unwrap().unwrap();
    send(signal, &child);
    (ready, child.wait().unwrap().code())
}

#[test]
fn signals_leave_no_temporary_folder_and_close_dictionaries() {
    let temporary = tempfile::tempdir().unwrap();
    let log = temporary.path().join("log");
    let long = "SELECT sum(number) FROM numbers(100000000000000)";
    let fill = "SELECT countIf(dictGet('names', 'name', number) != 'none') FROM numbers(2000)";
    // Whoever runs the tests may have SIGHUP ignored, which programs inherit.
    let start_with = |hangup: &str, arguments: &[&str], statements: &str| {
        Command::new("env")
            .args([hangup, env!("CARGO_BIN_EXE_granary"), "local", "--allow-executable"])
            .args(arguments)
            .args(["-q", statements])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .env("TMPDIR", temporary.path())
            .spawn()
            .unwrap()
    };
    let start =
        |arguments: &[&str], statements: &str| start_with("--default-signal=HUP", arguments, statements);
    let statements = format!("{}; {fill}; {long}", odd_names("names", SSD, &log));
    for (signal, status) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        assert_eq!(stopped_by(signal, start(&[], &statements)), ("1000".to_owned(), Some(status)));
    }
    // As under `nohup`.
    let mut ignoring = start_with("--ignore-signal=HUP", &[], &statements);
    let mut lines = BufReader::new(ignoring.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "1000");
    send("HUP", &ignoring);
    let state = std::fs::read_to_string(format!("/proc/{}/status", ignoring.id())).unwrap();
    let ignored = state.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 1, 1, "{state}");
    send("TERM", &ignoring);
    assert_eq!(ignoring.wait().unwrap().code(), Some(143));
    // Also while it waits for statements.
    let mut idle = granary(&[]);
    let mut idle =
        idle.stdin(Stdio::piped()).stdout(Stdio::piped()).env("TMPDIR", temporary.path()).spawn().unwrap();
    let mut statements_in = idle.stdin.take().unwrap();
    statements_in.write_all(b"SELECT 'ready';\n").unwrap();
    assert_eq!(stopped_by("TERM", idle), ("ready".to_owned(), Some(143)));
    std::fs::remove_file(&log).unwrap();
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "nothing is left behind");

    let path = temporary.path().join("data");
    let path = ["--path", path.to_str().unwrap()];
    assert_eq!(stopped_by("TERM", start(&path, &statements)), ("1000".to_owned(), Some(143)));
    let asked = || std::fs::read_to_string(&log).unwrap().lines().count();
    assert_eq!(asked(), 2000);
    assert_eq!(answer(run(&[&["--allow-executable"], &path[..], &["-q", fill]].concat())), "1000\n");
    assert!(asked() <= 2010, "the next start answers from the SSD: {} keys asked", asked());
}

/// The text between a line of three backticks followed by this word, and the next such line.
fn example(page: &str, language: &str) -> String {
    let (_, behind) = page.split_once(&format!("```{language}\n")).unwrap();
    behind.split_once("```").unwrap().0.to_owned()
}

#[test]
fn dictionaries_of_xml_files_are_created_and_stay_warm() {
    let folder = tempfile::tempdir().unwrap();
    let (data, database) = (folder.path().join("data"), folder.path().join("app.db"));
    let sqlite = rusqlite::Connection::open(&database).unwrap();
    sqlite
        .execute_batch(
            "CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO cities VALUES (42, 'Oulu')",
        )
        .unwrap();
    let readme = include_str!("../../../README.md");
    let xml = example(readme, "xml").replace("/srv/app.db", database.to_str().unwrap());
    let file = folder.path().join("cities_dictionary.xml");
    std::fs::write(&file, &xml).unwrap();
    let pattern = folder.path().join("*_dictionary.xml");
    let with = |query: &str| {
        let arguments =
            ["--path", data.to_str().unwrap(), "--dictionaries", pattern.to_str().unwrap(), "-q", query];
        run(&arguments)
    };
    let query = "SELECT dictGet('cities', 'name', 42), dictGet('cities', 'name', 43)";
    assert_eq!(answer(with(query)), "Oulu\tunknown\n");
    sqlite.execute_batch("UPDATE cities SET name = 'Turku'").unwrap();
    assert_eq!(answer(with(query)), "Oulu\tunknown\n", "unchanged, and so still warm");
    std::fs::write(&file, xml.replace("unknown", "none")).unwrap();
    assert_eq!(answer(with(query)), "Turku\tnone\n", "changed, and so made anew");
    assert!(answer(with("SHOW CREATE DICTIONARY cities")).contains("DEFAULT \\'none\\'"));

    let named = xml
        .replace("<name>cities</name>", "<name>geo.cities</name>")
        .replace("<path>cities</path>", "<path>geo</path>");
    std::fs::write(&file, named.replace("dictionaries>", "clickhouse>")).unwrap();
    assert_eq!(answer(with("SELECT dictGet('geo.cities', 'name', 42)")), "Turku\n");

    std::fs::write(&file, xml.replace("<null_value>unknown</null_value>", "")).unwrap();
    let output = with(query);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(answer(output), "Turku\tnone\n", "what was there before works");
    for word in ["cities_dictionary.xml", "Dictionary cities", "<null_value>"] {
        assert!(error.contains(word), "{word} is in {error}");
    }
    std::fs::write(&file, "<dictionaries><dictionary>").unwrap();
    assert_eq!(failure(&with(query)).0, 62);
    assert_eq!(failure(&run(&["--dictionaries", "/nowhere/*.xml", "-q", "SELECT 1"])).0, 76);
}

#[test]
fn help_teaches() {
    let help = answer(granary(&["--help"]).output().unwrap());
    for word in ["SSD_CACHE", "--path", "dictGet", "PrettyCompact", "--allow-executable", "--dictionaries"] {
        assert!(help.contains(word), "{word} is in the help");
    }
}

/// Writes a file and returns the output of a query over it.
fn over(folder: &Path, name: &str, bytes: impl AsRef<[u8]>, query: &str) -> Output {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    run(&["-q", query, path.to_str().unwrap()])
}

#[test]
fn tab_separated_has_escapes_and_no_quotes() {
    let folder = tempfile::tempdir().unwrap();
    let over = |name, text: &str, query| answer(over(folder.path(), name, text, query));
    let all = "SELECT * FROM table";
    let types = "SELECT * FROM table LIMIT 1 FORMAT TabSeparatedWithNamesAndTypes";
    // The expected output was written by ClickHouse 26.9.
    assert_eq!(over("a.tsv", "\"a\t\\N\\t\\\\x\nb\"\t\\N\n", all), "\"a\t\\t\\\\x\nb\"\t\\N\n");
    assert_eq!(over("b.tsv", "x\n\ny\n", all), "x\n\ny\n");
    assert_eq!(over("c.tsv", "1\t\n2\tx\n", all), "1\t\n2\tx\n");
    assert_eq!(over("d.tsv", "a\\\nb\tc\\x41\\qd\n", all), "a\\nb\tcA\\\\qd\n");
    assert_eq!(over("e.tsv", "a\tb\nc\td\n", all), "a\tb\nc\td\n", "texts alone are no header");
    assert_eq!(
        over("f.tsv", "a\tb\tc\n1\t\\N\ttrue\n", types),
        "a\tb\tc\nNullable(Int64)\tNullable(String)\tNullable(Bool)\n1\t\\N\ttrue\n"
    );
    let (status, error) = failure(&self::over(folder.path(), "bad.tsv", "1\t2\n3\n", all));
    assert_eq!(status, 6);
    assert!(error.contains("bad.tsv") && error.contains("Row 2"), "{error}");

    // Granary reads whatever it writes.
    let odd = "SELECT number AS n, concat('\\t\\n\\\\\\'\\\"', toString(number), '\\0\\r') AS s, if(number % 2 = 0, NULL, 'x') AS e, \
               '' AS empty, toDate('2024-01-02') AS d, toDateTime(number) AS t FROM numbers(5000)";
    for format in ["TabSeparated", "TabSeparatedWithNames", "CSV", "CSVWithNames"] {
        let written = answer(run(&["-q", &format!("{odd} FORMAT {format}")]));
        let path = folder.path().join("written");
        std::fs::write(&path, &written).unwrap();
        let read = format!("SELECT * FROM file('{}', '{format}') FORMAT {format}", path.display());
        assert!(answer(run(&["-q", &read])) == written, "{format} comes back");
    }

    // Large enough to be split into pieces, with rows in their order.
    let rows = "SELECT number, concat('line\\n', toString(number)) FROM numbers(1500000)";
    let large = folder.path().join("large.tsv");
    std::fs::write(&large, run(&["-q", rows]).stdout).unwrap();
    assert!(large.metadata().unwrap().len() > 16 << 20);
    let query = "SELECT count(), sum(c1), sum(length(c2)) FROM large";
    let expected = answer(run(&[
        "-q",
        "SELECT count(), sum(number), sum(length(concat('line\\n', toString(number)))) FROM numbers(1500000)",
    ]));
    assert_eq!(answer(run(&["-q", query, large.to_str().unwrap()])), expected);
    let same = run(&["-q", "SELECT * FROM large", large.to_str().unwrap()]);
    assert!(same.stdout == std::fs::read(&large).unwrap(), "the order is the file's");
}

#[test]
fn csv_types_are_those_that_clickhouse_guesses() {
    let folder = tempfile::tempdir().unwrap();
    let over = |name, text: &str, query| answer(over(folder.path(), name, text, query));
    let types = "SELECT * FROM table FORMAT TabSeparatedWithNamesAndTypes";
    assert_eq!(
        over("a.csv", "true,1,2024-01-02,007\nfalse,18446744073709551615,2024-01-03,\\N\n", types),
        "c1\tc2\tc3\tc4\nNullable(Bool)\tNullable(UInt64)\tNullable(Date)\tNullable(Int64)\n\
         true\t1\t2024-01-02\t7\nfalse\t18446744073709551615\t2024-01-03\t\\N\n"
    );
    assert_eq!(over("b.csv", "1,\"\"\n,x\n3,\n", "SELECT * FROM table"), "1\t\n\\N\tx\n3\t\\N\n");
    assert_eq!(
        over("c.csv", "\"1\",2024-01-02 03:04:05.5\n", types),
        "c1\tc2\nNullable(String)\tNullable(DateTime64(9))\n1\t2024-01-02 03:04:05.500000000\n"
    );
    // A quoted line break does not end a row, wherever the file is split.
    let rows = "SELECT number, concat('line\\n', toString(number)) FROM numbers(1000000) FORMAT CSV";
    let large = folder.path().join("large.csv");
    std::fs::write(&large, run(&["-q", rows]).stdout).unwrap();
    let query = "SELECT count(), max(c1), max(length(c2)) FROM large";
    assert_eq!(answer(run(&["-q", query, large.to_str().unwrap()])), "1000000\t999999\t11\n");
}

#[test]
fn packed_files_are_read_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in
        [("users.csv", "id,name\n1,ann\n2,bob\n"), ("users.tsv", "id\tname\n1\tann\n2\tbob\n")]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        assert!(Command::new("gzip").arg(&path).status().unwrap().success());
        let packed = format!("{}.gz", path.display());
        let query = format!("SELECT name FROM users WHERE id = 2; SELECT count() FROM '{packed}'");
        assert_eq!(answer(run(&["-q", &query, &packed])), "bob\n2\n");
    }
}

/// Without a folder nothing is there at the next start: RAM tiers are the process's own, and a kill leaves none behind.
#[test]
fn without_a_folder_no_file_holds_what_is_in_ram() {
    let folder = tempfile::tempdir().unwrap();
    for (keeps, arguments) in [(false, &[][..]), (true, &["--path", folder.path().to_str().unwrap()])] {
        let mut child = granary(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let made = "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id LIFETIME(10)
                    SOURCE(CLICKHOUSE(QUERY 'SELECT 1 AS id, ''one'' AS v'))
                    LAYOUT(SSD_CACHE(PATH 'd' FILE_SIZE 1048576));";
        writeln!(input, "{made}\nSELECT dictHas('d', toUInt64(1));").unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "1\n");
        let mapped = std::fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
        if room::has_room(64 << 20) || !keeps {
            assert_eq!(mapped.contains("/dev/shm/granary-"), keeps, "{arguments:?}");
        }
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}
