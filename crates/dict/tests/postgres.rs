//! Dictionaries over a real PostgreSQL.

#[path = "common/certificate.rs"]
mod certificate;
mod common;
#[path = "common/proxy.rs"]
mod proxy;
#[path = "common/postgres.rs"]
mod server;

use arrow::array::{ArrayRef, AsArray, Float32Array, Int32Array};
use arrow::datatypes::{Date32Type, Decimal128Type, Float64Type, TimestampSecondType};
use common::*;
use granary_dict::{DataType, Dictionary, Environment, parse_create};
use proxy::Proxy;
use server::Server;
use std::sync::Arc;

fn open(server: &Server, columns: &str, key: &str, source: &str, layout: &str) -> Dictionary {
    open_in("postgres", server, columns, key, source, layout)
}

fn open_in(
    database: &str,
    server: &Server,
    columns: &str,
    key: &str,
    source: &str,
    layout: &str,
) -> Dictionary {
    let folder = std::env::temp_dir();
    let lifetime = if layout.contains("DIRECT") { "" } else { "LIFETIME(1000)" };
    let sql = format!(
        "CREATE DICTIONARY p ({columns}) PRIMARY KEY {key} \
         SOURCE(POSTGRESQL(HOST '127.0.0.1' PORT {} USER 'granary' PASSWORD 'secret' DB '{database}' {source})) \
         LAYOUT({layout}) {lifetime}",
        server.port
    );
    Dictionary::open(definition(&sql), &Environment::new(folder)).unwrap()
}

#[test]
fn postgres() {
    let mut server = Server::start();
    server.execute(
        "CREATE TABLE users (id int PRIMARY KEY, name text, score float8, born date, seen timestamptz, balance numeric(12, 3), \
             ok bool, u uuid, \"Odd \"\"name\" varchar(20));
         INSERT INTO users SELECT i, 'user ' || i, i / 4.0, date '2000-01-01' + i % 1000, \
             timestamptz '2024-02-29 12:00:00.5+03' + i * interval '1 second', i * 1.125, i % 2 = 0, \
             '00112233-4455-6677-8899-aabbccddeeff', 'odd' FROM generate_series(1, 100000) i;
         INSERT INTO users (id) VALUES (1000001);
         CREATE SCHEMA other;
         CREATE TABLE other.pairs (a int8, b text, v int4, PRIMARY KEY (a, b));
         INSERT INTO other.pairs VALUES (1, 'it''s', 10), (1, 'b', 11), (2, 'b\\', 12);
         CREATE TABLE holes (a int, v int); INSERT INTO holes VALUES (NULL, 5), (3, 6);",
    );
    let direct = open(&server, "id UInt64, name String", "id", "TABLE 'users'", "DIRECT()");
    long_answers_are_refused(&direct, 1..2000);
    every_type(&server);
    types_beyond_arrow(&server);
    local_times(&server);
    nulls_in_arrays_masks_and_infinity(&server);
    padded_texts(&server);
    many_keys(&server);
    composite(&server);
    keys_that_a_column_cannot_have(&server);
    labels_of_enums_are_the_servers_to_know(&server);
    texts_that_a_type_does_not_write_are_not_there(&server);
    floats(&server);
    conditions_and_queries(&server);
    replicas(&server);
    updates(&server);
    characters_that_an_encoding_lacks(&server);
    types_that_change_are_noticed(&server);
    settings_of_a_role_do_not_matter(&server);
    wrong_settings(&server);
    a_connection_that_the_server_has_ended_is_made_anew(&server);
    a_server_that_falls_silent_is_given_up(&server);
    outage(&mut server);
}

fn updates(server: &Server) {
    server.execute("CREATE TABLE news (id int8, v int8, at timestamptz)");
    let dictionary = open(server, NEWS.0, "id", NEWS.1, "CACHE(SIZE_IN_CELLS 1000)");
    changes_are_taken_in(&dictionary, &|rows| {
        server.execute(&format!("TRUNCATE news; INSERT INTO news VALUES {}", news(rows)));
    });
    columns_tell_changes(
        &[
            ("int4", "1700000000", "1700000001", "", Some("operator does not exist: integer - interval")),
            ("text", "'7'", "'8'", "UPDATE_LAG 0", None),
            ("text", "'2026-11-27 10:00:30-05'", "", "UPDATE_LAG 0", Some("keep them in UTC")),
            ("numeric", "1.125", "1.25", "UPDATE_LAG 0", None),
            ("date", "'2026-11-27'", "'2026-11-27'", "", None),
            ("timestamp", "'2026-11-27 10:00:00'", "'2026-11-27 10:00:00'", "", None),
        ],
        &|data_type, row| {
            server.execute(&format!(
                "DROP TABLE IF EXISTS marked; CREATE TABLE marked (id int8, v int8, at {data_type}); \
                 INSERT INTO marked VALUES {row}"
            ));
        },
        &|source| open(server, NEWS.0, "id", source, "CACHE(SIZE_IN_CELLS 1000)"),
    );
}

