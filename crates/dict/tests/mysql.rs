//! Dictionaries over a real MariaDB.

mod common;
#[path = "common/process.rs"]
mod process;
#[path = "common/mariadb.rs"]
mod server;

use arrow::array::{ArrayRef, AsArray, Float32Array, Int32Array, Int64Array};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, TimestampSecondType, UInt8Type,
};
use common::*;
use granary_dict::{DataType, Dictionary, Environment, parse_create};
use mysql::prelude::Queryable;
use server::Server;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn sql(server: &Server, columns: &str, key: &str, source: &str, layout: &str) -> String {
    let lifetime = if layout.contains("DIRECT") { "" } else { "LIFETIME(1000)" };
    format!(
        "CREATE DICTIONARY m ({columns}) PRIMARY KEY {key} \
         SOURCE(MYSQL(HOST '127.0.0.1' PORT {} USER 'granary' PASSWORD 'it''s secret' DB 'app' {source})) \
         LAYOUT({layout}) {lifetime}",
        server.port
    )
}

fn open(server: &Server, columns: &str, key: &str, source: &str, layout: &str) -> Dictionary {
    let sql = sql(server, columns, key, source, layout);
    Dictionary::open(definition(&sql), &Environment::new(std::env::temp_dir())).unwrap()
}

/// `SELECT * FROM direct LIMIT 10`, and a row that cannot be read: later rows are not read.
fn an_answer_that_nobody_takes_ends(server: &Server) {
    let endless = "SELECT a.seq AS id, if(a.seq = 5 AND b.seq = 1, %s, 7) AS v FROM seq_1_to_1000000 AS b, seq_1_to_100000 AS a";
    let ends = |what: &str| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.running().iter().any(|sql| sql.contains("seq_1_to_1000000")) {
            assert!(Instant::now() < deadline, "{what}: it goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let of_numbers = |value: &str| {
        let source = format!("QUERY '{}'", endless.replace("%s", value));
        open(server, "id UInt64, v UInt64", "id", &source, "DIRECT()")
    };
    let direct = of_numbers("7");
    let mut rows = direct.resident().unwrap();
    assert!(rows.next().unwrap().unwrap().num_rows() > 0);
    drop(rows);
    ends("nobody takes it");
    let wrong = of_numbers("-1");
    assert!(wrong.resident().unwrap().any(|rows| rows.is_err()));
    ends("a row is wrong");
    // For a lookup, too, with the original error.
    let source =
        format!("QUERY '{}'", endless.replace("%s", "-1").replace("a.seq AS id", "concat(a.seq) AS id"));
    let wrong = open(server, "id String, v UInt64", "id", &source, "COMPLEX_KEY_DIRECT()");
    let wrong = wrong.get(&[0], &[strings(&["5"])]).unwrap_err();
    assert!(wrong.message().contains("Column v"), "{wrong}");
    ends("a row of a key is wrong");
}

/// If a second connection reaches another server, the number of the first is another client's there.
fn a_connection_of_somebody_else_goes_on(server: &Server) {
    let mut other = server.connection();
    let port = before_with_number(server.port, other.query_first("SELECT connection_id()").unwrap().unwrap());
    let source = "QUERY 'SELECT seq AS id, 7 AS v FROM seq_1_to_3000000'";
    let sql = sql(server, "id UInt64, v UInt64", "id", source, "DIRECT()");
    let sql = sql.replace(&format!("PORT {}", server.port), &format!("PORT {port}"));
    let direct = Dictionary::open(definition(&sql), &Environment::new(std::env::temp_dir())).unwrap();
    let mut rows = direct.resident().unwrap();
    assert!(rows.next().unwrap().unwrap().num_rows() > 0);
    drop(rows);
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.running().iter().any(|sql| sql.contains("seq_1_to_3000000")) {
        assert!(Instant::now() < deadline, "it is not read to its end");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(other.query_first::<u64, _>("SELECT 7").unwrap(), Some(7));
}

/// A proxy before a server that gives each connection this number.
fn before_with_number(server: u16, number: u32) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) =
                (client.unwrap(), TcpStream::connect(("127.0.0.1", server)).unwrap());
            let mut head = [0; 4];
            server.read_exact(&mut head).unwrap();
            let mut greeting = vec![0; usize::from(head[0]) | usize::from(head[1]) << 8];
            server.read_exact(&mut greeting).unwrap();
            // After the version of the protocol, and that of the server with a zero at its end.
            let at = 2 + greeting[1..].iter().position(|&byte| byte == 0).unwrap();
            greeting[at..at + 4].copy_from_slice(&number.to_le_bytes());
            client.write_all(&[&head[..], &greeting].concat()).unwrap();
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            for (mut from, mut to) in [(client, server), back] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    port
}

