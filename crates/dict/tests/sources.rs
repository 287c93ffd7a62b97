//! The settings of each source, in DDL and in XML, and how they are shown.

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
    /// As written by a user.
    ddl: &'static str,
    /// The source in XML.
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
    // The server's own tables have no certificate.
    Case {
        ddl: "CLICKHOUSE(secure 1 table 't')",
        xml: "<clickhouse><secure>1</secure><table>t</table></clickhouse>",
        shown: "CLICKHOUSE(SECURE 1 TABLE 't')",
        described: "ClickHouse: default.t",
    },
    Case {
        ddl: "REDIS(host 'h' storage_type 'simple' db_index 3 password 'p')",
        xml: "<redis><host>h</host><port>6379</port><storage_type>simple</storage_type><db_index>3</db_index>\
              <password>p</password><pool_size>16</pool_size></redis>",
        shown: "REDIS(HOST 'h' PORT 6379 DB_INDEX 3 PASSWORD '[HIDDEN]')",
        described: "Redis: h:6379",
    },
    Case {
        ddl: "mongodb(host 'h' user 'u' password 'p' db 'd' collection 'c.x' method 'SCRAM-SHA-1' options 'ssl=true' \
              update_field 'at' update_lag 2)",
        xml: "<mongodb><host>h</host><port>27017</port><user>u</user><password>p</password><db>d</db>\
              <collection>c.x</collection><options>ssl=true</options><update_field>at</update_field>\
              <update_lag>2</update_lag></mongodb>",
        shown: "MONGODB(HOST 'h' USER 'u' PASSWORD '[HIDDEN]' DB 'd' COLLECTION 'c.x' OPTIONS 'ssl=true' \
                UPDATE_FIELD 'at' UPDATE_LAG 2)",
        described: "MongoDB: d.c.x",
    },
    Case {
        ddl: "MONGODB(URI 'mongodb://u:p@h:1,i/d%2Db?replicaSet=r' COLLECTION 'c')",
        xml: "<mongodb><uri>mongodb://u:p@h:1,i/d%2Db?replicaSet=r</uri><collection>c</collection></mongodb>",
        shown: "MONGODB(URI 'mongodb://u:[HIDDEN]@h:1,i/d%2Db?replicaSet=r' COLLECTION 'c')",
        described: "MongoDB: d-b.c",
    },
    Case {
        ddl: "MONGODB(name mongo uri 'mongodb://u:p@h/d')",
        xml: "<mongodb><name>mongo</name><uri>mongodb://u:p@h/d</uri></mongodb>",
        shown: "MONGODB(NAME 'mongo' URI 'mongodb://u:[HIDDEN]@h/d')",
        described: "",
    },
    Case {
        ddl: "EXECUTABLE_POOL(COMMAND 'cat x' FORMAT TSV POOL_SIZE 4 COMMAND_READ_TIMEOUT 500 IMPLICIT_KEY 1)",
        xml: "<executable_pool><command>cat x</command><format>TabSeparated</format><pool_size>4</pool_size>\
              <implicit_key>true</implicit_key><command_read_timeout>500</command_read_timeout>\
              <max_command_execution_time>10</max_command_execution_time></executable_pool>",
        shown: "EXECUTABLE_POOL(COMMAND 'cat x' FORMAT 'TabSeparated' IMPLICIT_KEY 1 POOL_SIZE 4 COMMAND_READ_TIMEOUT 500)",
        described: "ExecutablePool size: 4 command: cat x",
    },
    // The collection's parameters are known when the dictionary is opened.
    Case {
        ddl: "POSTGRESQL(name shop password 'p' table 't')",
        xml: "<postgresql><name>shop</name><password>p</password><table>t</table></postgresql>",
        shown: "POSTGRESQL(NAME 'shop' PASSWORD '[HIDDEN]' TABLE 't')",
        described: "",
    },
    Case {
        ddl: "HTTP(name web url 'http://h/x?key=p')",
        xml: "<http><name>web</name><url>http://h/x?key=p</url></http>",
        shown: "HTTP(NAME 'web' URL 'http://h/x?[HIDDEN]')",
        described: "",
    },
    Case {
        ddl: "POSTGRESQL(hostname 'h' username 'u' database 'd' schema '' table 't' sslrootcert 'system' sslmode '')",
        xml: "<postgresql><host>h</host><user>u</user><db>d</db><table>t</table><sslmode>disable</sslmode></postgresql>",
        shown: "POSTGRESQL(HOST 'h' USER 'u' DB 'd' TABLE 't')",
        described: "PostgreSQL: d.t",
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
        let debug = format!("{definition:?}");
        assert!(!debug.contains("\"p\"") && !debug.contains("u:p"), "debug output shows no password");
    }
}

