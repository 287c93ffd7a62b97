//! A cache stays warm only as long as its dictionary has the same fingerprint, so fingerprints must not change between
//! versions.

use granary_dict::{Collections, parse_create};

/// A source, and the fingerprint of a dictionary that has it.
const FINGERPRINTS: &[(&str, u64)] = &[
    ("SQLITE(PATH 'p' TABLE 't')", 4684482624256263358),
    ("SQLITE(PATH 'p' QUERY 'SELECT 1' UPDATE_FIELD 'at' UPDATE_LAG 7 UPDATE_PERIOD 9)", 2515412115334432330),
    ("POSTGRESQL(TABLE 't')", 13316223688782408361),
    (
        "POSTGRESQL(HOST 'h' PORT 1 USER 'u' PASSWORD 'p' DB 'd' SCHEMA 's' TABLE 't' WHERE 'w' SSLMODE 'require' \
         SSLROOTCERT 'ca.pem' REPLICA(HOST 'b' USER 'v' PASSWORD 'q' PRIORITY 2) REPLICA(HOST 'a' PRIORITY 1))",
        5387624566885126382,
    ),
    ("MYSQL(HOST 'h' USER 'u' DB 'd' TABLE 't' REPLICA(PORT 5))", 2412673627262755021),
    ("MYSQL(TABLE '')", 9618478602454137),
    ("CLICKHOUSE(HOST 'h' USER 'u' PASSWORD 'p' SECURE 1 TABLE 't')", 13387472609955555466),
    ("CLICKHOUSE(TABLE 't')", 11879865800620570341),
    ("CLICKHOUSE(HOST 'h' PORT 8124 DB 'd' QUERY 'SELECT {condition}')", 225172065782202150),
    ("HTTP(URL 'http://h/x?secret=1' FORMAT TSV)", 17267287290916562128),
    (
        "HTTP(URL 'http://h' ENDPOINT 'e' FORMAT Native CREDENTIALS(USER 'u' PASSWORD 'p') \
         HEADERS(HEADER(NAME 'n' VALUE 'v') HEADER(NAME 'm')))",
        17672417370048698267,
    ),
    ("REDIS(HOST 'h')", 18340147333215648371),
    ("REDIS(PORT 7 DB_INDEX 3 PASSWORD 'p' SECURE 1 SSL_CA 'ca.pem')", 9421981130292899679),
    ("MONGODB(DB 'd' COLLECTION 'c')", 7194652547583111217),
    (
        "MONGODB(HOST 'h' USER 'u' PASSWORD 'p' DB 'd' COLLECTION 'c' OPTIONS 'tls=true' UPDATE_FIELD 'at')",
        10310488743186360913,
    ),
    ("MONGODB(URI 'mongodb://u:p@h,i/d?tls=true' COLLECTION 'c')", 2172289852996632262),
    (
        "EXECUTABLE(COMMAND 'c' FORMAT CSV IMPLICIT_KEY 1 SEND_CHUNK_HEADER 1 EXECUTE_DIRECT 1)",
        10162469223207282285,
    ),
    ("EXECUTABLE_POOL(COMMAND 'c' FORMAT TSV SIZE 3 MAX_COMMAND_EXECUTION_TIME 4)", 2249869129857128555),
    ("FILE(PATH 'f' FORMAT Parquet)", 10950095271397674731),
    ("MYSQL(NAME shop TABLE 't')", 1881676055355897253),
    ("HTTP(NAME web)", 2974671751809244679),
];

/// A source on the same server that names no database, beside a named collection or not, keeps its own one.
#[test]
fn a_dictionary_that_moves_to_another_database_reads_the_same_table() {
    let collections = Collections::default();
    let of = |pairs: &[(&str, &str)]| {
        Some(pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    };
    collections.set("own", of(&[("host", "localhost")]));
    collections.set("other", of(&[("host", "h")]));
    for (source, written) in
        [("NAME own", true), ("", true), ("NAME other", false), ("NAME own DB 'far'", false)]
    {
        let sql = format!(
            "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id SOURCE(CLICKHOUSE({source} TABLE 't')) \
             LAYOUT(DIRECT())"
        );
        let mut definition = parse_create(&sql).unwrap().definition.completed(&collections).unwrap();
        definition.set_default_database("here");
        let moved = definition.moved(Some("there".into()), "d".into());
        let printed = moved.to_sql_with_secrets();
        assert_eq!(printed.contains("DB 'here'"), written, "{printed}");
        let mut again = parse_create(&printed).unwrap().definition.completed(&collections).unwrap();
        again.set_default_database("there");
        assert_eq!(again.source.parameter("DB"), moved.source.parameter("DB"), "{printed}");
    }
}

#[test]
fn fingerprints_stay_what_they_were() {
    let collections = Collections::default();
    let texts = |pairs: &[(&str, &str)]| {
        Some(pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    };
    collections.set("shop", texts(&[("hostname", "h"), ("user", "u"), ("password", "p"), ("database", "d")]));
    collections.set("web", texts(&[("url", "https://h"), ("format", "JSONEachRow")]));
    let mut wrong = Vec::new();
    for (source, expected) in FINGERPRINTS {
        let sql = format!(
            "CREATE DICTIONARY d (id UInt64, v String DEFAULT 'x') PRIMARY KEY id SOURCE({source}) \
             LAYOUT(SSD_CACHE(PATH 'p')) LIFETIME(5)"
        );
        let parsed = parse_create(&sql).unwrap_or_else(|e| panic!("{e}\n{source}")).definition;
        let mut definition = parsed.completed(&collections).unwrap_or_else(|e| panic!("{e}\n{source}"));
        definition.set_default_database("here");
        let fingerprint = definition.fingerprint();
        if fingerprint != *expected {
            wrong.push(format!("{source}: {fingerprint}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