#[test]
fn mysql() {
    let mut server = Server::start();
    for sql in [
        "CREATE TABLE app.users (id bigint unsigned PRIMARY KEY, name varchar(50), score float, exact double, born date, \
             seen timestamp(3) NULL, local datetime, balance decimal(12, 3), ok tinyint(1), flags bit(12), \
             `Odd ``\"name` varchar(20), took time)",
        "INSERT INTO app.users SELECT seq, concat('user ', seq), seq / 3e0, seq / 3e0, date '2000-01-01' + interval seq % 1000 day, \
             timestamp '2024-02-29 12:00:00.5' + interval seq second, timestamp '2024-02-29 12:00:00' + interval seq second, \
             seq * 1.125, seq % 2 = 0, seq % 4096, 'odd', sec_to_time(seq) FROM app.seq_1_to_100000",
        "INSERT INTO app.users (id) VALUES (18446744073709551615)",
        "CREATE TABLE app.pairs (a bigint, b varchar(20), v int, PRIMARY KEY (a, b))",
        "INSERT INTO app.pairs VALUES (1, 'it''s', 10), (1, 'b', 11), (2, 'b\\\\', 12), (3, '\"é', 13)",
        "CREATE TABLE app.holes (a int, v int)",
        "INSERT INTO app.holes VALUES (NULL, 5), (3, 6)",
        "SET STATEMENT sql_mode = '' FOR CREATE TABLE app.odd (id int PRIMARY KEY, day date, moment datetime, raw blob)",
        "SET STATEMENT sql_mode = '' FOR INSERT INTO app.odd VALUES (1, '0000-00-00', '0000-00-00 00:00:00', 'text'), \
             (2, '2024-02-29', '1960-01-01 00:00:00', x'ff00'), (3, NULL, NULL, NULL)",
    ] {
        server.execute(sql);
    }
    every_type(&server);
    types_beyond_arrow(&server);
    local_times(&server);
    zero_dates_and_bad_bytes(&server);
    an_answer_that_nobody_takes_ends(&server);
    a_connection_of_somebody_else_goes_on(&server);
    let direct = open(&server, "id UInt64, name String", "id", "TABLE 'users'", "DIRECT()");
    long_answers_are_refused(&direct, 1..2000);
    many_keys(&server);
    composite(&server);
    floats(&server);
    conditions_and_queries(&server);
    what_looks_like_a_parameter(&server);
    replicas(&server);
    statements_are_closed(&server);
    settings_of_the_server_do_not_matter(&server);
    keys_that_a_character_set_lacks(&server);
    numbers_that_are_texts(&server);
    key_columns_that_change_are_noticed(&server);
    wrong_settings(&server);
    a_connection_that_the_server_has_ended_is_made_anew(&server);
    a_statement_that_takes_too_long_is_ended(&server);
    an_error_in_the_middle_leaves_nothing(&server);
    updates(&server);
    outage(&mut server);
}