fn every_type(server: &Server) {
    let columns = "id UInt64, name String DEFAULT 'nobody', score Float64, born Date, seen DateTime('America/New_York'), \
         balance Nullable(Decimal(12, 3)), ok UInt8, flag Bool, u UUID, \
         \"Odd \"\"name\" String, upper String EXPRESSION upper(name)";
    let columns = columns.replace("flag Bool", "flag Bool EXPRESSION ok");
    let dictionary = open(server, &columns, "id", "TABLE 'users'", "CACHE(SIZE_IN_CELLS 1000)");
    let all: Vec<usize> = (0..dictionary.definition().structure.attributes.len()).collect();
    let answer = dictionary.get(&all, &u64s([4, 5, 1_000_001, 7_777_777, u64::MAX])).unwrap();
    assert_eq!(found(&answer.found), [true, true, true, false, false]);
    let column = |i: usize| &answer.columns[i];
    assert_eq!(texts(column(0)), ["user 4", "user 5", "nobody", "nobody", "nobody"]);
    assert_eq!(column(1).as_primitive::<Float64Type>().values()[..3], [1.0, 1.25, 0.0]);
    assert_eq!(column(2).as_primitive::<Date32Type>().value(0), 10_957 + 4);
    assert_eq!(column(3).as_primitive::<TimestampSecondType>().value(0), 1_709_197_200 + 4);
    let balance: Vec<Option<i128>> = column(4).as_primitive::<Decimal128Type>().iter().collect();
    assert_eq!(balance, [Some(4500), Some(5625), None, None, None]);
    assert_eq!(column(5).as_primitive::<arrow::datatypes::UInt8Type>().values()[..2], [1, 0]);
    assert!(column(6).as_boolean().value(0) && !column(6).as_boolean().value(1));
    assert_eq!(column(7).as_fixed_size_binary().value(0)[..3], [0, 0x11, 0x22]);
    assert_eq!(texts(column(8))[0], "odd");
    assert_eq!(texts(column(9))[..2], ["USER 4", "USER 5"]);
}

fn types_beyond_arrow(server: &Server) {
    server.execute(
        "CREATE TABLE hosts (id int PRIMARY KEY, seen timestamptz, local timestamp, ip inet, six inet, tags text[], \
             numbers int[], big numeric(60, 3), wide numeric(39), listed text);
         INSERT INTO hosts VALUES (1, '2024-02-29 12:00:00.123456+03', '1969-12-31 23:59:59.75', '10.0.0.1', \
             '2001:db8::1', ARRAY['it''s', '\"q\" \\', NULL], ARRAY[[1, 2], [3, NULL]], \
             123456789012345678901234567890123456789012345678901234567.125, \
             -170141183460469231731687303715884105728, '[1.5, 2]');",
    );
    let columns = "id UInt64, seen DateTime64(6, 'Asia/Tokyo'), local DateTime64(1), ip IPv4, six IPv6, \
         tags Array(Nullable(String)), numbers Array(Array(Nullable(Int32))), big Decimal(60, 3), wide Int128, \
         listed Array(Float64)";
    let dictionary = open(server, columns, "id", "TABLE 'hosts'", "CACHE(SIZE_IN_CELLS 100)");
    shows(
        &dictionary,
        &u64s([1]),
        &[
            "2024-02-29 18:00:00.123456",
            "1969-12-31 23:59:59.7",
            "10.0.0.1",
            "2001:db8::1",
            r#"['it\'s','"q" \\',NULL]"#,
            "[[1,2],[3,NULL]]",
            "123456789012345678901234567890123456789012345678901234567.125",
            "-170141183460469231731687303715884105728",
            "[1.5,2]",
        ],
    );
    server.execute(
        "CREATE EXTENSION hstore; CREATE TYPE hop AS (n int, s text);
         CREATE TABLE labels (id int PRIMARY KEY, h hstore, j jsonb, t text, hops hop[]);
         INSERT INTO labels VALUES (1, 'b=>\"it''s\", a=>NULL', '{\"x\": [1, 2]}', '{80:''http'',80:''x''}', \
             ARRAY[(1, 'a')::hop, (2, NULL)::hop]);",
    );
    let columns = "id UInt64, h Map(String, Nullable(String)), j Map(String, Array(UInt8)), t Map(UInt16, String), \
         hops Nested(s Nullable(String), n UInt8)";
    let labels = open(server, columns, "id", "TABLE 'labels'", "CACHE(SIZE_IN_CELLS 100)");
    let (h, hops) = (r"{'a':NULL,'b':'it\'s'}", "[('a',1),(NULL,2)]");
    shows(&labels, &u64s([1]), &[h, "{'x':[1,2]}", "{80:'http',80:'x'}", hops]);
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
    let by_address = open(server, HOSTS_BY_ADDRESS, "(ip, seen)", "TABLE 'hosts'", layout);
    shows_the_host(&by_address);
}

