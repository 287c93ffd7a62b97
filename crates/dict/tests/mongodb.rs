//! Dictionaries over FerretDB, which speaks MongoDB's protocol.

#[path = "common/certificate.rs"]
mod certificate;
mod common;
#[path = "common/postgres.rs"]
mod postgres_server;
#[path = "common/process.rs"]
mod process;
#[path = "common/ferretdb.rs"]
mod server;

use arrow::array::{ArrayRef, AsArray};
use common::*;
use granary_dict::{DataType, Dictionary, Environment};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Timestamp, doc};
use server::{OPTIONS, PASSWORD, Server, USER};
use std::sync::atomic::Ordering;

fn sql(server: &Server, columns: &str, key: &str, source: &str, layout: &str) -> String {
    let lifetime = if layout.contains("DIRECT") { "" } else { "LIFETIME(1000)" };
    format!(
        "CREATE DICTIONARY m ({columns}) PRIMARY KEY {key} SOURCE(MONGODB(HOST '127.0.0.1' PORT {} USER '{USER}' \
         PASSWORD '{}' DB 'app' OPTIONS '{OPTIONS}' {source})) LAYOUT({layout}) {lifetime}",
        server.port,
        PASSWORD.replace('\'', "''")
    )
}

fn open(server: &Server, columns: &str, key: &str, source: &str, layout: &str) -> Dictionary {
    let sql = sql(server, columns, key, source, layout);
    Dictionary::open(definition(&sql), &Environment::new(std::env::temp_dir())).unwrap()
}

const CACHE: &str = "CACHE(SIZE_IN_CELLS 1000)";
const COMPLEX: &str = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 1000)";

/// 2024-02-29 12:00:00.
const NOON: i64 = 1_709_208_000_000;

fn at(milliseconds: i64) -> DateTime {
    DateTime::from_millis(milliseconds)
}

fn uuid() -> Binary {
    Binary { subtype: BinarySubtype::Uuid, bytes: (0x10..0x20).collect() }
}

const UUID: &str = "10111213-1415-1617-1819-1a1b1c1d1e1f";

#[test]
fn mongodb() {
    let mut server = Server::start();
    every_type(&server);
    anything_is_a_text(&server);
    null_and_missing(&server);
    wrong_types(&server);
    keys_of_every_type(&server);
    object_ids(&server);
    composite(&server);
    odd_names_and_values(&server);
    fields_in_documents(&server);
    many_keys(&server);
    whole(&server);
    by_uri_and_by_collection(&server);
    updates(&server);
    wrong_settings(&server);
    a_request_that_takes_too_long_is_given_up(&server);
    outage(&mut server);
}

fn every_type(server: &Server) {
    server.insert(
        "users",
        [doc! {
            "id": 4, "name": "user 4", "small": 7i64, "number": 1e15, "score": 0.1, "exact": 0.1, "whole": 3,
            "born": at(NOON), "old": at(-86_400_001), "seen": at(NOON + 999), "then": at(NOON + 123), "ok": true,
            "one": 1, "uuid": uuid(), "spelt": UUID, "ip": "10.0.0.1", "six": "2001:DB8::1", "balance": "4.5",
            "price": 2.25, "wide": "-170141183460469231731687303715884105728", "count": i64::MIN,
            "tags": ["a", Bson::Null, "it's"], "sizes": [1, 2.0, 3i64], "labels": { "b": 1, "it's": 2 },
            "ports": { "80": ["http"], "443": [] }, "hops": [{ "n": 1, "s": "a", "x": 0 }, { "s": "b" }], "none": [],
        }],
    );
    let columns = "id UInt64, name String, small UInt8, number Int64, score Float32, exact Float64, whole Float64, \
         born Date, old Date32, seen DateTime('Asia/Tokyo'), `then` DateTime64(4, 'Asia/Tokyo'), ok Bool, one Bool, \
         uuid UUID, spelt UUID, ip IPv4, six IPv6, balance Decimal(9, 2), price Decimal(40, 1), wide Int128, count Int256, \
         tags Array(Nullable(String)), sizes Array(UInt8), labels Map(String, UInt8), ports Map(UInt16, Array(String)), \
         hops Nested(n UInt8, s String), none Array(DateTime), absent Nullable(UInt8), `default` UInt8 DEFAULT 5";
    let dictionary = open(server, columns, "id", "COLLECTION 'users'", CACHE);
    shows(
        &dictionary,
        &u64s([4]),
        &[
            "user 4",
            "7",
            "1000000000000000",
            "0.1",
            "0.1",
            "3",
            "2024-02-29",
            "1969-12-30",
            "2024-02-29 21:00:00",
            "2024-02-29 21:00:00.123",
            "true",
            "true",
            UUID,
            UUID,
            "10.0.0.1",
            "2001:db8::1",
            "4.5",
            "2.2",
            "-170141183460469231731687303715884105728",
            "-9223372036854775808",
            r"['a',NULL,'it\'s']",
            "[1,2,3]",
            r"{'b':1,'it\'s':2}",
            "{80:['http'],443:[]}",
            "[(1,'a'),(0,'b')]",
            "[]",
        ],
    );
    let answer = dictionary.get(&[26, 27], &u64s([4, 5])).unwrap();
    assert_eq!(answer.columns[0].null_count(), 2);
    assert_eq!(answer.columns[1].as_primitive::<arrow::datatypes::UInt8Type>().values(), &[5, 5]);
    assert_eq!(found(&answer.found), [true, false]);
    assert_eq!(dictionary.status().source, "MongoDB: app.users");
}