fn types_beyond_arrow(server: &Server) {
    server.execute(
        "CREATE TABLE app.hosts (id int PRIMARY KEY, seen timestamp(6), local datetime(3), ip varchar(20), six inet6, \
             tags json, big decimal(60, 3), wide varchar(50))",
    );
    server.execute(
        "INSERT INTO app.hosts VALUES (1, timestamp '2024-02-29 12:00:00.123456', '1969-12-31 23:59:59.75', '10.0.0.1', \
             '2001:db8::1', '[\"it\\'s\", null]', 123456789012345678901234567890123456789012345678901234567.125, \
             '-170141183460469231731687303715884105728')",
    );
    let columns = "id UInt64, seen DateTime64(6, 'Asia/Tokyo'), local DateTime64(1), ip IPv4, six IPv6, \
         tags Array(Nullable(String)), big Decimal(60, 3), wide Int128";
    let dictionary = open(server, columns, "id", "TABLE 'hosts'", "CACHE(SIZE_IN_CELLS 100)");
    shows(
        &dictionary,
        &u64s([1]),
        &[
            "2024-02-29 18:00:00.123456",
            "1969-12-31 23:59:59.7",
            "10.0.0.1",
            "2001:db8::1",
            r"['it\'s',NULL]",
            "123456789012345678901234567890123456789012345678901234567.125",
            "-170141183460469231731687303715884105728",
        ],
    );
    server.execute("CREATE TABLE app.labels (id int PRIMARY KEY, labels json, ports varchar(50), hops text)");
    server.execute(
        r#"INSERT INTO app.labels VALUES (1, '{"b": "x", "it''s": 5}', '{80:''http'',80:''x''}', '[(1,''a'')]')"#,
    );
    let columns =
        "id UInt64, labels Map(String, String), ports Map(UInt16, String), hops Nested(n UInt8, s String)";
    let labels = open(server, columns, "id", "TABLE 'labels'", "CACHE(SIZE_IN_CELLS 100)");
    shows(&labels, &u64s([1]), &[r"{'b':'x','it\'s':'5'}", "{80:'http',80:'x'}", "[(1,'a')]"]);
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
    let by_address = open(server, HOSTS_BY_ADDRESS, "(ip, seen)", "TABLE 'hosts'", layout);
    shows_the_host(&by_address);
}

/// A `datetime` is what the clocks of the column's zone show, a `timestamp` a moment; in keys, too.
fn local_times(server: &Server) {
    server.execute("CREATE TABLE app.clocks (id int, local datetime, seen timestamp NULL, fine datetime(6))");
    // The server's zone is three hours before UTC.
    server.execute(
        "INSERT INTO app.clocks VALUES (1, '2024-01-01 10:00:00', '2024-01-01 13:00:00', '2024-01-01 10:00:00.123456')",
    );
    let columns = "id UInt64, local DateTime('Asia/Tokyo'), seen DateTime('Asia/Tokyo'), fine DateTime64(3, 'Asia/Tokyo'), \
         plain DateTime EXPRESSION local";
    let dictionary = open(server, columns, "id", "TABLE 'clocks'", "CACHE(SIZE_IN_CELLS 100)");
    let at_ten = "2024-01-01 10:00:00";
    let row = [at_ten, "2024-01-01 19:00:00", "2024-01-01 10:00:00.123", at_ten];
    shows(&dictionary, &u64s([1]), &row);
    for (key, data_type, text) in [
        ("local", "DateTime('Asia/Tokyo')", at_ten),
        ("fine", "DateTime64(6, 'Asia/Tokyo')", "2024-01-01 10:00:00.123456"),
        ("seen", "DateTime('Asia/Tokyo')", "2024-01-01 19:00:00"),
    ] {
        let columns = format!("{key} {data_type}, id UInt32");
        let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
        let by_time = open(server, &columns, key, "TABLE 'clocks'", layout);
        shows(&by_time, &[of_text(&DataType::parse(data_type).unwrap(), text)], &["1"]);
    }
}

