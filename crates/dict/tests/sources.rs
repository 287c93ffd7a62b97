//! What each source's settings say, in DDL and in XML, and how they are shown.

use granary_dict::{Definition, parse_create, parse_xml};

fn statement(source: &str) -> String {
    format!(
        "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id SOURCE({source}) \
         LAYOUT(CACHE(SIZE_IN_CELLS 8)) LIFETIME(MIN 5 MAX 5)"
    )
}

fn parse(source: &str) -> Definition {
    parse_create(&statement(source)).unwrap_or_else(|e| panic!("{e}\n{source}")).definition
}

fn from_xml(source: &str) -> Definition {
    let xml = format!(
        "<clickhouse><dictionary><name>d</name><structure><id><name>id</name></id>\
         <attribute><name>v</name><type>String</type><null_value/></attribute></structure>\
         <source>{source}</source><layout><cache><size_in_cells>8</size_in_cells></cache></layout>\
         <lifetime>5</lifetime></dictionary></clickhouse>"
    );
    parse_xml(&xml).unwrap_or_else(|e| panic!("{e}\n{source}")).remove(0)
}

struct Case {
    /// As somebody writes it.
    ddl: &'static str,
    /// The same in XML.
    xml: &'static str,
    /// As SHOW CREATE prints it.
    shown: &'static str,
    /// The column `source` of system.dictionaries.
    described: &'static str,
}

const CASES: &[Case] = &[
    Case {
        ddl: "mysql(host 'h' user 'u' password 'p' db 'd' table 't' where 'x = 1 OR y' invalidate_query 'SELECT 1' \
              update_field 'at' fail_on_connection_loss 'true')",
        xml: "<mysql><host>h</host><port>3306</port><user>u</user><password>p</password><db>d</db><table>t</table>\
              <where>x = 1 OR y</where><update_field>at</update_field><close_connection>1</close_connection></mysql>",
        shown: "MYSQL(HOST 'h' USER 'u' PASSWORD '[HIDDEN]' DB 'd' TABLE 't' WHERE 'x = 1 OR y' UPDATE_FIELD 'at')",
        described: "MySQL: d.t, where: x = 1 OR y",
    },
    Case {
        ddl: "HTTP(URL 'http://h:80/x/' ENDPOINT '/rows?a=1' FORMAT 'RowBinary' CREDENTIALS(USER 'u' PASSWORD 'p') \
              HEADERS(HEADER(NAME 'Key' VALUE 'p') header(name 'b' value 'c')) UPDATE_FIELD 'at')",
        xml: "<http><url>http://h:80/x/</url><endpoint>/rows?a=1</endpoint><format>RowBinary</format>\
              <credentials><user>u</user><password>p</password></credentials><headers><header><name>Key</name>\
              <value>p</value></header><header><name>b</name><value>c</value></header></headers></http>",
        shown: "HTTP(URL 'http://h:80/x/' ENDPOINT '/rows?[HIDDEN]' FORMAT 'RowBinary' CREDENTIALS(USER 'u' PASSWORD '[HIDDEN]') \
                HEADERS(HEADER(NAME 'Key' VALUE '[HIDDEN]') HEADER(NAME 'b' VALUE '[HIDDEN]')))",
        described: "http://h:80/x/rows?[HIDDEN]",
    },
    Case {
        ddl: "MYSQL(PORT 3307 USER 'u' PASSWORD 'p' DB 'd' TABLE 't' REPLICA(HOST 'b' PRIORITY 2) \
              REPLICA(HOST 'a' PORT 1 USER 'v' PASSWORD 'p' PRIORITY 1))",
        xml: "<mysql><port>3307</port><user>u</user><password>p</password><replica><host>b</host><priority>2</priority>\
              </replica><replica><host>a</host><port>1</port><user>v</user><priority>1</priority></replica><db>d</db>\
              <table>t</table></mysql>",
        shown: "MYSQL(PORT 3307 USER 'u' PASSWORD '[HIDDEN]' DB 'd' \
                REPLICA(HOST 'a' PORT 1 USER 'v' PRIORITY 1) REPLICA(HOST 'b' PORT 3307 PRIORITY 2) TABLE 't')",
        described: "MySQL: d.t",
    },
    Case {
        ddl: "EXECUTABLE_POOL(COMMAND 'cat' FORMAT TSV SIZE 4)",
        xml: "<executable_pool><command>cat</command><format>TSV</format><size>4</size></executable_pool>",
        shown: "EXECUTABLE_POOL(COMMAND 'cat' FORMAT 'TabSeparated' POOL_SIZE 4)",
        described: "ExecutablePool size: 4 command: cat",
    },
    Case {
        ddl: "HTTP(URL 'HTTP://h' FORMAT TSV)",
        xml: "<http><url>HTTP://h</url><format>TabSeparated</format><headers/></http>",
        shown: "HTTP(URL 'HTTP://h' FORMAT 'TabSeparated')",
        described: "HTTP://h",
    },
    Case {
        ddl: "CLICKHOUSE(host 'h' password 'p' query 'SELECT 1 WHERE {condition}' secure 0)",
        xml: "<clickhouse><host>h</host><port>8123</port><user>default</user><password>p</password><db>default</db>\
              <query>SELECT 1 WHERE {condition}</query><invalidate_query>SELECT 2</invalidate_query></clickhouse>",
        shown: "CLICKHOUSE(HOST 'h' PASSWORD '[HIDDEN]' QUERY 'SELECT 1 WHERE {condition}')",
        described: "ClickHouse: default.SELECT 1 WHERE {condition}",
    },
    Case {
        ddl: "REDIS(host 'h' storage_type 'simple' db_index 3 password 'p')",
        xml: "<redis><host>h</host><port>6379</port><storage_type>simple</storage_type><db_index>3</db_index>\
              <password>p</password><pool_size>16</pool_size></redis>",
        shown: "REDIS(HOST 'h' PORT 6379 DB_INDEX 3 PASSWORD '[HIDDEN]')",
        described: "Redis: h:6379",
    },
    Case {
        ddl: "EXECUTABLE_POOL(COMMAND 'cat x' FORMAT TSV POOL_SIZE 4 COMMAND_READ_TIMEOUT 500 IMPLICIT_KEY 1)",
        xml: "<executable_pool><command>cat x</command><format>TabSeparated</format><pool_size>4</pool_size>\
              <implicit_key>true</implicit_key><command_read_timeout>500</command_read_timeout>\
              <max_command_execution_time>10</max_command_execution_time></executable_pool>",
        shown: "EXECUTABLE_POOL(COMMAND 'cat x' FORMAT 'TabSeparated' IMPLICIT_KEY 1 POOL_SIZE 4 COMMAND_READ_TIMEOUT 500)",
        described: "ExecutablePool size: 4 command: cat x",
    },
    // What the collection has is known when the dictionary is opened.
    Case {
        ddl: "POSTGRESQL(name shop password 'p' table 't')",
        xml: "<postgresql><name>shop</name><password>p</password><table>t</table></postgresql>",
        shown: "POSTGRESQL(NAME 'shop' PASSWORD '[HIDDEN]' TABLE 't')",
        described: "",
    },
    Case {
        ddl: "FILE(path './x.csv' format 'CSV')",
        xml: "<file><path>./x.csv</path><format>CSV</format></file>",
        shown: "FILE(PATH './x.csv' FORMAT 'CSV')",
        described: "File: ./x.csv, CSV",
    },
];