fn anything_is_a_text(server: &Server) {
    let id = ObjectId::parse_str("65e0c3f0a1b2c3d4e5f60718").unwrap();
    let bytes = Binary { subtype: BinarySubtype::Generic, bytes: "é".into() };
    let inside =
        doc! { "a": [1, { "b": Bson::Null, "c": id }], "\"é": at(NOON), "u": uuid(), "d": 2.5, "t": true };
    server.insert(
        "texts",
        [doc! { "id": 1, "i": 5, "d": 0.1, "t": false, "o": id, "m": at(NOON), "f": at(NOON + 7), "u": uuid(),
        "b": bytes, "a": ["x", "\"\n"], "n": inside }],
    );
    let columns = "id UInt64, i String, d String, t String, o String, m String, f String, u String, b String, a String, \
         n Nullable(String)";
    let dictionary = open(server, columns, "id", "COLLECTION 'texts'", CACHE);
    let answer = dictionary.get(&(0..10).collect::<Vec<_>>(), &u64s([1])).unwrap();
    let shown: Vec<String> = answer.columns.iter().flat_map(texts).collect();
    let json = format!(
        r#"{{"a":[1,{{"b":null,"c":"{id}"}}],"\"é":"2024-02-29 12:00:00","u":"{UUID}","d":2.5,"t":true}}"#
    );
    assert_eq!(
        shown,
        [
            "5",
            "0.1",
            "false",
            &id.to_hex(),
            "2024-02-29 12:00:00",
            "2024-02-29 12:00:00.007",
            UUID,
            "é",
            r#"["x","\"\n"]"#,
            &json
        ]
    );
}

fn null_and_missing(server: &Server) {
    let null = Bson::Null;
    server.insert(
        "holes",
        [
            doc! { "id": 1, "v": &null, "a": [&null, 2], "n": [{ "x": &null }], "m": { "k": &null }, "o": &null },
            doc! { "id": 2 },
            doc! { "v": 3 },
            doc! { "id": &null, "v": 3 },
        ],
    );
    let columns = "id UInt64, v UInt8 DEFAULT 9, a Array(UInt8), n Nested(x UInt8), m Map(String, String), o Nullable(UInt8)";
    let dictionary = open(server, columns, "id", "COLLECTION 'holes'", CACHE);
    shows(&dictionary, &u64s([1]), &["9", "[0,2]", "[(0)]", "{'k':''}"]);
    shows(&dictionary, &u64s([2]), &["9", "[]", "[]", "{}"]);
    let answer = dictionary.get(&[4], &u64s([1, 2, 3])).unwrap();
    assert_eq!((answer.columns[0].null_count(), found(&answer.found)), (3, vec![true, true, false]));
    assert_eq!(
        all_rows(&open(server, columns, "id", "COLLECTION 'holes'", "DIRECT()")).unwrap().num_rows(),
        2
    );
    // As in MongoDB, a missing field is NULL, too.
    let keys = "id Nullable(UInt64), v UInt8";
    let nullable = open(server, keys, "id", "COLLECTION 'holes'", "COMPLEX_KEY_DIRECT()");
    let null: ArrayRef = std::sync::Arc::new(arrow::array::UInt64Array::from(vec![None, Some(7)]));
    let answer = nullable.get(&[0], &[null]).unwrap();
    assert_eq!(answer.columns[0].as_primitive::<arrow::datatypes::UInt8Type>().values(), &[3, 0]);
}