fn updates(server: &Server) {
    server.execute("CREATE TABLE app.news (id bigint, v bigint, at datetime)");
    let dictionary = open(server, NEWS.0, "id", NEWS.1, "CACHE(SIZE_IN_CELLS 1000)");
    changes_are_taken_in(&dictionary, &|rows| {
        server.execute("TRUNCATE TABLE app.news");
        server.execute(&format!("INSERT INTO app.news VALUES {}", news(rows)));
    });
    let number = Some("cannot be taken from a number; say UPDATE_LAG 0");
    columns_tell_changes(
        &[
            ("int unsigned", "1700000000", "1700000001", "", number),
            ("int unsigned", "20261127", "20261128", "", number),
            ("int unsigned", "1700000000", "1700000001", "UPDATE_LAG 0", None),
            ("decimal(30, 3)", "123456789012345678901.125", "123456789012345678901.25", "UPDATE_LAG 0", None),
            ("date", "'2026-11-27'", "'2026-11-27'", "", None),
        ],
        &|data_type, row| {
            let table = format!("app.marked (id bigint, v bigint, at {data_type})");
            server.execute(&format!("CREATE OR REPLACE TABLE {table}"));
            server.execute(&format!("INSERT INTO app.marked VALUES {row}"));
        },
        &|source| open(server, NEWS.0, "id", source, "CACHE(SIZE_IN_CELLS 1000)"),
    );
}

fn every_type(server: &Server) {
    let columns = "id UInt64, name String DEFAULT 'nobody', score Float32, exact Float64, born Date, \
         seen DateTime('America/New_York'), local DateTime, balance Nullable(Decimal(12, 3)), ok Bool, flags UInt16, \
         `Odd ``\"name` String, upper String EXPRESSION upper(name), took String, text String EXPRESSION seen, \
         day String EXPRESSION born";
    let dictionary = open(server, columns, "id", "TABLE 'users'", "CACHE(SIZE_IN_CELLS 1000)");
    let all: Vec<usize> = (0..dictionary.definition().structure.attributes.len()).collect();
    let answer = dictionary.get(&all, &u64s([4, 5, u64::MAX, 7_777_777])).unwrap();
    assert_eq!(found(&answer.found), [true, true, true, false]);
    let column = |i: usize| &answer.columns[i];
    assert_eq!(texts(column(0)), ["user 4", "user 5", "nobody", "nobody"]);
    assert_eq!(column(1).as_primitive::<Float32Type>().values()[..3], [4.0 / 3.0, 5.0 / 3.0, 0.0]);
    assert_eq!(column(2).as_primitive::<Float64Type>().values()[..3], [4.0 / 3.0, 5.0 / 3.0, 0.0]);
    assert_eq!(column(3).as_primitive::<Date32Type>().value(0), 10_957 + 4);
    // The server's zone is three hours before UTC; a timestamp is a moment, a datetime none.
    assert_eq!(column(4).as_primitive::<TimestampSecondType>().value(0), 1_709_208_000 - 3 * 3600 + 4);
    assert_eq!(column(5).as_primitive::<TimestampSecondType>().value(0), 1_709_208_000 + 4);
    let balance: Vec<Option<i128>> = column(6).as_primitive::<Decimal128Type>().iter().collect();
    assert_eq!(balance, [Some(4500), Some(5625), None, None]);
    assert!(column(7).as_boolean().value(0) && !column(7).as_boolean().value(1));
    assert_eq!(column(8).as_primitive::<arrow::datatypes::UInt16Type>().values()[..2], [4, 5]);
    assert_eq!(texts(column(9))[0], "odd");
    assert_eq!(texts(column(10))[..2], ["USER 4", "USER 5"]);
    assert_eq!(texts(column(11))[0], "00:00:04");
    assert_eq!(texts(column(12))[0], "2024-02-29 09:00:04.500000");
    assert_eq!(texts(column(13))[0], "2000-01-05");
}

fn zero_dates_and_bad_bytes(server: &Server) {
    let columns = "id UInt64, day Date DEFAULT '1999-12-31', moment DateTime DEFAULT '2001-01-01 00:00:00'";
    let dictionary = open(server, columns, "id", "TABLE 'odd'", "DIRECT()");
    let answer = dictionary.get(&[0, 1], &u64s([1, 3])).unwrap();
    assert_eq!(answer.columns[0].as_primitive::<Date32Type>().values(), &[10_956, 10_956]);
    let moments = answer.columns[1].as_primitive::<TimestampSecondType>();
    assert_eq!(moments.values(), &[978_307_200, 978_307_200]);
    let error = dictionary.get(&[0], &u64s([2])).unwrap_err();
    assert!(error.message().contains("Column moment of the source: Cannot parse '1960-01-01"), "{error}");
    let dictionary = open(server, "id UInt64, raw String", "id", "TABLE 'odd'", "DIRECT()");
    assert_eq!(texts(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]), ["text"]);
    let error = dictionary.get(&[0], &u64s([1, 2])).unwrap_err();
    assert!(error.message().contains("Column raw of the source is not valid UTF-8"), "{error}");
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
    assert_eq!(status.source, "MySQL: app.users");
    let direct = open(server, "id UInt64, name String", "id", "TABLE 'users'", "DIRECT()");
    assert_eq!(all_rows(&direct).unwrap().num_rows(), 100_001);
    reads_whole_in_batches(&direct);
}