/// A `timestamp` is what the clocks of the column's zone show, a `timestamptz` a moment; in keys, too.
fn local_times(server: &Server) {
    server.execute(
        "CREATE TABLE clocks (id int, local timestamp, seen timestamptz, fine timestamp(6));
         INSERT INTO clocks VALUES (1, '2024-01-01 10:00:00.5', '2024-01-01 10:00:00+00', '2024-01-01 10:00:00.123456'), \
             (2, '2024-03-31 02:30:00', NULL, NULL)",
    );
    let columns = "id UInt64, local DateTime('Asia/Tokyo'), seen DateTime('Asia/Tokyo'), \
         fine DateTime64(3, 'Asia/Tokyo') DEFAULT '2000-01-01 00:00:00', plain DateTime EXPRESSION local, \
         berlin DateTime('Europe/Berlin') EXPRESSION local";
    let dictionary = open(server, columns, "id", "TABLE 'clocks'", "CACHE(SIZE_IN_CELLS 100)");
    let at_ten = "2024-01-01 10:00:00";
    let rows = [at_ten, "2024-01-01 19:00:00", "2024-01-01 10:00:00.123", at_ten, at_ten];
    shows(&dictionary, &u64s([1]), &rows);
    // An hour that Berlin skips does not keep the row away.
    let skipped = ["2024-03-31 02:30:00", "1970-01-01 09:00:00", "2000-01-01 00:00:00.000"];
    shows(&dictionary, &u64s([2]), &[&skipped[..], &["2024-03-31 02:30:00", "2024-03-31 01:30:00"]].concat());
    let tokyo = DataType::parse("DateTime('Asia/Tokyo')").unwrap();
    let fine = DataType::parse("DateTime64(6, 'Asia/Tokyo')").unwrap();
    for (key, data_type, text) in [
        ("fine", &fine, "2024-01-01 10:00:00.123456"),
        ("seen", &tokyo, "2024-01-01 19:00:00"),
        ("seen", &DataType::parse("DateTime64(0, 'Asia/Tokyo')").unwrap(), "2024-01-01 19:00:00"),
    ] {
        let columns = format!("{key} {data_type}, id UInt32");
        let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
        let by_time = open(server, &columns, key, "TABLE 'clocks'", layout);
        shows(&by_time, &[of_text(data_type, text)], &["1"]);
    }
}

