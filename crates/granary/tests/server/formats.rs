//! The dictionary source in all of its formats, and while its keys still arrive.

use crate::dictionary::users;
use crate::served::{Served, until};
use std::io::{Read, Write};
use std::net::TcpStream;

const CREATE: &str = "CREATE DICTIONARY users (id UInt64, name String, city Nullable(String)) PRIMARY KEY id \
    SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LIFETIME(MIN 1000 MAX 2000) \
    LAYOUT(SSD_CACHE(PATH 'users' FILE_SIZE 67108864 WRITE_BUFFER_SIZE 1048576))";

fn with_users() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path());
    let served = Served::start(folder.path(), &[]);
    served.sql(CREATE);
    (folder, served)
}

const FORMATS: [&str; 11] = [
    "TabSeparated",
    "TabSeparatedWithNames",
    "TabSeparatedWithNamesAndTypes",
    "CSV",
    "CSVWithNames",
    "JSONEachRow",
    "RowBinary",
    "RowBinaryWithNames",
    "RowBinaryWithNamesAndTypes",
    "Native",
    "ArrowStream",
];

/// The bytes that a query answers.
fn bytes(served: &Served, sql: &str) -> Vec<u8> {
    let answer = served.post("/", sql.as_bytes());
    assert_eq!(answer.status, 200, "{sql}: {}", String::from_utf8_lossy(&answer.body));
    answer.body
}

#[test]
fn keys_and_rows_in_every_format() {
    let (_folder, served) = with_users();
    served.sql("SELECT dictGet('users', 'name', number) FROM numbers(1, 9) FORMAT Null");
    served.sql("CREATE TABLE keys (id UInt64)");
    // Key 1000 is missing in the source.
    served.sql("INSERT INTO keys VALUES (7), (1000), (3)");
    for format in FORMATS {
        let keys = bytes(&served, &format!("SELECT id FROM keys FORMAT {format}"));
        let answer = served.post(&format!("/dictionary/users?format={format}"), &keys);
        let rows = "SELECT id, dictGet('users', 'name', id) AS name, dictGet('users', 'city', id) AS city \
            FROM keys WHERE id != 1000";
        let expected = bytes(&served, &format!("{rows} FORMAT {format}"));
        assert_eq!(answer.status, 200, "{format}: {}", String::from_utf8_lossy(&answer.body));
        if format == "ArrowStream" {
            // Fields of ours carry ClickHouse's types as metadata; the values are the same.
            assert!(answer.body.len() > 200, "{format}");
        } else {
            assert_eq!(String::from_utf8_lossy(&answer.body), String::from_utf8_lossy(&expected), "{format}");
        }
        let nothing = served.post(&format!("/dictionary/users?format={format}"), b"");
        assert_eq!(nothing.status, 200, "{format}: {}", String::from_utf8_lossy(&nothing.body));
        let all = served.get(&format!("/dictionary/users?format={format}"));
        assert_eq!(all.status, 200, "{format}");
        let torn = served.post(&format!("/dictionary/users?format={format}"), b"{\"id\xff\x80,\t?");
        assert_eq!(torn.status, 400, "{format}: {}", String::from_utf8_lossy(&torn.body));
    }
    assert_eq!(served.post("/dictionary/users?format=Parquet", b"").status, 404);
}

