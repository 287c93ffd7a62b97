//! REGEXP_TREE: what texts get from the regular expressions that are found in them.

mod common;

use arrow::array::{ArrayRef, AsArray};
use common::*;
use granary_dict::{DictError, Dictionary, Environment, limits, parse_create, parse_xml};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

const FILE: &str = "FILE(PATH 'rows' FORMAT TabSeparated)";
const YAML: &str = "YAMLRegExpTree(PATH 'rows')";

/// A dictionary over a file.
fn open(folder: &Path, attributes: &str, source: &str, clauses: &str, file: &str) -> Dictionary {
    let files = folder.join("user_files");
    let _ = std::fs::create_dir(&files);
    std::fs::write(files.join("rows"), file).unwrap();
    let sql = format!(
        "CREATE DICTIONARY d (regexp String, {attributes}) PRIMARY KEY regexp SOURCE({source}) LIFETIME(0) \
         LAYOUT(REGEXP_TREE()) {clauses}"
    );
    let definition = definition(&sql);
    assert_eq!(parse_create(&definition.to_sql()).unwrap().definition, definition, "it is printed as it is");
    Dictionary::open(definition, &Environment { user_files: Some(files), ..Environment::new(folder) })
        .unwrap()
}

fn first(dictionary: &Dictionary, keys: &[&str]) -> Result<Vec<String>, DictError> {
    Ok(texts(&dictionary.get(&[0], &[strings(keys)])?.columns[0]))
}

fn all(dictionary: &Dictionary, key: &str, most: usize) -> Vec<String> {
    let columns = dictionary.get_all(&[0], &[strings(&[key])], most).unwrap();
    texts(columns[0].as_list::<i32>().values())
}

