//! Dictionaries of ClickHouse's XML files.

use crate::served::{Served, until};
use std::path::Path;

fn element(name: &str, rest: &str) -> String {
    format!(
        "<dictionary><name>{name}</name>
         <structure><id><name>id</name></id>
         <attribute><name>v</name><type>String</type><null_value>?</null_value></attribute></structure>
         {rest}</dictionary>"
    )
}

const CACHE: &str =
    "<layout><cache><size_in_cells>100</size_in_cells></cache></layout><lifetime>300</lifetime>";

fn start(folder: &Path, variables: &[(&str, &str)]) -> Served {
    let pattern = folder.join("*_dictionary.xml");
    Served::start_in(folder, &["--dictionaries", pattern.to_str().unwrap()], variables)
}

#[test]
fn what_is_wrong_with_one_is_nothing_to_the_others_and_each_is_found_from_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("user_files");
    std::fs::create_dir_all(&files).unwrap();
    let database = files.join("app.db");
    rusqlite::Connection::open(&database)
        .unwrap()
        .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'one')")
        .unwrap();
    let source = "<source><sqlite><path from_env='GRANARY_TEST_DATABASE'/><table>t</table></sqlite></source>";
    let unset = source.replace("GRANARY_TEST_DATABASE", "GRANARY_TEST_UNSET");
    let nowhere = "<source><nosuch/></source>";
    let file = folder.path().join("some_dictionary.xml");
    let with_database = |name: &str| format!("<database>shop</database><name>{name}</name>");
    let all = [
        element("broken", &format!("{nowhere}{CACHE}")),
        element("unset", &format!("{unset}{CACHE}")),
        element("works", &format!("{source}{CACHE}")),
        element("direct", &format!("{source}<layout><direct/></layout><lifetime>0</lifetime>")),
        element("owned", &format!("{source}{CACHE}")).replace("<name>owned</name>", &with_database("owned")),
    ];
    std::fs::write(&file, format!("<clickhouse>{}</clickhouse>", all.concat())).unwrap();
    let served = start(folder.path(), &[("GRANARY_TEST_DATABASE", database.to_str().unwrap())]);
    served.sql("CREATE DATABASE other");
    for sql in [
        "SELECT dictGet('works', 'v', 1)",
        "SELECT v FROM dictionary('direct')",
        "SELECT dictGet(direct, 'v', toUInt64(1))",
        "SELECT dictGet('shop.owned', 'v', 1)",
    ] {
        let answer = served.post("/?database=other", sql.as_bytes());
        assert_eq!((answer.status, answer.text()), (200, "one\n".to_owned()), "{sql}");
    }
    let renewed = served.post("/?database=other", b"SYSTEM RELOAD DICTIONARY works");
    assert_eq!(renewed.status, 200, "{}", renewed.text());
    for (name, words) in [("broken", "NOSUCH"), ("unset", "GRANARY_TEST_UNSET"), ("nosuch", "not found")] {
        let answer = served.post("/?database=other", format!("SELECT dictGet('{name}', 'v', 1)").as_bytes());
        assert!(answer.status != 200 && answer.text().contains(words), "{}", answer.text());
    }
    let told = served.sql(
        "SELECT database, name, status, origin, uuid, last_exception != '' FROM system.dictionaries ORDER BY name",
    );
    let row = |database: &str, name: &str, status: &str, failed: u8| {
        let nil = "00000000-0000-0000-0000-000000000000";
        format!("{database}\t{name}\t{status}\t{}\t{nil}\t{failed}\n", file.display())
    };
    let wanted = [
        row("", "broken", "FAILED", 1),
        row("", "direct", "LOADED", 0),
        row("shop", "owned", "LOADED", 0),
        row("", "unset", "FAILED", 1),
        row("", "works", "LOADED", 0),
    ];
    assert_eq!(told, wanted.concat());
    // It takes its name in the database that keeps it.
    for sql in ["CREATE TABLE works (x UInt8) ENGINE = Memory", "CREATE VIEW works AS SELECT 1"] {
        let answer = served.post("/", sql.as_bytes());
        let words = format!("already exists; {} describes it", file.display());
        assert!(answer.status != 200 && answer.text().contains(&words), "{}", answer.text());
    }
    // Names in the current database come first.
    served.sql(
        "CREATE DICTIONARY other.works (id UInt64, v String) PRIMARY KEY id SOURCE(CLICKHOUSE(QUERY 'SELECT 1 AS id, ''mine'' AS v')) \
         LAYOUT(DIRECT())",
    );
    let answer = served.post("/?database=other", b"SELECT dictGet('works', 'v', 1)");
    assert_eq!(answer.text(), "mine\n");
}