#[test]
fn ddl_and_xml_say_the_same_and_show_no_secret() {
    for case in CASES {
        let definition = parse(case.ddl);
        assert_eq!(definition, from_xml(case.xml), "{}", case.ddl);
        let sql = definition.to_sql();
        assert!(sql.contains(&format!("\nSOURCE({})\n", case.shown)), "{sql}");
        assert_eq!(definition.source.describe(), case.described);
        let stored = definition.to_sql_with_secrets();
        assert_eq!(parse_create(&stored).unwrap().definition, definition, "{stored}");
        assert!(!format!("{definition:?}").contains("\"p\""), "debug output shows no password");
    }
}

/// A source, the error's code, and words that its message has.
const REFUSALS: &[(&str, i32, &[&str])] = &[
    ("MYSQL(TABLE 't' REPLICA(HOST 'a' TABLE 't'))", 115, &["SOURCE(REPLICA): unknown parameter TABLE"]),
    ("SQLITE(PATH 'p' TABLE 't' REPLICA(HOST 'a'))", 115, &["SQLITE", "REPLICA"]),
    ("SQLITE(NAME 'mine')", 115, &["SQLITE", "NAME"]),
    ("MYSQL(TABLE 't' SSL_CA 'x')", 48, &["SSL_CA", "not encrypted"]),
    ("MYSQL(TABLE 't' NOSUCH 1)", 115, &["NOSUCH", "HOST, PORT, USER, PASSWORD, DB, TABLE, QUERY, WHERE"]),
    ("MYSQL(DB 'd')", 36, &["SOURCE(MYSQL): TABLE or QUERY is required"]),
    ("MYSQL(TABLE 't' PORT 70000)", 36, &["SOURCE(MYSQL): PORT must be a whole number from 1 to 65535"]),
    ("HTTP(FORMAT TSV)", 36, &["SOURCE(HTTP): URL is required"]),
    ("HTTP(URL 'http://h')", 36, &["SOURCE(HTTP): FORMAT is required"]),
    ("HTTP(URL 'http://h' FORMAT Parquet)", 73, &["SOURCE(HTTP): unknown FORMAT Parquet", "RowBinary"]),
    ("HTTP(URL 'ftp://h' FORMAT TSV)", 36, &["SOURCE(HTTP): URL", "https://"]),
    ("HTTP(URL 'ftp://h' FORMAT TSV)", 36, &["URL must begin with http://"]),
    ("HTTP(URL 'h/x' FORMAT TSV)", 36, &["URL must begin with http://"]),
    ("HTTP(URL 'http://u:p@h/' FORMAT TSV)", 36, &["CREDENTIALS(USER"]),
    ("HTTP(URL 'http://h' FORMAT TSV HEADERS(X 1))", 115, &["HEADERS holds X", "HEADER(NAME"]),
    ("HTTP(URL 'http://h' FORMAT TSV HEADERS(HEADER(VALUE 1)))", 36, &["NAME is required"]),
    (
        "HTTP(URL 'http://h' FORMAT TSV CREDENTIALS(LOGIN 'x'))",
        115,
        &["HTTP(CREDENTIALS)", "LOGIN", "USER, PASSWORD"],
    ),
    (
        "HTTP(URL 'http://h' FORMAT TSV CREDENTIALS 'x')",
        62,
        &["CREDENTIALS takes its parameters in parentheses"],
    ),
    (
        "CLICKHOUSE(HOST 'h' TABLE 't' PORT 9000)",
        36,
        &["SOURCE(CLICKHOUSE): PORT 9000", "native protocol", "use PORT 8123"],
    ),
    ("CLICKHOUSE(QUERY 'q' WHERE 'w')", 36, &["SOURCE(CLICKHOUSE): WHERE goes into QUERY itself"]),
    (
        "REDIS(STORAGE_TYPE 'list')",
        318,
        &["Unknown storage type list for Redis dictionary", "simple, hash_map"],
    ),
    ("REDIS(STORAGE_TYPE 'hash_map')", 318, &["Redis source with storage type 'hash_map' must have key"]),
    ("REDIS(DB_INDEX -1)", 36, &["SOURCE(REDIS): DB_INDEX"]),
    ("EXECUTABLE_POOL(COMMAND 'x' FORMAT TSV SIZE 4 POOL_SIZE 4)", 36, &["SIZE is POOL_SIZE"]),
    (
        "EXECUTABLE_POOL(COMMAND 'x' FORMAT TSV COMMAND_READ_TIMEOUT 0)",
        36,
        &["COMMAND_READ_TIMEOUT", "from 1"],
    ),
    ("EXECUTABLE_POOL(COMMAND 'x')", 36, &["SOURCE(EXECUTABLE_POOL): FORMAT is required"]),
    ("FILE(FORMAT CSV)", 36, &["SOURCE(FILE): PATH is required"]),
    ("FILE(PATH 'x' FORMAT Avro)", 73, &["SOURCE(FILE): unknown FORMAT Avro", "Parquet"]),
];