/// All columns of all rows, as texts.
fn shown(dictionary: &Dictionary) -> Vec<String> {
    let rows = dictionary.resident().unwrap().map(|batch| batch.unwrap());
    let cell = |column: &ArrayRef, row| arrow::util::display::array_value_to_string(column, row).unwrap();
    let lines = rows.flat_map(|rows| {
        let line = |row| rows.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(" ");
        (0..rows.num_rows()).map(line).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
fn the_innermost_counts_and_what_it_lies_in_fills_in() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "4\t1\tc\t['v']\t['abc']\n1\t0\ta\t['v','w']\t['a','of a']\n2\t1\tb\t['v']\t['ab']\n\
                3\t0\tc\t['w','v','w']\t['no','c','of c']\n5\t2\tc\t['v','other']\t['abc2','x']\n";
    let dictionary = open(folder.path(), "v String DEFAULT '-', w String DEFAULT '?'", FILE, "", rows);
    let keys = ["a", "ab", "abc", "ac", "c", "b", "bc", ""];
    assert_eq!(first(&dictionary, &keys).unwrap(), ["a", "ab", "abc2", "abc", "c", "-", "c", "-"]);
    let answer = dictionary.get(&[1, 0, 1], &[strings(&["ab", "bc", "x"])]).unwrap();
    assert_eq!(texts(&answer.columns[0]), ["of a", "of c", "?"]);
    assert_eq!(texts(&answer.columns[1]), ["ab", "c", "-"]);
    assert_eq!(&answer.columns[0], &answer.columns[2]);
    assert_eq!(found(&answer.found), [true, true, false]);
    assert_eq!(all(&dictionary, "abc", usize::MAX), ["abc2", "ab", "a", "abc", "c"]);
    assert_eq!(all(&dictionary, "abc", 2), ["abc2", "ab"]);
    assert!(all(&dictionary, "abc", 0).is_empty() && all(&dictionary, "x", 9).is_empty());
    assert_eq!(
        shown(&dictionary),
        [
            "1 0 a [w, v] [of a, a]",
            "2 1 b [v] [ab]",
            "3 0 c [v, w] [c, of c]",
            "4 1 c [v] [abc]",
            "5 2 c [v] [abc2]"
        ]
    );
    let status = dictionary.status();
    assert_eq!((status.layout_type, status.element_count, status.keys_negative), ("RegExpTree", 5, 5));
    assert!(status.bytes_allocated > 500, "{status:?}");
}

/// Rows that cannot be arranged are a failed load as any other: it is told, and the source is left alone for a while.
#[test]
fn a_load_of_a_wrong_expression_is_a_failure_and_is_not_tried_again_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("user_files");
    std::fs::create_dir(&files).unwrap();
    let write = |regexp: &str| {
        std::fs::write(files.join("rows"), format!("1\t0\t{regexp}\t['v']\t['{}']\n", regexp.len())).unwrap();
    };
    write("x");
    let (environment, clock) = manual_environment(folder.path());
    let sql = format!(
        "CREATE DICTIONARY d (regexp String, v String) PRIMARY KEY regexp SOURCE({FILE}) \
         LIFETIME(MIN 100 MAX 100) LAYOUT(REGEXP_TREE())"
    );
    let environment = Environment { user_files: Some(files.clone()), ..environment };
    let dictionary = Arc::new(Dictionary::open(definition(&sql), &environment).unwrap());
    dictionary.watch();
    assert_eq!(first(&dictionary, &["x"]).unwrap(), ["1"]);
    let loaded = dictionary.status();
    write("x(");
    let wait_for = |errors| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while dictionary.status().error_count != errors {
            assert!(Instant::now() < deadline, "{:?}", dictionary.status());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    clock.fetch_add(100, SeqCst);
    wait_for(1);
    // Longer than the watcher's pulse.
    std::thread::sleep(Duration::from_millis(2500));
    let status = dictionary.status();
    assert_eq!((status.error_count, status.source_requests), (1, loaded.source_requests + 1));
    assert!(status.last_exception.contains("x("), "{}", status.last_exception);
    assert_eq!(status.last_successful_update_time, loaded.last_successful_update_time);
    assert_eq!(first(&dictionary, &["x"]).unwrap(), ["1"], "the rows before");
    write("x+");
    clock.fetch_add(700, SeqCst);
    wait_for(0);
    assert_eq!(first(&dictionary, &["x"]).unwrap(), ["2"]);
}

#[test]
fn each_attribute_is_found_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "1\t0\tx(\\\\d*)\t['v','n']\t['x','$1']\n2\t0\tx7\t['n']\t['70']\n";
    let dictionary = open(folder.path(), "v String, n UInt8 DEFAULT 9", FILE, "", rows);
    let answer = dictionary.get(&[0, 1], &[strings(&["x5", "x", "x7", "y"])]).unwrap();
    assert_eq!(found(&answer.found), [true, false, true, false]);
    assert_eq!(found(&answer.found_each[0]), [true, true, true, false]);
    assert_eq!(found(&answer.found_each[1]), [true, false, true, false]);
    let numbers = answer.columns[1].as_primitive::<arrow::datatypes::UInt8Type>();
    assert_eq!(numbers.values(), &[5, 9, 7, 9], "a group that is empty ends the search");
    let error = dictionary.get(&[1], &[strings(&["x999"])]).unwrap_err();
    assert_eq!(error.code(), 489);
    assert!(error.message().starts_with("Cannot parse 999 for data type UInt8, Reason is: "), "{error}");
    assert_eq!(dictionary.has(&[strings(&["x"])]).unwrap_err().code(), 1);
    assert_eq!(dictionary.get(&[2], &[strings(&["x"])]).unwrap_err().code(), 36);
    assert_eq!(dictionary.get(&[0], &u64s([1])).unwrap_err().code(), 53);
    let null: ArrayRef = arrow::array::new_null_array(&arrow::datatypes::DataType::Utf8, 1);
    assert_eq!(texts(&dictionary.get(&[0], &[null]).unwrap().columns[0]), [""]);
}

/// Many nodes at once find the same as each by itself.
#[test]
fn many_are_found_as_each_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let letters = |random: &mut fastrand::Rng, length: usize| -> String {
        (0..length).map(|_| char::from(*random.choice(b"abcABC-").unwrap())).collect()
    };
    let mut nodes: Vec<(u64, String)> = Vec::new();
    let mut rows = String::new();
    for id in 1..=400u64 {
        let parent = if id > 20 && random.bool() { random.u64(1..id) } else { 0 };
        let text = {
            let length = random.usize(1..5);
            letters(&mut random, length)
        };
        let other = letters(&mut random, 2);
        let regexp = match random.u8(0..5) {
            0 => format!("(?i){text}"),
            1 => format!("^{text}"),
            2 => format!("{text}.*{other}"),
            3 => format!("(?:{text}|{other})+"),
            _ => text,
        };
        writeln!(rows, "{id}\t{parent}\t{regexp}\t['v']\t['{id}']").unwrap();
        nodes.push((parent, regexp));
    }
    let dictionary = open(folder.path(), "v String", FILE, "", &rows);
    let matches: Vec<regex_automata::meta::Regex> =
        nodes.iter().map(|(_, regexp)| regex_automata::meta::Regex::new(regexp).unwrap()).collect();
    for _ in 0..300 {
        let length = random.usize(0..30);
        let text = letters(&mut random, length);
        let mut wanted: Vec<u64> = (1..=400)
            .filter(|&id| {
                let mut at = id;
                while at > 0 && matches[at as usize - 1].is_match(&text) {
                    at = nodes[at as usize - 1].0;
                }
                at == 0
            })
            .collect();
        let mut found: Vec<u64> =
            all(&dictionary, &text, usize::MAX).iter().map(|id| id.parse().unwrap()).collect();
        let one = first(&dictionary, &[&text]).unwrap().remove(0);
        assert_eq!(one, found.first().map_or(String::new(), u64::to_string), "{text}");
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{text}");
    }
}