/// As in ClickHouse: a NULL inside an array is the default of an item that cannot be NULL, addresses have the masks
/// that they were given, and a time that never ends is refused by the name of its column.
fn nulls_in_arrays_masks_and_infinity(server: &Server) {
    server.execute(
        "CREATE TABLE odd (id int PRIMARY KEY, n int[], s text[], deep bigint[], b bool[], d date[], ip inet, net cidr, \
             at timestamptz, local timestamp, day date);
         INSERT INTO odd VALUES (1, '{1,NULL,3}', '{NULL,a}', '{{1,NULL},{NULL,4}}', '{t,NULL}', '{NULL,2024-02-29}', \
             '10.0.0.1', '10.0.0.0/8', '2024-01-01 00:00:00+00', '2024-01-01', '2024-01-01'), \
             (2, NULL, '{}', NULL, NULL, NULL, '10.0.0.1/24', '2001:db8::/32', 'infinity', '-infinity', 'infinity');",
    );
    let columns = "id UInt64, n Array(UInt8), s Array(String), deep Array(Array(Int64)), b Array(Bool), d Array(Date), \
         ip String, net String";
    let dictionary = open(server, columns, "id", "TABLE 'odd'", "DIRECT()");
    let arrays = ["[1,0,3]", "['','a']", "[[1,0],[0,4]]", "[true,false]", "['1970-01-01','2024-02-29']"];
    shows(&dictionary, &u64s([1]), &[&arrays[..], &["10.0.0.1", "10.0.0.0/8"]].concat());
    // The default is that of the item here, whatever it is there; so it is in JSON, maps and what is composite.
    server.execute(
        "CREATE TYPE stop AS (n int, s text);
         CREATE TABLE gaps (id int, n int[], b bool[], d date[], m money[], u uuid[], j jsonb, h hstore, stops stop[]);
         INSERT INTO gaps VALUES (1, '{1,NULL}', '{t,NULL}', '{NULL,2024-02-29}', '{NULL,1.50}', '{NULL}', \
             '[null, [2, null]]', 'a=>NULL', ARRAY[(NULL, NULL)::stop, NULL]);",
    );
    let columns = "id UInt64, n Array(String), b Array(String), d Array(Date32), texts Array(String) EXPRESSION d, \
         m Array(String), u Array(String), j Array(Array(UInt8)), h Map(String, UInt8), stops Nested(n UInt8, s String)";
    let gaps = open(server, columns, "id", "TABLE 'gaps'", "DIRECT()");
    let arrays = [
        "['1','']",
        "['true','']",
        "['1900-01-01','2024-02-29']",
        "['','2024-02-29']",
        "['','$1.50']",
        "['']",
        "[[],[2,0]]",
        "{'a':0}",
        "[(0,''),(0,'')]",
    ];
    shows(&gaps, &u64s([1]), &arrays);
    shows(&dictionary, &u64s([2]), &["[]", "[]", "[]", "[]", "[]", "10.0.0.1/24", "2001:db8::/32"]);
    for column in
        ["at DateTime", "at DateTime64(3)", "at Date", "local DateTime", "local DateTime64(6)", "day Date"]
    {
        let dictionary = open(server, &format!("id UInt64, {column}"), "id", "TABLE 'odd'", "DIRECT()");
        assert!(dictionary.get(&[0], &u64s([1])).is_ok(), "{column}");
        let error = dictionary.get(&[0], &u64s([2])).unwrap_err().to_string();
        let (name, _) = column.split_once(' ').unwrap();
        assert!(error.contains(&format!("Column {name}")) && error.contains("infinity"), "{column}: {error}");
    }
    // So is a time before our era, of which ClickHouse has none.
    server.execute(
        "CREATE TABLE ancient (id int, at timestamptz, local timestamp, day date);
         INSERT INTO ancient VALUES (1, '1999-01-01 BC', '1999-01-01 BC', '1999-01-01 BC'), \
             (2, '1999-01-01 00:00:00+00', '1999-01-01', '1999-01-01');",
    );
    for name in ["at", "local", "day"] {
        for data_type in ["DateTime", "DateTime64(3)", "DateTime64(6)", "Date", "Date32"] {
            if name == "day" && data_type.starts_with("DateTime") {
                continue;
            }
            let columns = format!("id UInt64, {name} {data_type}");
            let dictionary = open(server, &columns, "id", "TABLE 'ancient'", "DIRECT()");
            assert!(dictionary.get(&[0], &u64s([2])).is_ok(), "{name} {data_type}");
            let error = dictionary.get(&[0], &u64s([1])).unwrap_err().to_string();
            assert!(error.contains(&format!("Column {name}")), "{name} {data_type}: {error}");
        }
    }
}

/// `char(5)` has its blanks, as in ClickHouse; in keys, too.
fn padded_texts(server: &Server) {
    server
        .execute("CREATE TABLE codes (id int, code char(5)); INSERT INTO codes VALUES (1, 'ab'), (2, NULL)");
    let columns = "id UInt64, code String DEFAULT 'none'";
    let dictionary = open(server, columns, "id", "TABLE 'codes'", "DIRECT()");
    assert_eq!(texts(&dictionary.get(&[0], &u64s([1, 2])).unwrap().columns[0]), ["ab   ", "none"]);
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
    let by_code = open(server, "code String, id UInt32", "code", "TABLE 'codes'", layout);
    shows(&by_code, &[strings(&["ab   "])], &["1"]);
    assert_eq!(found(&by_code.get(&[0], &[strings(&["ab"])]).unwrap().found), [false]);
}