#[test]
fn refusals_name_the_clause_and_what_is_allowed() {
    for (source, code, words) in REFUSALS {
        let error = parse_create(&statement(source)).expect_err(source);
        assert_eq!(error.code(), *code, "{source}\n{error}");
        for word in *words {
            assert!(error.message().contains(word), "{source}\n{error}\nlacks {word}");
        }
    }
}

/// Columns, key, storage type, and the words of the refusal.
#[test]
fn redis_has_one_attribute_and_keys_that_are_text() {
    for (columns, key, storage, words) in [
        (
            "id UInt64, a UInt8, b UInt8",
            "id",
            "simple",
            "Invalid number of non key columns for Redis source: 2, expected 1",
        ),
        ("id UInt64", "id", "simple", "Invalid number of non key columns for Redis source: 0, expected 1"),
        ("a UInt64, b String, c String", "a, b", "simple", "storage type 'simple' requires 1 key"),
        ("a UInt64, b String", "a", "hash_map", "storage type 'hash_map' requires 2 keys"),
        (
            "a Date, b String",
            "a",
            "simple",
            "supports only integer or string key, but key 'a' of type Date given",
        ),
    ] {
        let sql = format!(
            "CREATE DICTIONARY d ({columns}) PRIMARY KEY {key} SOURCE(REDIS(STORAGE_TYPE '{storage}')) \
             LAYOUT(COMPLEX_KEY_DIRECT())"
        );
        let error = parse_create(&sql).expect_err(&sql);
        assert!(error.code() == 318 && error.message().contains(words), "{sql}\n{error}");
    }
}

#[test]
fn expressions_are_for_sources_that_compute() {
    for source in [
        "HTTP(URL 'http://h' FORMAT TSV)",
        "EXECUTABLE_POOL(COMMAND 'x' FORMAT TSV)",
        "REDIS(HOST 'h')",
        "FILE(PATH 'x' FORMAT TSV)",
    ] {
        let sql = statement(source).replace("v String", "v String EXPRESSION upper(w)");
        let error = parse_create(&sql).expect_err(&sql);
        assert!(error.message().contains("does not support attribute expressions (attribute v)"), "{error}");
    }
}