/// A type, a value, the code of the error, and words that it has.
fn wrong_types(server: &Server) {
    let id = ObjectId::parse_str("65e0c3f0a1b2c3d4e5f60718").unwrap();
    let old = Binary { subtype: BinarySubtype::UuidOld, bytes: vec![0; 16] };
    let bytes = Binary { subtype: BinarySubtype::Generic, bytes: vec![0xff] };
    let cases: Vec<(&str, Bson, i32, &str)> = vec![
        ("UInt8", "7".into(), 53, "Type mismatch, expected UInt8, got string 7"),
        ("UInt8", 300.into(), 6, "Cannot parse '300' as UInt8"),
        ("UInt64", (-1).into(), 6, "Cannot parse '-1' as UInt64"),
        ("Int32", 5.5.into(), 53, "expected Int32, got double 5.5"),
        ("Int64", 1e19.into(), 6, "Cannot parse '10000000000000000000' as Int64"),
        ("Float64", at(NOON).into(), 53, "got date 2024-02-29 12:00:00"),
        ("Bool", 2.into(), 6, "Cannot parse '2' as Bool"),
        ("Date", "2024-02-29".into(), 53, "expected Date, got string 2024-02-29"),
        ("Date", at(-1).into(), 6, "Cannot parse '1969-12-31' as Date"),
        ("DateTime", NOON.into(), 53, "got long 1709208000000"),
        ("DateTime", at(i64::MAX / 2).into(), 6, "as DateTime"),
        ("DateTime64(3)", at(i64::MIN / 2).into(), 6, "as DateTime64(3)"),
        ("UUID", id.into(), 53, "got objectId 65e0c3f0a1b2c3d4e5f60718"),
        ("UUID", old.into(), 53, "expected UUID, got binData"),
        ("IPv4", "1.2.3".into(), 6, "Cannot parse '1.2.3' as IPv4"),
        ("Decimal(4, 2)", 1234.into(), 6, "Cannot parse '1234' as Decimal(4, 2)"),
        ("String", bytes.into(), 53, "expected String, got binData"),
        ("String", Timestamp { time: 1, increment: 1 }.into(), 53, "got timestamp"),
        ("Array(UInt8)", 5.into(), 53, "expected Array(UInt8), got int 5"),
        ("Array(UInt8)", vec![Bson::from(1), "x".into()].into(), 53, "expected UInt8, got string x"),
        ("Map(String, UInt8)", vec![Bson::from(1)].into(), 53, "got array [1]"),
        ("Map(UInt8, UInt8)", doc! { "x": 1 }.into(), 6, "Cannot parse 'x' as UInt8"),
        ("Nested(a UInt8)", vec![Bson::from(1)].into(), 53, "expected Nested(a UInt8), got int 1"),
        (
            "Nested(a UInt8)",
            vec![Bson::from(doc! { "a": [1] })].into(),
            53,
            "Element a: Type mismatch, expected UInt8",
        ),
    ];
    server.insert(
        "wrong",
        cases.iter().enumerate().map(|(i, (_, value, ..))| doc! { "id": i as i64, "v": value }),
    );
    for (i, (data_type, value, code, words)) in cases.into_iter().enumerate() {
        let dictionary =
            open(server, &format!("id UInt64, v {data_type}"), "id", "COLLECTION 'wrong'", "DIRECT()");
        let error = dictionary.get(&[0], &u64s([i as u64])).expect_err(words);
        assert_eq!(error.code(), code, "{data_type} {value:?}: {error}");
        let place = "Column v of the source: ";
        assert!(
            error.message().contains(words) && error.message().contains(place),
            "{data_type} {value:?}: {error}"
        );
    }
}