/// Keys and rows of types that Arrow does not have: from the endpoint, and over SOURCE(HTTP), in every format.
#[test]
fn types_beyond_arrow_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let columns = "ip IPv4, at DateTime64(4, 'Asia/Tokyo'), six IPv6, wide Int128, big Decimal(60, 3), \
        tags Array(Nullable(String)), times Array(Array(DateTime64(7))), labels Map(String, Nullable(UInt16)), \
        hops Nested(n UInt8, `by ip` Map(IPv4, String))";
    served.sql(&format!("CREATE TABLE hosts ({columns})"));
    served.sql(
        "INSERT INTO hosts VALUES ('10.0.0.1', '2024-02-29 12:00:00.1234', '2001:db8::1', -5, 1.5, ['it\\'s\\t', NULL], \
            [[], ['2024-02-29 12:00:00.1234567']], {'b':1, 'it\\'s':NULL, 'b':2}, '[(7,{\\'1.2.3.4\\':\\'x\\'}),(8,{})]'), \
            ('10.0.0.2', '1969-12-31 12:00:00.0001', '::', 0, 0, [], [], {}, '[]')",
    );
    served.sql(&format!(
        "CREATE DICTIONARY h ({columns}) PRIMARY KEY ip, at SOURCE(CLICKHOUSE(TABLE 'hosts')) LIFETIME(0) \
         LAYOUT(COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100))"
    ));
    let attributes = "'six', 'wide', 'big', 'tags', 'times', 'labels', 'hops'";
    let expected = bytes(&served, "SELECT six, wide, big, tags, times, labels, hops FROM hosts ORDER BY ip");
    let shown = String::from_utf8_lossy(&expected).into_owned();
    assert!(shown.contains("{'b':1,'it\\'s':NULL,'b':2}\t[(7,{'1.2.3.4':'x'}),(8,{})]\n"), "{shown}");
    for format in FORMATS {
        let keys = bytes(&served, &format!("SELECT ip, at FROM hosts ORDER BY ip FORMAT {format}"));
        let answer = served.post(&format!("/dictionary/h?format={format}"), &keys);
        assert_eq!(answer.status, 200, "{format}: {}", String::from_utf8_lossy(&answer.body));
        let rows = bytes(&served, &format!("SELECT * FROM hosts ORDER BY ip FORMAT {format}"));
        if format != "ArrowStream" {
            assert_eq!(String::from_utf8_lossy(&answer.body), String::from_utf8_lossy(&rows), "{format}");
        }
        served.sql(&format!(
            "CREATE OR REPLACE DICTIONARY over_http ({columns}) PRIMARY KEY ip, at \
             SOURCE(HTTP(URL '{}/dictionary/h?format={format}' FORMAT '{format}')) LAYOUT(COMPLEX_KEY_DIRECT())",
            served.url
        ));
        let got = bytes(
            &served,
            &format!(
                "SELECT tupleElement(t, 1), tupleElement(t, 2), tupleElement(t, 3), tupleElement(t, 4), tupleElement(t, 5), \
                 tupleElement(t, 6), tupleElement(t, 7) FROM (SELECT ip, dictGet('over_http', ({attributes}), (ip, at)) AS t FROM hosts) ORDER BY ip"
            ),
        );
        assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&expected), "{format}");
    }
}

#[test]
fn names_in_the_head_say_which_column_is_which() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    served.sql("CREATE TABLE places (a UInt64, b String, n UInt32)");
    served.sql("INSERT INTO places VALUES (1, 'x', 11), (1, 'y', 12), (2, 'x', 21)");
    served.sql(
        "CREATE DICTIONARY p (a UInt64, b String, n UInt32) PRIMARY KEY a, b \
         SOURCE(CLICKHOUSE(TABLE 'places')) LIFETIME(0) LAYOUT(COMPLEX_KEY_CACHE(SIZE_IN_CELLS 100))",
    );
    let post = |format: &str, body: &[u8]| {
        let answer = served.post(&format!("/dictionary/p?format={format}"), body);
        (answer.status, answer.text())
    };
    let tabs = "a\tb\tn\n1\ty\t12\n2\tx\t21\n";
    assert_eq!(post("TSVWithNames", b"b\ta\ny\t1\nx\t2\ny\t2\n"), (200, tabs.to_owned()));
    let commas = "\"a\",\"b\",\"n\"\n1,\"y\",12\n";
    assert_eq!(post("CSVWithNames", b"\"b\",\"other\",a\r\n\"y\",\"?\",1\r\n"), (200, commas.to_owned()));
    let mut binary = b"\x02\x01b\x01a".to_vec();
    binary.extend(b"\x01x\x02\0\0\0\0\0\0\0");
    let answer = served.post("/dictionary/p?format=RowBinaryWithNames", &binary);
    assert_eq!(answer.body, b"\x03\x01a\x01b\x01n\x02\0\0\0\0\0\0\0\x01x\x15\0\0\0");
    let native = bytes(&served, "SELECT 'y' AS b, toUInt64(1) AS a FORMAT Native");
    let expected = bytes(&served, "SELECT toUInt64(1) AS a, 'y' AS b, toUInt32(12) AS n FORMAT Native");
    assert_eq!(served.post("/dictionary/p?format=Native", &native).body, expected);
    for (format, body, says) in [
        ("TSVWithNames", &b"b\nx\n"[..], "Column a of the key is missing"),
        ("CSVWithNames", b"a,b,a\n1,x,1\n", "Column a comes twice"),
        ("TSVWithNames", b"a\tb\n1\tx\n1\n", "row 2: Expected 2 columns, got 1"),
        ("RowBinaryWithNames", b"\x03\x01z\x01a\x01b", "Unknown column z"),
        (
            "RowBinaryWithNamesAndTypes",
            b"\x02\x01a\x01b\x05Int64\x06String",
            "Type of 'a' must be UInt64, not Int64",
        ),
        ("Native", b"\x01\x01\x01a\x06UInt64\0\0\0", "end in the middle of a block"),
    ] {
        let (status, text) = post(format, body);
        assert!(matches!(status, 400 | 500) && text.contains(says), "{format}: {status} {text}");
    }
}