#[test]
fn settings_say_how_expressions_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "1\t0\tA.b\t['v']\t['yes']\n";
    for (clauses, yes) in [
        ("", [true, false, false]),
        ("SETTINGS(regexp_dict_flag_case_insensitive = 1)", [true, true, false]),
        ("SETTINGS(regexp_dict_flag_dotall = true, regexp_dict_allow_hyperscan = 0)", [true, false, true]),
    ] {
        let dictionary = open(folder.path(), "v String", FILE, clauses, rows);
        let found = first(&dictionary, &["A-b", "a-B", "A\nb"]).unwrap();
        assert_eq!(found.iter().map(|v| v == "yes").collect::<Vec<_>>(), yes, "{clauses}");
    }
    let xml = "<clickhouse><dictionary><name>d</name><structure><key><attribute><name>regexp</name><type>String</type>
        </attribute></key><attribute><name>v</name><type>String</type><null_value></null_value></attribute></structure>
        <source><yamlregexptree><path>rows</path></yamlregexptree></source><layout><regexp_tree/></layout>
        <settings><regexp_dict_flag_dotall>1</regexp_dict_flag_dotall></settings><lifetime>0</lifetime>
        </dictionary></clickhouse>";
    let same =
        "CREATE DICTIONARY d (regexp String, v String) PRIMARY KEY regexp SOURCE(YAMLRegExpTree(PATH 'rows'))
        LAYOUT(regexp_tree) LIFETIME(0) SETTINGS(regexp_dict_flag_dotall = 1)";
    assert_eq!(parse_xml(xml).unwrap(), [definition(same)]);
}