/// A source, the error's code, and words that its message has.
const REFUSALS: &[(&str, i32, &[&str])] = &[
    ("MYSQL(TABLE 't' REPLICA(HOST 'a' TABLE 't'))", 115, &["SOURCE(REPLICA): unknown parameter TABLE"]),
    ("SQLITE(PATH 'p' TABLE 't' REPLICA(HOST 'a'))", 115, &["SQLITE", "REPLICA"]),
    ("SQLITE(NAME 'mine')", 115, &["SQLITE", "NAME"]),
    ("MYSQL(TABLE 't' SSL_CA 'x')", 48, &["SSL_CA", "not encrypted"]),
    ("MYSQL(TABLE 't' NOSUCH 1)", 115, &["NOSUCH", "HOST, PORT, USER, PASSWORD, DB, TABLE, QUERY, WHERE"]),
    ("MYSQL(HOST 'a' HOSTNAME 'b' TABLE 't')", 36, &["SOURCE(MYSQL): HOSTNAME is HOST, which is given, too"]),
    ("POSTGRESQL(TABLE 't' SSLMODE 'allow')", 36, &["SOURCE(POSTGRESQL): SSLMODE must be one of disable"]),
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
    ("MONGODB(DB 'd')", 36, &["SOURCE(MONGODB): COLLECTION is required"]),
    ("MONGODB(COLLECTION 'c')", 36, &["SOURCE(MONGODB): DB is required"]),
    ("MONGODB(URI 'mongodb://h/d' HOST 'h' COLLECTION 'c')", 36, &["HOST and URI cannot be given together"]),
    (
        "MONGODB(URI 'mongodb://h' COLLECTION 'c')",
        36,
        &["URI names no database", "mongodb://host:27017/database"],
    ),
    ("MONGODB(URI 'h/d' COLLECTION 'c')", 36, &["URI cannot be read: ", "scheme"]),
    ("MONGODB(URI 'mongodb+srv://h/d' COLLECTION 'c')", 36, &["mongodb+srv", "write the servers into it"]),
    (
        "MONGODB(URI 'mongodb://%2Ftmp%2Fmongodb.sock/d' COLLECTION 'c')",
        36,
        &["names a socket", "a host and a port"],
    ),
    (
        "MONGODB(DB 'd' COLLECTION 'c' OPTIONS 'tlsCertificateKeyFile=x')",
        36,
        &["OPTIONS has an option tlsCertificateKeyFile, which is not read", "authSource", "tlsCAFile"],
    ),
    (
        "MONGODB(DB 'd' COLLECTION 'c' OPTIONS 'tls=maybe')",
        36,
        &["SOURCE(MONGODB): HOST, DB or OPTIONS cannot be read", "tls"],
    ),
    ("MONGODB(DB 'd/e' COLLECTION 'c')", 36, &["HOST, DB or OPTIONS cannot be read", "database name: /"]),
    ("MONGODB(DB 'd' COLLECTION 'c' OID_COLUMNS '_id')", 48, &["OID_COLUMNS", "write IS_OBJECT_ID behind"]),
    ("MONGODB(DB 'd' COLLECTION 'c' PORT 0)", 36, &["SOURCE(MONGODB): PORT must be"]),
    ("MONGODB(DB 'd' COLLECTION 'c' UPDATE_FIELD '$at')", 36, &["a field called $at", "Make a view"]),
    (
        "MONGODB(DB 'd' COLLECTION 'c' OPTIONS 'readPreference=nearest' UPDATE_FIELD 'at')",
        36,
        &["UPDATE_FIELD needs the readPreference primary"],
    ),
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

/// Columns, and the words of the refusal.
#[test]
fn mongodb_is_asked_for_fields_and_values_that_it_has() {
    for (columns, words) in [
        ("k UInt64, `$v` String", "a field called $v"),
        ("`k.` UInt64, v String", "a field called k."),
        ("`k.$x` UInt64, v String", "a field called k.$x"),
        ("k Array(UInt8), v String", "key column k of type Array(UInt8)"),
        (
            "k UInt64 IS_OBJECT_ID, v String",
            "key column k is an ObjectId of type UInt64; it must be a String",
        ),
    ] {
        let name = if columns.starts_with('`') { columns.split(' ').next().unwrap() } else { "k" };
        let sql = format!(
            "CREATE DICTIONARY d ({columns}) PRIMARY KEY {name} SOURCE(MONGODB(DB 'd' COLLECTION 'c')) \
             LAYOUT(COMPLEX_KEY_DIRECT())"
        );
        let error = parse_create(&sql).expect_err(&sql);
        assert!(error.message().contains(words), "{sql}\n{error}");
    }
}

#[test]
fn expressions_are_for_sources_that_compute() {
    for source in [
        "HTTP(URL 'http://h' FORMAT TSV)",
        "EXECUTABLE_POOL(COMMAND 'x' FORMAT TSV)",
        "REDIS(HOST 'h')",
        "MONGODB(DB 'd' COLLECTION 'c')",
        "FILE(PATH 'x' FORMAT TSV)",
    ] {
        let sql = statement(source).replace("v String", "v String EXPRESSION upper(w)");
        let error = parse_create(&sql).expect_err(&sql);
        assert!(error.message().contains("does not support attribute expressions (attribute v)"), "{error}");
    }
}