fn composite(server: &Server) {
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 1000)";
    let pairs = open(server, "a Int64, b String, v Int32 DEFAULT -1", "(a, b)", "TABLE 'pairs'", layout);
    let a: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2, 2, 1, 3, -1]));
    let b = strings(&["it's", "b", "b\\", "x", "nul\0", "\"é", "') OR 1=1 -- "]);
    let answer = pairs.get(&[0], &[a, b]).unwrap();
    assert_eq!(answer.columns[0].as_primitive::<Int32Type>().values(), &[10, 11, 12, -1, -1, 13, -1]);
    assert_eq!(pairs.status().source_rows, 4);
    // Thousands of pairs: several statements.
    let a: ArrayRef = Arc::new(Int64Array::from_iter_values((0..20_000).map(|i| i % 7)));
    let b: Vec<String> =
        (0..20_000).map(|i| if i == 19_993 { "it's".to_string() } else { format!("k{i}") }).collect();
    let b: Vec<&str> = b.iter().map(String::as_str).collect();
    let answer = pairs.get(&[0], &[a, strings(&b)]).unwrap();
    assert_eq!((19_993 % 7, answer.found.true_count()), (1, 1));
    let nullable = open(server, "a Nullable(Int32), v UInt64", "a", "TABLE 'holes'", layout);
    let a: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(3), Some(4)]));
    assert_eq!(values(&nullable.get(&[0], &[a]).unwrap().columns[0]), [5, 6, 0]);
}

/// A FLOAT is compared in 64 bits; so is a DOUBLE, which has 0.1 itself.
fn floats(server: &Server) {
    server.execute("CREATE TABLE app.floats (f float, d double, v bigint)");
    server.execute("INSERT INTO app.floats VALUES (0.1, 0.1, 5), (1e30, 1e30, 6), (-1.5, -1.5, 7)");
    let keys: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 1e30, -1.5, 0.2]));
    for key in ["f", "d"] {
        let columns = format!("{key} Float32, v UInt64");
        let dictionary = open(server, &columns, key, "TABLE 'floats'", "COMPLEX_KEY_DIRECT()");
        assert_eq!(
            values(&dictionary.get(&[0], std::slice::from_ref(&keys)).unwrap().columns[0]),
            [5, 6, 7, 0],
            "{key}"
        );
    }
    let columns = "f Float32, v Int64, d Float64";
    let pairs = open(server, columns, "(f, v)", "TABLE 'floats'", "COMPLEX_KEY_DIRECT()");
    let v: ArrayRef = Arc::new(Int64Array::from(vec![5, 6, 7, 5]));
    assert_eq!(found(&pairs.has(&[keys, v]).unwrap()), [true, true, true, false]);
}

fn conditions_and_queries(server: &Server) {
    for source in [
        "TABLE 'users' WHERE 'id > 10 OR id = 3'",
        "QUERY 'SELECT id, exact FROM users WHERE {condition} AND (id > 10 OR id = 3)'",
        "QUERY 'SELECT id, exact FROM users WHERE id > 10 OR id = 3'",
    ] {
        let dictionary = open(server, "id UInt64, exact Float64", "id", source, "DIRECT()");
        let answer = dictionary.get(&[0], &u64s([2, 3, 11])).unwrap();
        assert_eq!(found(&answer.found), [false, true, true], "{source}");
        assert_eq!(dictionary.status().source_rows, 2, "{source}");
    }
}