/// Each is found by its own type, and a whole read shows it; what is of another type is no such key.
fn keys_of_every_type(server: &Server) {
    let cases: Vec<(&str, Bson, &str, Bson)> = vec![
        ("UInt8", 7.into(), "7", "7".into()),
        ("UInt64", 7.0.into(), "7", 7.5.into()),
        ("Int64", i64::MIN.into(), "-9223372036854775808", true.into()),
        ("Float64", 0.1.into(), "0.1", "0.1".into()),
        ("Decimal(9, 2)", 15.into(), "15", "15".into()),
        ("Int128", (-5).into(), "-5", vec![Bson::from(-5)].into()),
        ("Bool", true.into(), "true", 1.into()),
        ("String", "7".into(), "7", 7.into()),
        ("Date", at(NOON - 43_200_000).into(), "2024-02-29", at(NOON).into()),
        ("Date32", at(-86_400_000).into(), "1969-12-31", at(1).into()),
        ("DateTime('Asia/Tokyo')", at(NOON).into(), "2024-02-29 21:00:00", at(NOON + 1).into()),
        ("DateTime64(3)", at(NOON + 7).into(), "2024-02-29 12:00:00.007", "2024-02-29 12:00:00.007".into()),
        ("DateTime64(6)", at(NOON + 7).into(), "2024-02-29 12:00:00.007", NOON.into()),
        ("UUID", uuid().into(), UUID, UUID.into()),
        ("IPv4", "10.0.0.1".into(), "10.0.0.1", 0x0a00_0001.into()),
        ("IPv6", "2001:db8::1".into(), "2001:db8::1", "2001:DB8::1".into()),
    ];
    for (i, (data_type, key, text, other)) in cases.into_iter().enumerate() {
        let collection = format!("keys{i}");
        server.insert(&collection, [doc! { "k": key, "v": "own" }, doc! { "k": other, "v": "other" }]);
        let (columns, source) = (format!("k {data_type}, v String"), format!("COLLECTION '{collection}'"));
        let dictionary = open(server, &columns, "k", &source, "COMPLEX_KEY_DIRECT()");
        let key = of_text(&DataType::parse(data_type).unwrap(), text);
        let answer = dictionary.get(&[0], std::slice::from_ref(&key)).unwrap();
        assert_eq!(texts(&answer.columns[0]), ["own"], "{data_type}");
        let rows = all_rows(&dictionary).unwrap();
        assert_eq!((rows.num_rows(), rows.column(0)), (1, &key), "{data_type}");
    }
}

fn object_ids(server: &Server) {
    let ids: Vec<ObjectId> = (1..4).map(|i| ObjectId::from_parts(i, [0xab; 5], [0; 3])).collect();
    let parent = |i: usize| if i == 0 { Bson::Null } else { ids[i - 1].into() };
    server.insert("ids", (0..3).map(|i| doc! { "_id": ids[i], "v": i as i32, "parent": parent(i) }));
    let columns = "_id String IS_OBJECT_ID, v UInt8, parent Nullable(String) IS_OBJECT_ID";
    let dictionary = open(server, columns, "_id", "COLLECTION 'ids'", COMPLEX);
    let hex: Vec<String> = ids.iter().map(|id| id.to_hex()).collect();
    let upper = hex[0].to_uppercase();
    let keys = strings(&[&hex[2], &hex[0], &upper, "", "not hex", "abababababababababababab"]);
    let answer = dictionary.get(&[0, 1], &[keys]).unwrap();
    assert_eq!(found(&answer.found), [true, true, false, false, false, false]);
    assert_eq!(answer.columns[0].as_primitive::<arrow::datatypes::UInt8Type>().values()[..2], [2, 0]);
    assert_eq!(texts(&answer.columns[1])[..2], [hex[1].as_str(), "NULL"]);
    let rows = all_rows(&open(server, columns, "_id", "COLLECTION 'ids'", "COMPLEX_KEY_DIRECT()")).unwrap();
    let mut read = texts(rows.column(0));
    read.sort_unstable();
    assert_eq!(read, hex);
    // Without the word it is a text that is asked for, and an ObjectId that looks alike is another key.
    server.insert("id texts", [doc! { "_id": hex[0].as_str(), "v": 100 }, doc! { "_id": ids[1], "v": 101 }]);
    let plain = open(server, "_id String, v UInt8", "_id", "COLLECTION 'id texts'", COMPLEX);
    shows(&plain, &[strings(&[&hex[0]])], &["100"]);
    assert_eq!(found(&plain.has(&[strings(&[&hex[1]])]).unwrap()), [false]);
}