fn many_keys(server: &Server) {
    let dictionary =
        open(server, "id UInt64, name String", "id", "TABLE 'users'", "CACHE(SIZE_IN_CELLS 1000000)");
    let keys: Vec<u64> = (0..150_000).collect();
    let answer = dictionary.get(&[0], &u64s(keys)).unwrap();
    assert_eq!(answer.found.true_count(), 100_000);
    let names = texts(&answer.columns[0]);
    assert!((1..=100_000).all(|i| names[i] == format!("user {i}")));
    let status = dictionary.status();
    assert_eq!((status.source_requests, status.source_rows), (3, 100_000));
    let direct = open(server, "id UInt64, name String", "id", "TABLE 'users'", "DIRECT()");
    assert_eq!(all_rows(&direct).unwrap().num_rows(), 100_001);
    reads_whole_in_batches(&direct);
}

fn composite(server: &Server) {
    let columns = "a Int64, b String, v Int32 DEFAULT -1";
    let dictionary = open(
        server,
        columns,
        "(a, b)",
        "SCHEMA 'other' TABLE 'pairs'",
        "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 1000)",
    );
    let a: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![1, 1, 2, 2, 1]));
    let answer = dictionary.get(&[0], &[a, strings(&["it's", "b", "b\\", "x", "nul\0"])]).unwrap();
    let v = answer.columns[0].as_primitive::<arrow::datatypes::Int32Type>();
    assert_eq!(v.values(), &[10, 11, 12, -1, -1]);
    let nullable = open(
        server,
        "a Nullable(Int32), v UInt64",
        "a",
        "TABLE 'holes'",
        "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)",
    );
    let a: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(3), Some(4)]));
    let answer = nullable.get(&[0], &[a]).unwrap();
    assert_eq!(values(&answer.columns[0]), [5, 6, 0]);
    // Columns named like those of a table of keys.
    server.execute(
        "CREATE TABLE named (k0 int, k1 int, v int8); INSERT INTO named VALUES (7, 70, 1), (NULL, 90, 3)",
    );
    for source in ["TABLE 'named'", "QUERY 'SELECT * FROM named WHERE {condition}'"] {
        for key in ["k0, k1", "k1, k0"] {
            let columns = "k0 Nullable(Int32), k1 Nullable(Int32), v UInt64";
            let named = open(server, columns, key, source, "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)");
            let k0: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), Some(7), None, None]));
            let k1: ArrayRef = Arc::new(Int32Array::from(vec![70, 71, 90, 91]));
            let keys = if key == "k0, k1" { [k0, k1] } else { [k1, k0] };
            assert_eq!(values(&named.get(&[0], &keys).unwrap().columns[0]), [1, 0, 3, 0], "{source} {key}");
        }
    }
    server.execute("DROP TABLE named");
}

/// Such keys are absent, and do not fail lookups of others.
fn keys_that_a_column_cannot_have(server: &Server) {
    for (theirs, good, bad) in [
        ("uuid", "00112233-4455-6677-8899-aabbccddeeff", "no uuid"),
        ("date", "2024-02-29", "2023-02-29"),
        ("date", "0044-03-15 BC", "soon"),
        ("timestamp", "2024-02-29 12:00:00.5", "2024-02-29 12:61:00"),
        ("timestamptz", "2024-02-29 12:00:00+00", "2024-02-29 12:00:00+99"),
        ("time", "12:00:00", "25:00:00"),
        ("bool", "true", "maybe"),
        ("inet", "10.0.0.1/8", "10.0.0.256"),
        ("cidr", "10.0.0.0/8", "10.0.0.1/8"),
        ("macaddr", "08:00:2b:01:02:03", "08"),
        ("numeric", "1.50", "one"),
        ("float4", "0.1", "1e39"),
        ("float8", "0.1", "1e-400"),
    ] {
        server.execute(&format!("CREATE TABLE named (k {theirs}, v int8)"));
        server.execute(&format!("INSERT INTO named VALUES ('{good}', 5)"));
        let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
        let dictionary = open(server, "k String, v UInt64", "k", "TABLE 'named'", layout);
        let keys = strings(&[bad, good, "nul\0"]);
        assert_eq!(found(&dictionary.has(&[keys]).unwrap()), [false, true, false], "{theirs}");
        server.execute("DROP TABLE named");
    }
}