/// The client library takes what is quoted for the name of a parameter where a quote follows a minus.
fn what_looks_like_a_parameter(server: &Server) {
    server.execute("CREATE TABLE app.named (k varchar(20) PRIMARY KEY, a int, b int)");
    let texts = ["x`", "k:v", "*/", ":_", "'", "/*:a*/", "\\:b", "::c"];
    for text in texts {
        let escaped = text.replace('\\', "\\\\").replace('\'', "\\'");
        server.execute(&format!("INSERT INTO app.named VALUES ('{escaped}', 3, 1)"));
    }
    for filter in ["", "WHERE 'a - 1 <> \\'k:v\\''"] {
        let columns = "k String, v Int32 EXPRESSION `a`-`b`";
        let source = format!("TABLE 'named' {filter}");
        let named = open(server, columns, "k", &source, "COMPLEX_KEY_DIRECT()");
        let answer = named.get(&[0], &[strings(&texts)]).unwrap();
        assert_eq!(answer.columns[0].as_primitive::<Int32Type>().values(), &[2; 8]);
        for text in texts {
            assert_eq!(named.has(&[strings(&[text])]).unwrap().true_count(), 1, "{text}");
        }
    }
}

fn replicas(server: &Server) {
    asks_the_next_replica(server.port, |source| {
        open(server, "id UInt64, name String", "id", source, "DIRECT()")
    });
}