fn composite(server: &Server) {
    server.insert(
        "pairs",
        [
            doc! { "a": 1, "b": "it's", "v": 10 },
            doc! { "a": 1i64, "b": "b", "v": 11 },
            doc! { "a": 2.0, "b": "b\\", "v": 12 },
            doc! { "a": 3, "b": Bson::Null, "v": 13 },
            doc! { "a": "1", "b": "b", "v": 14 },
        ],
    );
    server.insert("pairs", (0..200).map(|i| doc! { "a": i, "b": "many", "v": i }));
    let columns = "a Int64, b Nullable(String), v UInt64 DEFAULT 99";
    let layout = "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100000)";
    let dictionary = open(server, columns, "a, b", "COLLECTION 'pairs'", layout);
    let a: ArrayRef = std::sync::Arc::new(arrow::array::Int64Array::from(vec![1, 1, 2, 3, 3, 2]));
    let b = std::sync::Arc::new(arrow::array::StringArray::from(vec![
        Some("it's"),
        Some("b"),
        Some("b\\"),
        None,
        Some("b"),
        Some("it's"),
    ]));
    let answer = dictionary.get(&[0], &[a, b]).unwrap();
    assert_eq!(values(&answer.columns[0]), [10, 11, 12, 13, 99, 99]);
    // More than one $or.
    let a: ArrayRef = std::sync::Arc::new(arrow::array::Int64Array::from_iter_values(100..2200));
    let b: ArrayRef = std::sync::Arc::new(arrow::array::StringArray::from(vec!["many"; 2100]));
    let answer = dictionary.get(&[0], &[a, b]).unwrap();
    assert_eq!(answer.found.true_count(), 100);
    assert_eq!(values(&answer.columns[0])[99..101], [199, 99]);
}

fn odd_names_and_values(server: &Server) {
    let odd = ["it's", "\"", "`", "{$gt: ''}", "$where", "a.b", "", "é\u{1F600}", "null", "\\", "\t\n"];
    let documents = odd.iter().enumerate().map(|(i, text)| {
        doc! { "k'`$é": text, "pri$ce": i as i32, "Ünï x": format!("{text}!") }
    });
    server.insert("odd 'é\" x", documents);
    let columns = "`k'``$é` String, `pri$ce` UInt64, `Ünï x` String";
    let source = "COLLECTION 'odd ''é\" x'";
    let dictionary = open(server, columns, "`k'``$é`", source, COMPLEX);
    let answer = dictionary.get(&[0, 1], &[strings(&odd)]).unwrap();
    assert_eq!(values(&answer.columns[0]), (0..odd.len() as u64).collect::<Vec<_>>());
    assert_eq!(texts(&answer.columns[1]), odd.map(|text| format!("{text}!")));
    assert_eq!(found(&dictionary.has(&[strings(&["x", " ", "it''s"])]).unwrap()), [false; 3]);
    assert_eq!(
        all_rows(&open(server, columns, "`k'``$é`", source, "COMPLEX_KEY_DIRECT()")).unwrap().num_rows(),
        11
    );
}