/// A POST whose body is sent before any answer is read.
fn post_all_then_read(served: &Served, path: &str, chunks: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let address = served.url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    connection.set_write_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).unwrap();
    for chunk in chunks {
        let length = format!("{:x}\r\n", chunk.len());
        connection.write_all(&[length.as_bytes(), &chunk, b"\r\n"].concat()).unwrap();
    }
    connection.write_all(b"0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn a_client_may_send_all_its_keys_before_it_reads() {
    let (_folder, served) = with_users();
    // A megabyte of keys has an answer of two: more than the sockets between us take.
    let chunk: Vec<u8> = (0..1024u64).flat_map(|i| (i % 100 + 1).to_le_bytes()).collect();
    let answer =
        post_all_then_read(&served, "/dictionary/users?format=RowBinary", std::iter::repeat_n(chunk, 1024));
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..100]));
    assert!(answer.ends_with(b"\r\n0\r\n\r\n"), "the answer is whole");
    assert!(answer.len() > 14 << 20, "{}", answer.len());
    let asked = served.sql("SELECT source_requests, keys_requested FROM system.dictionaries");
    assert_eq!(asked, "1\t1048576\n");
}

/// Each piece takes more than its eight bytes of the room for those that wait, which they fill before there are enough
/// keys for a lookup.
#[test]
fn keys_may_come_in_pieces_of_a_few_bytes() {
    let (_folder, served) = with_users();
    let keys = (0..70_000u64).map(|i| (i % 100 + 1).to_le_bytes().to_vec());
    let answer = post_all_then_read(&served, "/dictionary/users?format=RowBinary", keys);
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..100]));
    assert!(answer.ends_with(b"\r\n0\r\n\r\n"), "the answer is whole");
}

#[test]
fn memory_does_not_grow_with_the_keys() {
    let (_folder, served) = with_users();
    served.sql("SELECT dictGet('users', 'name', number) FROM numbers(1, 100) FORMAT Null");
    let chunk: Vec<u8> = (0..8192u64).flat_map(|i| (i % 100 + 1).to_le_bytes()).collect();
    let send = |chunks: usize| {
        let address = served.url.strip_prefix("http://").unwrap().to_owned();
        let mut connection = TcpStream::connect(&address).unwrap();
        let mut reading = connection.try_clone().unwrap();
        let answered = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            let mut count = 0;
            while let Ok(read @ 1..) = reading.read(&mut buffer) {
                count += read;
            }
            count
        });
        let head = format!(
            "POST /dictionary/users HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).unwrap();
        for _ in 0..chunks {
            connection.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).unwrap();
            connection.write_all(&chunk).unwrap();
            connection.write_all(b"\r\n").unwrap();
        }
        connection.write_all(b"0\r\n\r\n").unwrap();
        answered.join().unwrap()
    };
    send(64);
    let before = served.memory_peak();
    // 65 MB of keys, and more than that of rows.
    let answered = send(1_000);
    assert!(answered > 120_000_000, "{answered}");
    let grown = served.memory_peak().saturating_sub(before);
    assert!(grown < 48 << 20, "{grown} bytes for 8 million keys");
}