fn statements_are_closed(server: &Server) {
    let columns = "id UInt64, local DateTime('Asia/Tokyo')";
    let direct = open(server, columns, "id", "TABLE 'users'", "DIRECT()");
    let layout = "COMPLEX_KEY_DIRECT()";
    let by_time = open(server, "local DateTime('Asia/Tokyo'), id UInt64", "local", "TABLE 'users'", layout);
    let noon = [of_text(&DataType::parse("DateTime('Asia/Tokyo')").unwrap(), "2024-02-29 12:00:01")];
    for id in 1..=100 {
        assert!(found(&direct.has(&u64s([id])).unwrap())[0]);
        assert!(found(&by_time.has(&noon).unwrap())[0]);
    }
    // The server says nothing when it closes one: it may not have come to the last.
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.prepared() > 0 {
        assert!(Instant::now() < deadline, "{} statements stay", server.prepared());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Such a key is in no row; an index finds the others as before.
fn keys_that_a_character_set_lacks(server: &Server) {
    for (number, charset) in
        ["latin1", "utf8mb3", "utf8mb4", "latin1 COLLATE latin1_german1_ci", "koi8r", "binary"]
            .iter()
            .enumerate()
    {
        let name = match *charset {
            "binary" => "name varbinary(20)".to_string(),
            charset => format!("name varchar(20) CHARACTER SET {charset}"),
        };
        server.execute(&format!(
            "CREATE TABLE app.spelt{number} ({name}, n int, v bigint, PRIMARY KEY (name, n))"
        ));
        let last = if *charset == "koi8r" { "мир" } else { "é" };
        server.execute(&format!("SET NAMES utf8mb4; INSERT INTO app.spelt{number} VALUES ('a', 1, 1), ('?', 1, 2), ('{last}', 1, 3)"));
        let by_name = strings(&["😀", last, "a", "?", "x😀"]);
        let ones: ArrayRef = Arc::new(Int32Array::from(vec![1; 5]));
        let source = format!("TABLE 'spelt{number}'");
        let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)";
        let one = open(server, "name String, v UInt64", "name", &source, layout);
        let two = open(server, "name String, n Int32, v UInt64", "(name, n)", &source, layout);
        for (dictionary, keys) in [(one, vec![Arc::clone(&by_name)]), (two, vec![by_name, ones])] {
            let answer = dictionary.get(&[0], &keys).unwrap();
            assert_eq!(values(&answer.columns[0]), [0, 3, 1, 2, 0], "{charset}");
        }
    }
}

/// A number is compared with a text as its text: as a number, 0 would be all that begin with none, and 2 also '02'.
fn numbers_that_are_texts(server: &Server) {
    server.execute("CREATE TABLE app.numbered (id varchar(20) PRIMARY KEY, v bigint)");
    server.execute("INSERT INTO app.numbered VALUES ('0', 1), ('zero', 2), ('02', 3), ('3', 4), ('-5', 5)");
    let layout = "CACHE(SIZE_IN_CELLS 100)";
    let dictionary = open(server, "id UInt64, v UInt64", "id", "TABLE 'numbered'", layout);
    let answer = dictionary.get(&[0], &u64s([0, 2, 3])).unwrap();
    assert_eq!(values(&answer.columns[0]), [1, 0, 4]);
    assert_eq!(dictionary.status().source_rows, 2);
    let signed =
        open(server, "id Int32, v UInt64", "id", "TABLE 'numbered'", "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100)");
    let keys: ArrayRef = Arc::new(Int32Array::from(vec![-5, 0]));
    assert_eq!(values(&signed.get(&[0], &[keys]).unwrap().columns[0]), [5, 1]);
}

/// A connection made before a key column was changed writes keys for the changed column afterwards.
fn key_columns_that_change_are_noticed(server: &Server) {
    server.execute("CREATE TABLE app.turned (at datetime, v bigint)");
    server.execute("INSERT INTO app.turned VALUES ('2024-01-01 10:00:00', 7)");
    let zone = DataType::parse("DateTime('Asia/Tokyo')").unwrap();
    let layout = "COMPLEX_KEY_DIRECT(MAX_THREADS_FOR_UPDATES 1)";
    let columns = "at DateTime('Asia/Tokyo'), v UInt64";
    let by_time = open(server, columns, "at", "TABLE 'turned'", layout);
    let is_at = |text: &str| shows(&by_time, &[of_text(&zone, text)], &["7"]);
    is_at("2024-01-01 10:00:00");
    // The server's zone is three hours before UTC, and Tokyo's nine.
    server.execute("ALTER TABLE app.turned MODIFY at timestamp");
    is_at("2024-01-01 16:00:00");
    server.execute("ALTER TABLE app.turned MODIFY at datetime");
    is_at("2024-01-01 10:00:00");
    assert_eq!(by_time.status().source_errors, 0);
    // A key is written in the character set of its column.
    server.execute("CREATE TABLE app.respelt (name varchar(20) CHARACTER SET latin1, v bigint)");
    server.execute("INSERT INTO app.respelt VALUES ('a', 7)");
    let by_name = open(server, "name String, v UInt64", "name", "TABLE 'respelt'", layout);
    shows(&by_name, &[strings(&["a"])], &["7"]);
    server.execute("ALTER TABLE app.respelt CONVERT TO CHARACTER SET utf8mb4");
    server.execute("SET NAMES utf8mb4; INSERT INTO app.respelt VALUES ('мир', 7)");
    shows(&by_name, &[strings(&["мир"])], &["7"]);
}

/// Settings for all sessions: to read one snapshot until a commit, and to cut answers.
fn settings_of_the_server_do_not_matter(server: &Server) {
    server.execute("CREATE TABLE app.moving (id int PRIMARY KEY, v bigint) ENGINE = InnoDB");
    server.execute("INSERT INTO app.moving VALUES (1, 1), (2, 1), (3, 1)");
    for setting in ["autocommit = 0", "sql_select_limit = 2"] {
        server.execute(&format!("SET GLOBAL {setting}"));
        let layout = "DIRECT(MAX_THREADS_FOR_UPDATES 1)";
        let direct = open(server, "id UInt64, v UInt64", "id", "TABLE 'moving'", layout);
        for v in 1..4 {
            server.execute(&format!("UPDATE app.moving SET v = {v}; COMMIT"));
            let answer = direct.get(&[0], &u64s([1, 2, 3])).unwrap();
            assert_eq!(values(&answer.columns[0]), [v; 3], "{setting}");
        }
        server.execute("SET GLOBAL autocommit = 1, GLOBAL sql_select_limit = 18446744073709551615");
    }
}

fn wrong_settings(server: &Server) {
    let dictionary = open(server, "id UInt64, nosuch String", "id", "TABLE 'users'", "DIRECT()");
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.code() == 1000 && error.message().contains("Unknown column 'nosuch'"), "{error}");
    let sql = dictionary.definition().to_sql_with_secrets().replace("it\\'s secret", "wrong-word");
    let definition = parse_create(&sql).unwrap().definition;
    let dictionary = Dictionary::open(definition, &Environment::new(std::env::temp_dir())).unwrap();
    let error = dictionary.get(&[0], &u64s([1])).unwrap_err();
    assert!(error.code() == 279 && error.message().contains("Access denied for user"), "{error}");
    assert!(!error.message().contains("wrong-word"), "{error}");
}