fn fields_in_documents(server: &Server) {
    server.insert(
        "nested",
        [
            doc! { "key": { "id": 1, "x": 0 }, "a": { "b": { "c": "deep" }, "d": 5 }, "s": { "t": 1 } },
            doc! { "key": { "id": 2 }, "a": 7, "s": { "t": 2, "u": [3] } },
            doc! { "key": 3 },
        ],
    );
    let columns = "`key.id` UInt64, `a.b.c` String, `a.d` UInt64, s String, `s.t` UInt8";
    let dictionary = open(server, columns, "`key.id`", "COLLECTION 'nested'", CACHE);
    shows(&dictionary, &u64s([1]), &["deep", "5", r#"{"t":1}"#, "1"]);
    shows(&dictionary, &u64s([2]), &["", "0", r#"{"t":2,"u":[3]}"#, "2"]);
    assert_eq!(
        all_rows(&open(server, columns, "`key.id`", "COLLECTION 'nested'", "DIRECT()")).unwrap().num_rows(),
        2
    );
}

fn many_keys(server: &Server) {
    server.insert("many", (0..200i64).map(|i| doc! { "_id": i * 500, "v": format!("value {i}") }));
    let layout = "CACHE(SIZE_IN_CELLS 200000)";
    let dictionary = open(server, "_id UInt64, v String", "_id", "COLLECTION 'many'", layout);
    let answer = dictionary.get(&[0], &u64s(0..100_000)).unwrap();
    assert_eq!(answer.found.true_count(), 200);
    assert_eq!(texts(&answer.columns[0])[99_500], "value 199");
    let status = dictionary.status();
    assert_eq!((status.source_keys, status.source_errors, status.element_count), (100_000, 0, 100_000));
}

fn whole(server: &Server) {
    server.insert("whole", (0..20_000i64).map(|i| doc! { "_id": i, "v": i * 2, "unused": "x".repeat(50) }));
    server.insert("whole", [doc! { "_id": "text", "v": 1 }]);
    let direct = open(server, "_id UInt64, v UInt64", "_id", "COLLECTION 'whole'", "DIRECT()");
    reads_whole_in_batches(&direct);
    let rows = all_rows(&direct).unwrap();
    let mut pairs: Vec<(u64, u64)> = values(rows.column(0)).into_iter().zip(values(rows.column(1))).collect();
    pairs.sort_unstable();
    assert!(pairs.iter().copied().eq((0..20_000).map(|i| (i, i * 2))));
    assert_eq!(direct.status().source_errors, 0);
    let hashed = open(server, "_id UInt64, v UInt64", "_id", "COLLECTION 'whole'", "HASHED()");
    assert_eq!(values(&hashed.get(&[0], &u64s([19_999, 20_000])).unwrap().columns[0]), [39_998, 0]);
    // A value of a wrong type ends it with an error, so that the rows before it do not count as all.
    server.insert("whole", [doc! { "_id": 20_000, "v": "none" }]);
    assert_eq!(all_rows(&direct).unwrap_err().code(), 53);
    // However long documents are, few are held at once.
    server.insert("long", (0..20i64).map(|i| doc! { "_id": i, "v": "x".repeat(1 << 20) }));
    let long = open(server, "_id UInt64, v String", "_id", "COLLECTION 'long'", "DIRECT()");
    let batches: Vec<usize> = long.resident().unwrap().map(|batch| batch.unwrap().num_rows()).collect();
    assert!(batches.iter().all(|&rows| rows <= 5) && batches.iter().sum::<usize>() == 20, "{batches:?}");
    let empty = open(server, "_id UInt64, v UInt64", "_id", "COLLECTION 'nosuch'", "DIRECT()");
    assert_eq!(
        (all_rows(&empty).unwrap().num_rows(), found(&empty.has(&u64s([1])).unwrap())),
        (0, vec![false])
    );
}

fn by_uri_and_by_collection(server: &Server) {
    server.insert("uri", [doc! { "id": 1, "v": "one" }]);
    let of = |source: &str| {
        format!(
            "CREATE DICTIONARY m (id UInt64, v String) PRIMARY KEY id SOURCE(MONGODB({source})) LAYOUT(DIRECT())"
        )
    };
    let word = "it%27s%20%3A%2F%3F%23%5B%5D%40%20s%25cret";
    let uri = format!(
        "mongodb://{USER}:{word}@127.0.0.1:{}/app?{OPTIONS}&retryWrites=false&appName=x",
        server.port
    );
    let environment = Environment::new(std::env::temp_dir());
    let ask = |source: &str| {
        let dictionary = Dictionary::open(definition(&of(source)), &environment).unwrap();
        dictionary.get(&[0], &u64s([1])).map(|answer| texts(&answer.columns[0]).remove(0))
    };
    assert_eq!(ask(&format!("URI '{uri}' COLLECTION 'uri'")).unwrap(), "one");
    let parameter = |name: &str, value: &str| (name.to_string(), value.to_string());
    environment.collections.set(
        "mongo",
        Some(vec![
            parameter("host", "127.0.0.1"),
            parameter("port", &server.port.to_string()),
            parameter("username", USER),
            parameter("password", PASSWORD),
            parameter("database", "app"),
        ]),
    );
    environment.collections.set("by_uri", Some(vec![parameter("uri", &uri), parameter("collection", "uri")]));
    assert_eq!(
        ask("NAME mongo COLLECTION 'uri' OPTIONS 'authmechanism=PLAIN&directConnection=true'").unwrap(),
        "one"
    );
    assert_eq!(ask("NAME by_uri").unwrap(), "one");
}

fn updates(server: &Server) {
    let news = |rows: &[(i64, u32, i64)]| {
        server.replace(
            "news",
            rows.iter().map(|(id, v, seconds)| doc! { "id": id, "v": v, "at": at(NOON + seconds * 1000) }),
        );
    };
    let source = "COLLECTION 'news' UPDATE_FIELD 'at' UPDATE_LAG 2";
    let dictionary = open(server, "id UInt64, v UInt64", "id", source, CACHE);
    let renewed = || dictionary.take_updates().unwrap();
    let look_up = || values(&dictionary.get(&[0], &u64s([1, 2, 3, 99])).unwrap().columns[0]);
    news(&[(1, 10, 0), (2, 20, 0), (3, 30, -9999), (5, 50, 0)]);
    assert_eq!(renewed(), 0, "from here on changes are known");
    assert_eq!(look_up(), [10, 20, 30, 0]);
    let asked = dictionary.status().source_keys;
    news(&[(1, 11, 600), (2, 20, 0), (3, 31, -9999), (5, 51, 600), (99, 990, 600)]);
    assert_eq!(look_up(), [10, 20, 30, 0], "nobody has looked");
    assert_eq!(renewed(), 3, "those of the lag, and two that are cached");
    assert_eq!(look_up(), [11, 20, 30, 990], "what does not say that it changed is not known to");
    assert_eq!(dictionary.status().source_keys, asked + 3);
    // Numbers that only grow, and ObjectIds, do as well.
    for (field, first, second) in [
        ("n", Bson::from(5), Bson::from(7)),
        (
            "_id",
            ObjectId::from_parts(5, [1; 5], [0; 3]).into(),
            ObjectId::from_parts(9, [1; 5], [0; 3]).into(),
        ),
    ] {
        let collection = format!("news by {field}");
        let source = format!("COLLECTION '{collection}' UPDATE_FIELD '{field}' UPDATE_LAG 0");
        let dictionary = open(server, "id UInt64, v UInt64", "id", &source, CACHE);
        let rows = |v: i32, change: &Bson| {
            server.replace(&collection, [doc! { "id": 1, "v": v, field: change }]);
        };
        rows(1, &first);
        assert_eq!(dictionary.take_updates().unwrap(), 0);
        assert_eq!(values(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]), [1]);
        rows(2, &second);
        assert_eq!(dictionary.take_updates().unwrap(), 1, "{field}");
        assert_eq!(values(&dictionary.get(&[0], &u64s([1])).unwrap().columns[0]), [2]);
    }
    // Numbers are times if they are as large as those since 1970 are, by their size in seconds or milliseconds.
    for units in [1, 1000] {
        let source = "COLLECTION 'numbers' UPDATE_FIELD 'at' UPDATE_LAG 1";
        let dictionary = open(server, "id UInt64, v UInt64", "id", source, CACHE);
        let write = |rows: [(i32, i64); 2]| {
            let document = |id: i32, (v, at): (i32, i64)| doc! { "id": id, "v": v, "at": at };
            server.replace("numbers", [document(1, rows[0]), document(2, rows[1])]);
        };
        let now = 1_700_000_000 * units;
        write([(10, now), (20, now)]);
        assert_eq!(dictionary.take_updates().unwrap(), 0);
        assert_eq!(values(&dictionary.get(&[0], &u64s([1, 2])).unwrap().columns[0]), [10, 20]);
        write([(10, now), (21, now + 10 * units)]);
        assert_eq!(dictionary.take_updates().unwrap(), 2);
        // Committed after the one with a later time.
        write([(11, now + 10 * units - units / 2), (21, now + 10 * units)]);
        assert_eq!(dictionary.take_updates().unwrap(), 2);
        assert_eq!(values(&dictionary.get(&[0], &u64s([1, 2])).unwrap().columns[0]), [11, 21]);
    }
    server.replace("news", [doc! { "id": 1, "at": 7 }]);
    let error = dictionary.take_updates().unwrap_err();
    assert!(
        error.message().contains("UPDATE_FIELD at is 7: UPDATE_LAG 2 cannot be taken from a number"),
        "{error}"
    );
    server.replace("news", [doc! { "id": 1, "at": "yesterday" }]);
    let error = dictionary.take_updates().unwrap_err();
    assert!(error.message().contains("UPDATE_FIELD at must be a date, a number or an ObjectId"), "{error}");
}

fn wrong_settings(server: &Server) {
    let own = sql(server, "id UInt64, v String", "id", "COLLECTION 'uri'", "DIRECT()");
    let with = |from: &str, to: &str| {
        assert!(own.contains(from));
        Dictionary::open(definition(&own.replace(from, to)), &Environment::new("/")).unwrap()
    };
    let error = with("s%cret", "wrong-word").has(&u64s([1])).unwrap_err();
    assert!(error.message().contains("password authentication failed"), "{error}");
    assert!(!error.message().contains("wrong-word"), "{error}");
    // The driver's own way to send a password, which this server does not complete.
    let error = with(OPTIONS, "").has(&u64s([1])).unwrap_err();
    assert_eq!(error.code(), 293, "{error}");
    assert!(error.message().contains("look at USER, PASSWORD and authSource"), "{error}");
    // This port is closed.
    let port = 1;
    let quick = own.replace(OPTIONS, &format!("{OPTIONS}&serverSelectionTimeoutMS=100"));
    let elsewhere = quick.replace(&format!("PORT {}", server.port), &format!("PORT {port}"));
    let nobody = Dictionary::open(definition(&elsewhere), &Environment::new("/")).unwrap();
    let error = nobody.has(&u64s([1])).unwrap_err();
    assert!(error.code() == 210 && error.message().contains(&format!("127.0.0.1:{port}")), "{error}");
}

fn a_request_that_takes_too_long_is_given_up(server: &Server) {
    let layout = "CACHE(SIZE_IN_CELLS 8 QUERY_WAIT_TIMEOUT_MILLISECONDS 2000 MAX_THREADS_FOR_UPDATES 1)";
    let dictionary = open(server, "id UInt64, v String", "id", "COLLECTION 'uri'", layout);
    answers_at_last(|| dictionary.has(&u64s([1])));
    server.pause();
    let said = gives_up(&dictionary);
    server.go_on();
    assert!(said.contains("no whole answer within 4000 ms"), "{said}");
}

fn outage(server: &mut Server) {
    server.insert("outage", [doc! { "id": 2, "name": "two" }]);
    let folder = tempfile::tempdir().unwrap();
    let (environment, clock) = manual_environment(folder.path());
    let layout = "CACHE(SIZE_IN_CELLS 1000 ALLOW_READ_EXPIRED_KEYS 1 STRICT_MAX_LIFETIME_SECONDS 1000000)";
    let sql = sql(server, "id UInt64, name String", "id", "COLLECTION 'outage'", layout)
        .replace(OPTIONS, &format!("{OPTIONS}&serverSelectionTimeoutMS=2000"));
    let dictionary = Dictionary::open(definition(&sql), &environment).unwrap();
    let names = |keys: &[u64]| dictionary.get(&[0], &u64s(keys.to_vec())).map(|a| texts(&a.columns[0]));
    assert_eq!(comes_back(&clock, || names(&[2])), ["two"]);
    server.stop();
    clock.fetch_add(2000, Ordering::SeqCst);
    assert_eq!(names(&[2]).unwrap(), ["two"]);
    assert_eq!(names(&[2, 1]).unwrap_err().code(), 510);
    server.start_again();
    server.replace("outage", [doc! { "id": 1, "name": "uno" }]);
    assert_eq!(comes_back(&clock, || names(&[2, 1])), ["", "uno"]);
}