/// A `float8` has the number that a Float32 is written as, or that it is; so has a `numeric`.
fn floats(server: &Server) {
    for theirs in ["float4", "float8", "numeric"] {
        server.execute(&format!("CREATE TABLE floats (f {theirs}, v int8)"));
        server.execute("INSERT INTO floats VALUES (0.1, 5), (0.20000000298023224, 6), (-1.5, 7)");
        let dictionary = open(server, "f Float32, v UInt64", "f", "TABLE 'floats'", "COMPLEX_KEY_DIRECT()");
        let keys: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 0.2, -1.5, 0.3]));
        assert_eq!(values(&dictionary.get(&[0], &[keys]).unwrap().columns[0]), [5, 6, 7, 0], "{theirs}");
        server.execute("DROP TABLE floats");
    }
}

/// A label that an enum was given while a connection lasts.
fn labels_of_enums_are_the_servers_to_know(server: &Server) {
    server.execute("CREATE TYPE mood AS ENUM ('sad')");
    server.execute("CREATE TABLE moods (k mood, v int8)");
    server.execute("INSERT INTO moods VALUES ('sad', 5)");
    let dictionary = open(
        server,
        "k String, v UInt64",
        "k",
        "TABLE 'moods'",
        "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100 MAX_THREADS_FOR_UPDATES 1)",
    );
    assert_eq!(found(&dictionary.has(&[strings(&["sad"])]).unwrap()), [true]);
    server.execute("ALTER TYPE mood ADD VALUE 'glad'");
    server.execute("INSERT INTO moods VALUES ('glad', 6)");
    assert_eq!(found(&dictionary.has(&[strings(&["glad"])]).unwrap()), [true]);
    // Other texts are not in the dictionary, and do not fail lookups of labels.
    let keys = strings(&["glad", "junk", "", "SAD", "sad"]);
    assert_eq!(found(&dictionary.has(&[keys]).unwrap()), [true, false, false, false, true]);
    assert_eq!(dictionary.status().source_errors, 0);
}

/// Keys that are not texts that the type writes.
fn texts_that_a_type_does_not_write_are_not_there(server: &Server) {
    server.execute("CREATE EXTENSION ltree; CREATE EXTENSION citext");
    for (theirs, key) in [
        ("interval", "1 day 02:03:04"),
        ("pg_lsn", "16/B374D848"),
        ("xid8", "5"),
        ("point", "(1,2)"),
        ("lquery", "a.*"),
        ("ltree", "a.b"),
        ("citext", "Text"),
        ("bytea", "\\x00ff"),
        ("timetz", "12:30:00+01"),
        ("money", "$1.50"),
        ("bit(3)", "101"),
        ("macaddr8", "08:00:2b:01:02:03:04:05"),
        ("json", "{\"a\": 1}"),
        ("int4range", "[1,5)"),
        ("text[]", "{a,b}"),
    ] {
        server.execute(&format!("CREATE TABLE of_texts (k {theirs}, v int8)"));
        server.execute(&format!("INSERT INTO of_texts VALUES ('{key}', 5)"));
        for (columns, layout) in [
            ("k String, v UInt64", "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)"),
            ("k Nullable(String), v UInt64", "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)"),
        ] {
            let dictionary = open(server, columns, "k", "TABLE 'of_texts'", layout);
            let answer = dictionary.has(&[strings(&["junk", key, "", "a b!!"])]).unwrap();
            assert_eq!(found(&answer), [false, true, false, false], "{theirs} {columns}");
        }
        server.execute("DROP TABLE of_texts");
    }
}

fn conditions_and_queries(server: &Server) {
    let columns = "id UInt64, score Float64";
    for source in [
        "TABLE 'users' WHERE 'id > 10 OR id = 3'",
        "QUERY 'SELECT id, score FROM users WHERE {condition} AND (id > 10 OR id = 3)'",
        "QUERY 'SELECT id, score FROM users WHERE id > 10 OR id = 3'",
    ] {
        let dictionary = open(server, columns, "id", source, "DIRECT()");
        let answer = dictionary.get(&[0], &u64s([2, 3, 11])).unwrap();
        assert_eq!(found(&answer.found), [false, true, true], "{source}");
        assert_eq!(dictionary.status().source_rows, 2, "only the keys asked for: {source}");
    }
}