#[test]
fn rules_of_yaml_lie_in_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = "# Browsers\n- regexp: 'Linux/(\\d+[\\.\\d]*).+tlinux'\n  v: 'TencentOS'\n  n: '\\1'\n\n\
                - regexp: \"(\\\\d+)/webkit\"\n  v: Android $1\n  comment: {not: [read, {at: all}]}\n  n: ~\n\
                \x20 versions:\n    - regexp: 33/webkit\n      n: 13\n    - {regexp: '3[12]/webkit', n: 12}\n";
    let dictionary = open(folder.path(), "v String, n Nullable(UInt64)", YAML, "", yaml);
    let keys = ["Linux/101.tlinux", "33/webkit", "31/webkit", "30/webkit", "-"];
    assert_eq!(
        first(&dictionary, &keys).unwrap(),
        ["TencentOS", "Android 33", "Android 31", "Android 30", ""]
    );
    let numbers = dictionary.get(&[1], &[strings(&keys)]).unwrap().columns.remove(0);
    let numbers = numbers.as_primitive::<arrow::datatypes::UInt64Type>();
    assert_eq!(numbers.iter().collect::<Vec<_>>(), [Some(101), Some(13), Some(12), None, None]);
    assert_eq!(shown(&dictionary).len(), 4);
    assert!(shown(&dictionary)[3].starts_with("4 2 3[12]/webkit"), "{:?}", shown(&dictionary));
}

#[test]
fn yaml_that_is_no_list_of_rules_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let deep = "- regexp: a\n  in:\n".lines().map(String::from).collect::<Vec<_>>();
    let mut nested = String::new();
    for depth in 0..=limits::YAML_NESTING_MAX {
        let indent = " ".repeat(2 * depth);
        deep.iter().for_each(|line| writeln!(nested, "{indent}{line}").unwrap());
    }
    for (yaml, code, what) in [
        ("", 318, "must be a list of rules"),
        ("regexp: a", 318, "must be a list of rules"),
        ("- a", 318, "a rule must be a map"),
        ("- v: x", 318, "must contain `regexp`"),
        ("- regexp: [a]", 318, "`regexp` must be a text"),
        ("- regexp: a\n  v: {a: b}", 318, "`v` must be a text"),
        ("- regexp: &a x\n  v: *a", 318, "`v` must be a text"),
        ("- regexp: a\n  other: *a", 585, ""),
        ("- [a, b]", 318, "a rule must be a map"),
        ("- regexp: \"a", 585, "Failed to parse YAML"),
        ("- regexp: a\n  - b", 585, "Failed to parse YAML"),
        ("- regexp: (", 489, "Regular expression 1 cannot be read: unclosed group: ("),
        (&nested, 318, "deep"),
    ] {
        let dictionary = open(folder.path(), "v String", YAML, "", yaml);
        let error = first(&dictionary, &["x"]).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(what), "{error}");
    }
}

#[test]
fn files_are_those_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("user_files")).unwrap();
    std::fs::write(folder.path().join("secret.yaml"), "- regexp: a\n").unwrap();
    let environment =
        Environment { user_files: Some(folder.path().join("user_files")), ..Environment::new(folder.path()) };
    for (path, code) in [("../secret.yaml", 481), ("/etc/passwd", 481), ("none.yaml", 76)] {
        let sql = format!(
            "CREATE DICTIONARY d (regexp String, v String) PRIMARY KEY regexp SOURCE(YAMLRegExpTree(PATH '{path}')) \
             LAYOUT(REGEXP_TREE) LIFETIME(0)"
        );
        let opened = Dictionary::open(definition(&sql), &environment);
        let error = opened.and_then(|dictionary| first(&dictionary, &["a"])).unwrap_err();
        assert_eq!(error.code(), code, "{path}: {error}");
    }
}

#[test]
fn more_than_there_may_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = String::new();
    (1..=limits::REGEXPS_MAX + 1).for_each(|id| writeln!(rows, "{id}\t0\ta\t[]\t[]").unwrap());
    let dictionary = open(folder.path(), "v String", FILE, "", &rows);
    assert_eq!(first(&dictionary, &["a"]).unwrap_err().code(), 290);
}

#[test]
fn a_long_way_down_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = String::new();
    (1..=20_000).for_each(|id| writeln!(rows, "{id}\t{}\ta\t['v']\t['{id}']", id - 1).unwrap());
    let dictionary = open(folder.path(), "v String", FILE, "", &rows);
    assert_eq!(first(&dictionary, &["a", "b"]).unwrap(), ["20000", ""]);
    assert_eq!(all(&dictionary, "cat", usize::MAX).len(), 20_000);
}