fn a_connection_that_the_server_has_ended_is_made_anew(server: &Server) {
    server.execute("SET GLOBAL wait_timeout = 5");
    let layout = "CACHE(SIZE_IN_CELLS 8 MAX_THREADS_FOR_UPDATES 1)";
    makes_connections_anew(|| open(server, "id UInt64, name String", "id", "TABLE 'users'", layout));
    server.execute("SET GLOBAL wait_timeout = 28800");
}

fn a_statement_that_takes_too_long_is_ended(server: &Server) {
    let source = "QUERY 'SELECT id, exact + sleep(1000) AS exact FROM users WHERE {condition}'";
    let layout = "CACHE(SIZE_IN_CELLS 8 QUERY_WAIT_TIMEOUT_MILLISECONDS 1000)";
    let dictionary = open(server, "id UInt64, exact Float64", "id", source, layout);
    let said = gives_up(&dictionary);
    assert!(said.contains("TIMEOUT_EXCEEDED"), "{said}");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !server.running().is_empty() {
        assert!(Instant::now() < deadline, "still running: {:?}", server.running());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(dictionary.status().element_count, 0);
}

/// The first rows of a failing answer are not kept, and none of its keys as absent: keys without the bad value are
/// asked for again.
fn an_error_in_the_middle_leaves_nothing(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let source = "QUERY 'SELECT id, if(id = 90000 AND now() < (SELECT max(moment) FROM until), \"no number\", id) AS n FROM users'";
    server.execute("CREATE TABLE app.until (moment datetime)");
    server.execute("INSERT INTO app.until VALUES ('2100-01-01 00:00:00')");
    let sql = sql(server, "id UInt64, n UInt64", "id", source, "CACHE(SIZE_IN_CELLS 200000)");
    let dictionary = Dictionary::open(definition(&sql), &environment).unwrap();
    let keys = || u64s(89_000..91_000);
    let error = dictionary.get(&[0], &keys()).unwrap_err();
    assert!(error.message().contains("no number"), "{error}");
    assert_eq!(dictionary.status().element_count, 1999);
    assert_eq!(dictionary.has(&u64s([89_000, 89_999, 90_001])).unwrap().true_count(), 3);
    let error = dictionary.get(&[0], &u64s([90_000])).unwrap_err();
    assert!(error.message().contains("no number"), "{error}");
    server.execute("DELETE FROM app.until");
    clock.fetch_add(20, Ordering::SeqCst);
    assert_eq!(dictionary.get(&[0], &keys()).unwrap().found.true_count(), 2000);
}

fn outage(server: &mut Server) {
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let layout = "CACHE(SIZE_IN_CELLS 1000 ALLOW_READ_EXPIRED_KEYS 1 STRICT_MAX_LIFETIME_SECONDS 1000000)";
    let sql = sql(server, "id UInt64, ok UInt8, name String", "id", "TABLE 'users'", layout);
    let dictionary = Dictionary::open(definition(&sql), &environment).unwrap();
    let answer = dictionary.get(&[0, 1], &u64s([2])).unwrap();
    assert_eq!(answer.columns[0].as_primitive::<UInt8Type>().values(), &[1]);
    server.stop();
    clock.fetch_add(2000, Ordering::SeqCst);
    assert_eq!(texts(&dictionary.get(&[1], &u64s([2])).unwrap().columns[0]), ["user 2"]);
    assert_eq!(dictionary.get(&[1], &u64s([2, 3])).unwrap_err().code(), 510);
    server.start_again();
    let answer = comes_back(&clock, || dictionary.get(&[1], &u64s([2, 3])));
    assert_eq!(texts(&answer.columns[0]), ["user 2", "user 3"]);
}