fn replicas(server: &Server) {
    asks_the_next_replica(server.port, |source| {
        open(server, "id UInt64, name String", "id", source, "DIRECT()")
    });
}

/// A key with such a character is not there, and others are.
fn characters_that_an_encoding_lacks(server: &Server) {
    server.execute("CREATE DATABASE old ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    server.execute_in(
        "old",
        "CREATE TABLE spelt (name text, n int4, v int8); \
         INSERT INTO spelt VALUES ('a', 1, 1), ('?', 1, 2), ('Zürich', 1, 3), ('ÿ', 1, 4)",
    );
    let names = ["€", "Zürich", "мир", "a", "ÿ", "😀ÿ", "?", "ü"];
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
    let ones: ArrayRef = Arc::new(Int32Array::from(vec![1; names.len()]));
    for (columns, key, keys) in [
        ("name String, v UInt64", "name", vec![strings(&names)]),
        ("name String, n Int32, v UInt64", "name, n", vec![strings(&names), ones]),
    ] {
        let dictionary = open_in("old", server, columns, key, "TABLE 'spelt'", layout);
        for _ in 0..2 {
            let answer = dictionary.get(&[0], &keys).unwrap();
            assert_eq!(values(&answer.columns[0]), [0, 3, 0, 1, 4, 0, 2, 0], "{key}");
        }
        assert_eq!(dictionary.status().source_errors, 0);
    }
}

/// A column's type decides how it is shown, and how its keys are bound: a connection made before a change shows the
/// column as it is after it.
fn types_that_change_are_noticed(server: &Server) {
    server.execute(
        "CREATE TABLE turned (id int4, at timestamp, v text); \
         INSERT INTO turned VALUES (1, '2024-01-01 10:00:00', '7'), (2, '2024-01-01 11:00:00', '8')",
    );
    let layout = "COMPLEX_KEY_DIRECT(MAX_THREADS_FOR_UPDATES 1)";
    let zone = "DateTime('Asia/Tokyo')";
    let columns = format!("id UInt64, at {zone}, v UInt64");
    let by_id = open(server, &columns, "id", "TABLE 'turned'", layout);
    let by_time = open(server, &format!("at {zone}, v UInt64"), "at", "TABLE 'turned'", layout);
    let moment = |text: &str| of_text(&DataType::parse(zone).unwrap(), text);
    let is_shown_as = |text: &str| {
        shows(&by_id, &u64s([1]), &[text, "7"]);
        shows(&by_time, &[moment(text)], &["7"]);
        assert_eq!(all_rows(&by_time).unwrap().num_rows(), 2);
    };
    is_shown_as("2024-01-01 10:00:00");
    for (change, at) in [
        ("at TYPE timestamptz USING at AT TIME ZONE 'UTC'", "2024-01-01 19:00:00"),
        ("at TYPE timestamp USING at AT TIME ZONE 'UTC'", "2024-01-01 10:00:00"),
        ("at TYPE text USING to_char(at, 'YYYY-MM-DD HH24:MI:SS')", "2024-01-01 10:00:00"),
        ("at TYPE timestamptz USING (at || '+00')::timestamptz", "2024-01-01 19:00:00"),
        ("id TYPE int8, ALTER v TYPE int4 USING v::int4", "2024-01-01 19:00:00"),
    ] {
        server.execute(&format!("ALTER TABLE turned ALTER {change}"));
        is_shown_as(at);
    }
    assert_eq!((by_id.status().source_errors, by_time.status().source_errors), (0, 0));
}