/// A dictionary that failed for a transient reason is tried again, though its file is unchanged, also where an earlier
/// one of its name is in use; one that was dropped meanwhile is not.
#[test]
fn what_failed_once_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("user_files");
    std::fs::create_dir_all(&files).unwrap();
    let caches = files.join("caches");
    std::fs::write(&caches, "a file where a folder is to be").unwrap();
    let source =
        "<source><executable><command>sed 's/$/,one/'</command><format>CSV</format></executable></source>";
    let layout = format!(
        "<layout><ssd_cache><path>{}/late</path><file_size>16777216</file_size></ssd_cache></layout>\
         <lifetime>300</lifetime>",
        caches.display()
    );
    let late = element("late", &format!("{source}{layout}"));
    let dropped = element("dropped", &format!("{source}{CACHE}"));
    let file = folder.path().join("late_dictionary.xml");
    std::fs::write(&file, format!("<clickhouse>{late}{dropped}</clickhouse>")).unwrap();
    let pattern = folder.path().join("*_dictionary.xml");
    let arguments = ["--allow-executable", "--dictionaries", pattern.to_str().unwrap()];
    let served = Served::start(folder.path(), &arguments);
    let ask = |name: &str| served.post("/", format!("SELECT dictGet('{name}', 'v', 1)").as_bytes());
    assert_eq!(ask("dropped").text(), "one\n");
    served.sql("DROP DICTIONARY dropped");
    assert_ne!(ask("late").status, 200);
    std::fs::remove_file(&caches).unwrap();
    std::fs::create_dir(&caches).unwrap();
    until("the dictionary is made", || ask("late").status == 200);
    assert_eq!(ask("late").text(), "one\n");
    assert_ne!(ask("dropped").status, 200);

    let elsewhere = files.join("elsewhere");
    std::fs::write(&elsewhere, "a file where a folder is to be").unwrap();
    let source = source.replace("one", "two");
    let layout = layout.replace(&*caches.to_string_lossy(), &elsewhere.to_string_lossy());
    let late = element("late", &format!("{source}{layout}"));
    std::fs::write(&file, format!("<clickhouse>{late}</clickhouse>")).unwrap();
    let failure = || served.sql("SELECT last_exception FROM system.dictionaries WHERE name = 'late'");
    until("the failure is shown", || failure() != "\n");
    assert_eq!(ask("late").text(), "one\n");
    std::fs::remove_file(&elsewhere).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    until("the new definition is in use", || ask("late").text() == "two\n");
    assert_eq!(failure(), "\n");
}

/// The file says what the comment of a dictionary is, and another comment leaves its cache alone.
#[test]
fn a_comment_costs_no_cache() {
    let folder = tempfile::tempdir().unwrap();
    let source =
        "<source><executable><command>sed 's/$/,one/'</command><format>CSV</format></executable></source>";
    let layout = "<layout><ssd_cache><path>one</path><file_size>16777216</file_size></ssd_cache></layout>\
         <lifetime>300</lifetime>";
    let file = folder.path().join("one_dictionary.xml");
    let write = |comment: &str| {
        let one = element("one", &format!("{source}{layout}<comment>{comment}</comment>"));
        std::fs::write(&file, format!("<clickhouse>{one}</clickhouse>")).unwrap();
    };
    write("before");
    let pattern = folder.path().join("*_dictionary.xml");
    let served =
        Served::start(folder.path(), &["--allow-executable", "--dictionaries", pattern.to_str().unwrap()]);
    assert_eq!(served.sql("SELECT dictGet('one', 'v', 1)"), "one\n");
    let refused = served.post("/", b"ALTER TABLE one MODIFY COMMENT 'another'");
    assert!(refused.text().contains("write <comment> there"), "{}", refused.text());
    let shown = || served.sql("SELECT comment, element_count FROM system.dictionaries WHERE name = 'one'");
    assert_eq!(shown(), "before\t1\n");
    write("after");
    until("the comment is taken over", || shown() == "after\t1\n");
}

/// A copy of a file does not replace what the file says, whichever is read last; once the file says nothing of it, it
/// does.
#[test]
fn of_two_files_that_describe_one_dictionary_the_first_counts() {
    let folder = tempfile::tempdir().unwrap();
    let describe = |text: &str| {
        let source = format!(
            "<source><executable><command>sed 's/$/,{text}/'</command><format>CSV</format></executable></source>"
        );
        format!("<clickhouse>{}</clickhouse>", element("twice", &format!("{source}{CACHE}")))
    };
    let [first, second] = ["a", "b"].map(|name| folder.path().join(format!("{name}_dictionary.xml")));
    std::fs::write(&first, describe("one")).unwrap();
    std::fs::write(&second, describe("two")).unwrap();
    let pattern = folder.path().join("*_dictionary.xml");
    let served =
        Served::start(folder.path(), &["--allow-executable", "--dictionaries", pattern.to_str().unwrap()]);
    let ask = || served.sql("SELECT dictGet('twice', 'v', 1)");
    let origin = || served.sql("SELECT origin FROM system.dictionaries");
    assert_eq!((ask(), origin()), ("one\n".to_owned(), format!("{}\n", first.display())));
    std::fs::write(&first, describe("three")).unwrap();
    until("the first file's change is seen", || ask() == "three\n");
    std::fs::write(&first, "<clickhouse></clickhouse>").unwrap();
    until("the second file counts", || ask() == "two\n");
    assert_eq!(origin(), format!("{}\n", second.display()));
}