#[test]
fn an_error_in_the_middle_breaks_the_answer_off() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--allow-executable"]);
    served.sql(
        "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id \
         SOURCE(EXECUTABLE(COMMAND 'awk \\'{ if ($1 == 100000) exit 1; print $1 \"\\\\tabc\" }\\'' FORMAT 'TabSeparated')) \
         LIFETIME(1000) LAYOUT(CACHE(SIZE_IN_CELLS 1000000))",
    );
    let keys = (0..20u64)
        .map(|chunk| (0..8192u64).flat_map(|i| (chunk * 8192 + i).to_le_bytes()).collect::<Vec<u8>>());
    let answer = post_all_then_read(&served, "/dictionary/d", keys);
    assert!(answer.starts_with(b"HTTP/1.1 200"), "the first keys were found");
    assert!(!answer.ends_with(b"0\r\n\r\n"), "whoever reads it must not take it for whole");
    let text = String::from_utf8_lossy(&answer);
    assert!(!text.contains("DB::Exception"), "a text would be read as rows");

    // In HTTP/1.0 nothing tells an answer that is broken off from a whole one: it is sent when it is known to be whole.
    let keys: Vec<u8> = (0..20 * 8192u64).flat_map(u64::to_le_bytes).collect();
    let mut connection = TcpStream::connect(served.host()).unwrap();
    write!(connection, "POST /dictionary/d HTTP/1.0\r\nContent-Length: {}\r\n\r\n", keys.len()).unwrap();
    connection.write_all(&keys).unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with("HTTP/1.0 500") && text.contains("DB::Exception"), "{text:.200}");
}

/// 100 bytes for each key.
const LONG_ROWS: &str = r#"COMMAND 'awk \'{ printf "%d\\t%0100d\\n", $1, $1 }\'' FORMAT TabSeparated"#;
const ROWS: u64 = 1_000_000;

#[test]
fn memory_does_not_grow_with_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path());
    let served = Served::start(folder.path(), &["--allow-executable"]);
    served.sql(&format!(
        "CREATE DICTIONARY cached (id UInt64, v String) PRIMARY KEY id SOURCE(EXECUTABLE({LONG_ROWS})) \
         LIFETIME(100000) LAYOUT(SSD_CACHE(PATH 'c' FILE_SIZE 268435456 WRITE_BUFFER_SIZE 1048576))"
    ));
    served.sql(&format!(
        "CREATE DICTIONARY direct (id UInt64, v String) PRIMARY KEY id SOURCE(SQLITE(PATH 'users.db' QUERY \
         'WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM c WHERE id < {ROWS}) \
          SELECT id, printf(\\'%0100d\\', id) AS v FROM c')) LAYOUT(DIRECT())"
    ));
    let of = |name: &str| {
        [format!("/dictionary/{name}"), format!("/?query=SELECT+*+FROM+{name}+FORMAT+RowBinary")]
    };
    // Rows for which the device has no room within a second are not cached.
    until("the rows are cached", || {
        served.sql(&format!("SELECT dictHas('cached', number) FROM numbers(1, {ROWS}) FORMAT Null"));
        let count = served.sql("SELECT element_count FROM system.dictionaries WHERE name = 'cached'");
        count.trim().parse::<u64>().unwrap() > ROWS / 100 * 92
    });
    // Threads, rings and formats allocate on first use.
    of("cached").iter().for_each(|path| assert!(read_rows(&served, path) > ROWS / 10 * 9));
    let before = served.memory_peak();
    for path in of("cached").into_iter().chain(of("direct")) {
        let rows = read_rows(&served, &path);
        assert!((ROWS / 10 * 9..=ROWS + ROWS / 100).contains(&rows), "{path}: {rows} rows");
        let grown = served.memory_peak().saturating_sub(before);
        assert!(grown < 48 << 20, "{path}: {grown} bytes for {rows} rows");
    }
}

/// Counts rows of 109 bytes, after a head of a few hundred bytes, as they arrive. Between chunks are a few bytes more.
fn read_rows(served: &Served, path: &str) -> u64 {
    let address = served.url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    while let Ok(read @ 1..) = connection.read(&mut buffer) {
        bytes += read as u64;
    }
    bytes.saturating_sub(500) / 109
}