/// A role may have settings in which texts are written in other forms, and a backslash in a literal is none.
fn settings_of_a_role_do_not_matter(server: &Server) {
    server.execute(
        "CREATE TABLE odd_role (raw bytea, took interval, v int8, at text); \
         INSERT INTO odd_role VALUES ('\\x00ff', '1 day 02:03:04', 5, 'a\\'' OR true --'); \
         ALTER ROLE granary SET bytea_output = 'escape'; ALTER ROLE granary SET intervalstyle = 'iso_8601'; \
         ALTER ROLE granary SET datestyle = 'SQL, DMY'; ALTER ROLE granary SET standard_conforming_strings = off; \
         ALTER ROLE granary SET backslash_quote = on",
    );
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 10)";
    for (key, text) in [("raw", "\\x00ff"), ("took", "1 day 02:03:04")] {
        let columns = format!("{key} String, v UInt64");
        let dictionary = open(server, &columns, key, "TABLE 'odd_role'", layout);
        assert_eq!(values(&dictionary.get(&[0], &[strings(&[text])]).unwrap().columns[0]), [5], "{key}");
    }
    let source = "TABLE 'odd_role' UPDATE_FIELD 'at' UPDATE_LAG 0";
    let dictionary = open(server, "v UInt64, at String", "v", source, "CACHE(SIZE_IN_CELLS 10)");
    dictionary.take_updates().unwrap();
    dictionary.get(&[0], &u64s([5])).unwrap();
    assert_eq!(dictionary.take_updates().unwrap(), 1);
    server.execute("ALTER ROLE granary RESET ALL");
}

fn wrong_settings(server: &Server) {
    let dictionary = open(server, "id UInt64, nosuch String", "id", "TABLE 'users'", "DIRECT()");
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.code() == 614 && error.message().contains("column \"nosuch\" does not exist"), "{error}");
    let sql = dictionary.definition().to_sql_with_secrets().replace("'secret'", "'wrong'");
    let definition = parse_create(&sql).unwrap().definition;
    let dictionary = Dictionary::open(definition, &Environment::new(std::env::temp_dir())).unwrap();
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.message().contains("password authentication failed"), "{error}");
    assert!(!error.message().contains("wrong"), "{error}");
}

fn a_connection_that_the_server_has_ended_is_made_anew(server: &Server) {
    server.execute("ALTER ROLE granary SET idle_session_timeout = '5s'");
    let layout = "CACHE(SIZE_IN_CELLS 8 MAX_THREADS_FOR_UPDATES 1)";
    makes_connections_anew(|| open(server, "id UInt64, name String", "id", "TABLE 'users'", layout));
    server.execute("ALTER ROLE granary RESET idle_session_timeout");
}

fn a_server_that_falls_silent_is_given_up(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let open = |port: u16| {
        // One thread: all requests use the connection of the first.
        let sql = format!(
            "CREATE DICTIONARY p (id UInt64, name String) PRIMARY KEY id \
             SOURCE(POSTGRESQL(HOST '127.0.0.1' PORT {port} USER 'granary' PASSWORD 'secret' DB 'postgres' TABLE 'users')) \
             LAYOUT(CACHE(SIZE_IN_CELLS 1000 MAX_THREADS_FOR_UPDATES 1 QUERY_WAIT_TIMEOUT_MILLISECONDS 1000)) LIFETIME(1000)"
        );
        Dictionary::open(definition(&sql), &environment).unwrap()
    };
    let proxy = Proxy::before(server.port);
    let dictionary = open(proxy.port);
    let answer = comes_back(&clock, || dictionary.get(&[0], &u64s([1])));
    assert_eq!(texts(&answer.columns[0]), ["user 1"]);
    proxy.fall_silent();
    let said = gives_up(&dictionary);
    assert!(said.contains("PostgreSQL: no whole answer within 2000 ms. (TIMEOUT_EXCEEDED)"), "{said}");
    // The thread that asked has a new connection.
    let answer = comes_back(&clock, || dictionary.get(&[0], &u64s([2])));
    assert_eq!(texts(&answer.columns[0]), ["user 2"]);
    // A server that takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let said = gives_up(&open(silent.local_addr().unwrap().port()));
    assert!(said.contains("no answer within 2000 ms"), "{said}");
}

fn outage(server: &mut Server) {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let sql = format!(
        "CREATE DICTIONARY p (id UInt64, name String) PRIMARY KEY id \
         SOURCE(POSTGRESQL(HOST '127.0.0.1' PORT {} USER 'granary' PASSWORD 'secret' DB 'postgres' TABLE 'users')) \
         LAYOUT(CACHE(SIZE_IN_CELLS 1000 ALLOW_READ_EXPIRED_KEYS 1 STRICT_MAX_LIFETIME_SECONDS 1000)) LIFETIME(10)",
        server.port
    );
    let dictionary = Dictionary::open(definition(&sql), &environment).unwrap();
    assert_eq!(texts(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]), ["user 1"]);
    server.stop();
    clock.fetch_add(20, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(texts(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]), ["user 1"]);
    assert_eq!(dictionary.get(&[0], &u64s([1, 2])).unwrap_err().code(), 510);
}
