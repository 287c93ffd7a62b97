//! Settings of a request beside its query, and headers of an answer beside its rows.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::program::{granary, unset};
use crate::served::{Served, until};

fn served() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    (folder, served)
}

#[test]
fn parameters_stand_for_values() {
    let (_folder, served) = served();
    let ask = |url: &str, sql: &str| served.post(url, sql.as_bytes());
    let sql = "SELECT {n:UInt64} + 1, {s:String}, {none:Nullable(String)}";
    assert_eq!(ask("/?param_n=41&param_s=it's&param_none=%5CN", sql).text(), "42\tit\\'s\t\\N\n");
    let sql = "SELECT number FROM numbers(10) WHERE number IN {some:Array(UInt64)}";
    assert_eq!(ask("/?param_some=[3,5]", sql).text(), "3\n5\n");
    let unset = ask("/", "SELECT {n:UInt64}");
    assert_eq!((unset.status, unset.header("x-clickhouse-exception-code")), (500, "456"));
    let bad = ask("/?param_n=abc", "SELECT {n:UInt64}");
    assert_eq!((bad.status, bad.header("x-clickhouse-exception-code")), (500, "457"), "{}", bad.text());
    let sql = "SELECT match('123', {re:String}), length({re:String}), {re:Nullable(String)} IS NULL";
    assert_eq!(ask("/?param_re=%5E%5Cd%2B%24", sql).text(), "1\t5\t0\n");
    let sql = "SELECT {x:Array(UInt64)} FORMAT RowBinary";
    assert_eq!(ask("/?param_x=[1,2]", sql).body, b"\x02\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0");
}

#[test]
fn a_url_that_is_no_text_is_refused() {
    let (_folder, served) = served();
    for url in
        ["/?query=SELECT+'%FF'", "/?param_x=%C3", "/?%80=1", "/?param_x=%zz", "/dictionary/d?format=%FF"]
    {
        let refused = served.post(url, b"SELECT {x:String}");
        let code = refused.header("x-clickhouse-exception-code").to_owned();
        assert_eq!((refused.status, code.as_str()), (400, "6"), "{url}: {}", refused.text());
    }
    let refused = served.post_as("/?param_x=%FF", b"SELECT {x:String}", &[("x-clickhouse-user", "default")]);
    assert_eq!(refused.header("x-clickhouse-exception-code"), "6", "{}", refused.text());
    assert_eq!(served.post("/?param_x=%E2%82%AC", b"SELECT {x:String}").text(), "\u{20ac}\n");
}

#[test]
fn headers_come_before_the_url() {
    let (_folder, served) = served();
    served.sql("CREATE DATABASE a");
    served.sql("CREATE DATABASE b");
    let ask = |url: &str, headers: &[(&str, &str)]| {
        served.post_as(url, b"SELECT currentDatabase() AS d", headers).text()
    };
    let (database, format) = (("x-clickhouse-database", "a"), ("x-clickhouse-format", "JSONEachRow"));
    assert_eq!(ask("/?database=b", &[database]), "a\n");
    assert_eq!(ask("/?database=b&default_format=CSV", &[database, format]), "{\"d\":\"a\"}\n");
    assert_eq!(ask("/?database=b&default_format=CSV", &[]), "\"b\"\n");
    assert_eq!(ask("/?database=&default_format=", &[]), "default\n");
    let id = |url: &str| {
        let answer = served.post_as(url, b"SELECT 1", &[("x-clickhouse-query-id", "of-header")]);
        answer.header("x-clickhouse-query-id").to_owned()
    };
    assert_eq!((id("/").as_str(), id("/?query_id=of-url").as_str()), ("of-header", "of-url"));
}

#[test]
fn settings_come_in_the_url() {
    let (_folder, served) = served();
    let ask = |url: &str, sql: &str| served.post(url, sql.as_bytes());
    assert_eq!(ask("/?max_threads=1&send_progress_in_http_headers=1", "SELECT 1").text(), "1\n");
    let unknown = ask("/?no_such_setting=1", "SELECT 1");
    assert_eq!((unknown.status, unknown.header("x-clickhouse-exception-code")), (404, "115"));
    let wrong = ask("/?max_threads=many", "SELECT 1");
    assert_eq!((wrong.status, wrong.header("x-clickhouse-exception-code")), (400, "36"));
    let long = "SELECT sum(number * number % 7) FROM numbers(100000000000)";
    let late = ask("/?max_execution_time=0.2", long);
    assert_eq!(late.header("x-clickhouse-exception-code"), "159", "{}", late.text());
    let late = ask("/", &format!("{long} SETTINGS max_execution_time = 0.2"));
    assert_eq!(late.header("x-clickhouse-exception-code"), "159", "{}", late.text());
    // A join that makes many rows of few does not run longer, and others are served meanwhile.
    let join = "SELECT sum(a.number) FROM numbers(100000000) a CROSS JOIN numbers(100000) b \
                WHERE a.number % 7 = b.number % 5";
    std::thread::scope(|scope| {
        let late = scope.spawn(|| ask("/?max_execution_time=1", join));
        while !late.is_finished() {
            assert_eq!(ask("/?max_execution_time=30", "SELECT 1").text(), "1\n");
        }
        let late = late.join().unwrap();
        assert_eq!(late.header("x-clickhouse-exception-code"), "159", "{}", late.text());
    });
    for setting in ["session_timezone=Asia/Tokyo", "date_time_output_format=iso", "extremes=1"] {
        let refused = ask(&format!("/?{setting}"), "SELECT 1");
        assert_eq!(refused.header("x-clickhouse-exception-code"), "48", "{setting}");
    }
    assert_eq!(ask("/?session_timezone=UTC&extremes=0", "SELECT 1").text(), "1\n");
    let many = ask("/?max_result_rows=10&wait_end_of_query=1", "SELECT number FROM numbers(11)");
    assert_eq!(many.header("x-clickhouse-exception-code"), "396", "{}", many.text());
    assert_eq!(ask("/?max_result_rows=10", "SELECT count() FROM numbers(11)").text(), "11\n");
    let big = "SELECT number, count() FROM numbers(10000000) GROUP BY number FORMAT Null";
    let big = ask("/?max_memory_usage=10000000&wait_end_of_query=1", big);
    assert_eq!(big.header("x-clickhouse-exception-code"), "241", "{}", big.text());
    assert!(big.text().contains("Memory limit (for query) exceeded"), "{}", big.text());
    let settings = "SELECT name FROM system.settings WHERE name = 'max_threads'";
    assert_eq!(ask("/", settings).text(), "max_threads\n");
}

/// The memory of all queries together, whatever their own limits: operators' memory, growing arrays, answers in
/// buffers.
#[test]
fn queries_leave_memory_to_the_caches() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--query-memory", "96MiB"]);
    let ask = |sql: &str| served.post("/?max_memory_usage=0&wait_end_of_query=1", sql.as_bytes());
    for greedy in [
        "SELECT count(DISTINCT number) FROM numbers(30000000)",
        "SELECT length(groupArray(number)) FROM numbers(100000000)",
        "SELECT number % 10 AS k, length(groupArray(repeat('x', 100))) FROM numbers(10000000) GROUP BY k",
        "SELECT number, repeat('x', 100) AS x FROM numbers(10000000) ORDER BY number DESC LIMIT 1 OFFSET 9999990",
    ] {
        let refused = ask(greedy);
        assert_eq!(refused.header("x-clickhouse-exception-code"), "241", "{greedy}: {}", refused.text());
        assert!(
            refused.text().contains("DB::Exception: Memory limit (total) exceeded"),
            "{}",
            refused.text()
        );
    }
    // Threads of the last one may be about to free its rows.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = ask("SELECT count(DISTINCT number) FROM numbers(100000)");
        if answer.text() == "100000\n" {
            return;
        }
        assert!(Instant::now() < deadline, "{}", answer.text());
        assert_eq!(answer.header("x-clickhouse-exception-code"), "241", "{}", answer.text());
    }
}

#[test]
fn sessions_remember_and_requests_do_not() {
    let (_folder, served) = served();
    let ask = |url: &str, sql: &str| served.post(url, sql.as_bytes());
    ask("/", "CREATE DATABASE other");
    assert_eq!(ask("/?session_id=a", "USE other").status, 200);
    assert_eq!(ask("/?session_id=a", "SELECT currentDatabase()").text(), "other\n");
    assert_eq!(ask("/?session_id=b", "SELECT currentDatabase()").text(), "default\n");
    assert_eq!(ask("/", "SELECT currentDatabase()").text(), "default\n");
    assert_eq!(ask("/?session_id=a", "SET param_x = 7").status, 200);
    assert_eq!(ask("/?session_id=a", "SELECT {x:UInt8}").text(), "7\n");
    for timeout in ["99999", "soon", "-1", ""] {
        let refused = ask(&format!("/?session_id=a&session_timeout={timeout}"), "SELECT 1");
        let code = refused.header("x-clickhouse-exception-code");
        assert_eq!((refused.status, code), (500, "374"), "{timeout}");
    }
    assert_eq!(ask("/?session_id=a&session_check=1", "SELECT 1").text(), "1\n");
    let unknown = ask("/?session_id=nobody&session_check=1", "SELECT 1");
    assert_eq!(unknown.header("x-clickhouse-exception-code"), "372");
}

#[test]
fn answers_say_what_they_cost() {
    let (_folder, served) = served();
    let answer = served.post("/?query_id=mine&wait_end_of_query=1", b"SELECT count() FROM numbers(1000)");
    assert_eq!(answer.header("x-clickhouse-query-id"), "mine");
    let summary: serde_json::Value = serde_json::from_str(answer.header("x-clickhouse-summary")).unwrap();
    assert_eq!((&summary["read_rows"], &summary["written_rows"]), (&"1000".into(), &"0".into()));
    assert_ne!(summary["result_rows"], *"0");
    let other = served.post("/", b"SELECT 1");
    assert_eq!(other.header("x-clickhouse-query-id").len(), 36);
    let failed = served.post("/?query_id=wrong", b"SELECT nothing");
    assert_eq!(failed.header("x-clickhouse-exception-code"), "47");
    assert_eq!(failed.header("x-clickhouse-query-id"), "wrong");
    assert_eq!(failed.header("x-clickhouse-timezone"), "UTC");
    served.sql("CREATE TABLE t (x UInt64) ENGINE = Memory");
    for (insert, rows) in [
        ("INSERT INTO t VALUES (1), (2), (3)", "3"),
        ("INSERT INTO t SELECT number FROM numbers(20)", "20"),
        ("INSERT INTO t FORMAT CSV 1\n2\n", "2"),
    ] {
        let answer = served.post("/", insert.as_bytes());
        let summary: serde_json::Value = serde_json::from_str(answer.header("x-clickhouse-summary")).unwrap();
        assert_eq!(summary["written_rows"], *rows, "{insert}");
        assert_ne!(summary["written_bytes"], *"0", "{insert}");
    }
    assert_eq!(served.sql("SELECT version(), timezone(), currentUser()"), "26.9.2.1\tUTC\tdefault\n");
}

#[test]
fn a_body_that_cannot_be_unpacked_is_an_exception() {
    let (_folder, served) = served();
    for (encoding, status, code) in [("zstd", 501, "48"), ("gzip", 500, "271"), ("lz4", 500, "271")] {
        for path in ["/", "/dictionary/d/invalidate"] {
            let answer = served.post_as(path, b"SELECT 1", &[("content-encoding", encoding)]);
            assert_eq!(answer.header("x-clickhouse-exception-code"), code, "{encoding}: {}", answer.text());
            assert_eq!(answer.status, status, "{encoding}");
            let id = answer.header("x-clickhouse-query-id");
            assert_eq!(id.is_empty(), path != "/", "{encoding}: {id}");
        }
    }
    assert_eq!(served.post_as("/", b"SELECT 1", &[("content-encoding", "")]).text(), "1\n");
    let unknown = served.get("/no/such/path");
    assert_eq!(unknown.status, 404);
    assert!(unknown.text().starts_with("There is no handle /no/such/path\n"), "{}", unknown.text());
}

#[test]
fn a_statement_that_is_too_deep_is_an_exception() {
    let (_folder, served) = served();
    let ask = |start: &str, link: &str, times: usize| {
        let answer = served.post("/", [start, &link.repeat(times)].concat().as_bytes());
        (answer.header("x-clickhouse-exception-code").to_owned(), answer.text())
    };
    for (start, link, most) in [
        ("SELECT 1", "::Int8", 125),
        ("SELECT count() FROM numbers(3) WHERE number = 1", " OR number = 1", 995),
        ("SELECT 1", " IS NULL", 250),
        ("SELECT count() FROM (SELECT 1", " UNION ALL SELECT 1", 490),
    ] {
        let end = if start.contains('(') && link.contains("UNION") { ")" } else { "" };
        let deep = served.post("/", [start, &link.repeat(most), end].concat().as_bytes());
        assert_eq!(deep.status, 200, "{link}: {}", deep.text());
        // Longer ones are refused for their length.
        assert_eq!(ask(start, link, 9_000).0, "167", "{link}");
        assert_eq!(ask(start, link, 60_000).0, "62", "{link}");
    }
    assert_eq!(served.sql("SELECT 1"), "1\n");
}

#[test]
fn an_error_known_before_the_body_has_come_is_answered() {
    let (_folder, served) = served();
    for path in ["/dictionary/nope?format=RowBinary", "/?user=nobody&password=x"] {
        let mut stream = std::net::TcpStream::connect(served.host()).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let piece = [&b"10000\r\n"[..], &[7; 0x10000], b"\r\n"].concat();
        for _ in 0..30 {
            std::thread::sleep(std::time::Duration::from_millis(3));
            stream.write_all(&piece).unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("x-clickhouse-exception-code"), "{path}: {answer}");
    }
}

#[test]
fn native_is_written_in_blocks_of_columns() {
    let (_folder, served) = served();
    let answer =
        served.post("/", b"SELECT toUInt8(number + 1) AS n, 'ab' AS s FROM numbers(2) FORMAT Native");
    let expected = [&b"\x02\x02\x01n\x05UInt8\x01\x02"[..], b"\x01s\x06String\x02ab\x02ab"].concat();
    assert_eq!(answer.body, expected);
}

#[test]
fn figures_are_there_for_prometheus() {
    let (_folder, served) = served();
    served.sql(
        "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id \
        SOURCE(SQLITE(PATH 'none.db' TABLE 't')) LIFETIME(100) LAYOUT(SSD_CACHE(PATH 'd' FILE_SIZE 1048576))",
    );
    assert_eq!(served.post("/", b"SELECT dictGet('d', 'v', 1)").status, 500);
    let metrics = served.get("/metrics");
    assert!(metrics.header("content-type").starts_with("application/openmetrics-text"));
    let text = metrics.text();
    for line in [
        "granary_dictionary_up{dictionary=\"default.d\"} 1",
        "granary_dictionary_keys_requested_total{dictionary=\"default.d\"} 1",
        "granary_dictionary_source_errors_total{dictionary=\"default.d\"} 1",
        "granary_dictionary_elements{dictionary=\"default.d\"} 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line} is not in {text}");
    }
    let requests = "granary_http_request_duration_seconds_count{method=\"POST\",path=\"/\",status=\"200\"} 1";
    assert!(text.contains(requests), "{text}");
}

#[test]
fn wear_and_the_parts_of_ram_are_figures() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    served.sql("CREATE TABLE t (id UInt64, v String) ENGINE = Memory");
    served.sql("INSERT INTO t SELECT number, repeat('x', 200) FROM numbers(20000)");
    served.sql(
        "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id SOURCE(CLICKHOUSE(TABLE 't')) LIFETIME(100) \
         LAYOUT(SSD_CACHE(PATH 'd' FILE_SIZE 16777216 WRITE_BUFFER_SIZE 65536))",
    );
    assert_eq!(served.sql("SELECT count() FROM numbers(20000) WHERE dictHas('d', number)"), "20000\n");
    // The device takes the rows when it can.
    let is_written = |text: &String| !text.contains("flash_written_bytes_total{dictionary=\"default.d\"} 0");
    until("something is written", || is_written(&served.get("/metrics").text()));
    let text = served.get("/metrics").text();
    let figure = |name: &str| -> f64 {
        let line = format!("granary_dictionary_{name}{{dictionary=\"default.d\"}} ");
        let found = text.lines().find_map(|found| found.strip_prefix(&line));
        found.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
    };
    // Each row is its text, its key and a few bytes. What came faster than the device is not written.
    let (put, written) = (figure("put_bytes_total"), figure("flash_written_bytes_total"));
    assert!((200.0..230.0).contains(&(put / 20_000.0)), "{put} bytes");
    let amplification = figure("write_amplification");
    assert!((0.01..1.3).contains(&amplification) && amplification == written / put, "{amplification}");
    let parts = ["index", "memory", "buffer"].map(|part| figure(&format!("ram_{part}_bytes")));
    assert!(parts.iter().all(|bytes| *bytes > 0.0), "{parts:?}");
    assert_eq!(parts.iter().sum::<f64>(), figure("ram_bytes"));
}

#[test]
fn settings_of_a_request_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let shown = "SELECT name, value, changed FROM system.settings WHERE changed ORDER BY name";
    assert_eq!(served.sql(shown), "");
    let path = "/?max_threads=2&join_use_nulls=true&session_id=s";
    let both = "join_use_nulls\t1\t1\nmax_threads\t2\t1\n";
    assert_eq!(served.post(path, shown.as_bytes()).text(), both);
    // A session keeps what SET says.
    assert_eq!(served.post("/?session_id=s", shown.as_bytes()).text(), "");
    assert_eq!(served.post("/?session_id=s", b"SET max_threads = 2, join_use_nulls = 1").status, 200);
    assert_eq!(served.post("/?session_id=s", shown.as_bytes()).text(), both);
    assert_eq!(served.sql(shown), "");
}

#[test]
fn methods_that_nobody_knows_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    for method in ["BREW", "PROPFIND", "PUT"] {
        let url = format!("{}/", served.url);
        assert!(unset("curl").args(["-sS", "-X", method, &url]).output().unwrap().status.success());
    }
    let metrics = served.get("/metrics").text();
    assert!(metrics.contains("method=\"other\"") && metrics.contains("method=\"PUT\""), "{metrics}");
    assert!(!metrics.contains("BREW") && !metrics.contains("PROPFIND"), "{metrics}");
}

#[test]
fn what_a_url_says_behind_its_question_mark_is_shown_to_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    served.sql(
        "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id \
         SOURCE(HTTP(URL 'http://127.0.0.1:1/rows?token=letmein' FORMAT 'CSV')) LAYOUT(DIRECT())",
    );
    let failed = served.post("/", b"SELECT dictGet('d', 'v', 1)");
    assert_ne!(failed.status, 200);
    for shown in [
        failed.text(),
        served.sql("SHOW CREATE DICTIONARY d"),
        served.sql("SELECT create_table_query FROM system.tables WHERE name = 'd'"),
        served.sql("SELECT source, last_exception FROM system.dictionaries"),
    ] {
        assert!(shown.contains("http://127.0.0.1:1/rows?[HIDDEN]") && !shown.contains("letmein"), "{shown}");
    }
    // It is stored all the same.
    let kept = std::fs::read_to_string(folder.path().join("metadata/default/d.sql")).unwrap();
    assert!(kept.contains("token=letmein"), "{kept}");
}

#[test]
fn a_dictionary_takes_nobody_else_s_file() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let files = folder.path().join("user_files");
    let create = |columns: &str, path: &str, size: u64| {
        let sql = format!(
            "CREATE OR REPLACE DICTIONARY d (id UInt64, {columns}) PRIMARY KEY id SOURCE(HTTP(URL 'http://127.0.0.1:1/' FORMAT 'CSV')) LIFETIME(10) \
             LAYOUT(SSD_CACHE(PATH '{path}' BLOCK_SIZE 4096 WRITE_BUFFER_SIZE 65536 FILE_SIZE {size}))"
        );
        let answer = served.post("/", sql.as_bytes());
        (answer.header("x-clickhouse-exception-code").to_owned(), answer.text())
    };
    let names = || {
        let mut names: Vec<String> = std::fs::read_dir(&files)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let fine = (String::new(), String::new());
    std::fs::write(files.join("photos.bin"), "dear to somebody").unwrap();
    let (code, text) = create("v String", "photos", 1 << 20);
    assert!(code == "36" && text.contains("photos.bin is there already"), "{text}");
    assert_eq!(std::fs::read_to_string(files.join("photos.bin")).unwrap(), "dear to somebody");
    assert_eq!(names(), ["photos.bin"]);
    // A failed CREATE leaves nothing.
    std::fs::create_dir(files.join("folder.bin")).unwrap();
    let (code, text) = create("v String", "folder", 1 << 20);
    assert!(code == "76" && text.contains("folder.bin"), "{text}");
    assert_eq!(names(), ["folder.bin", "photos.bin"]);
    let metadata = std::fs::read_dir(folder.path().join("metadata/default"));
    assert_eq!(metadata.map_or(0, Iterator::count), 0);
    // A dictionary's own file is replaced with it, or reused by an equal definition.
    assert_eq!(create("v String", "own", 1 << 20), fine);
    assert_eq!(create("v UInt64", "own", 1 << 20), fine);
    let kept: Vec<(String, Vec<u8>)> = names()
        .into_iter()
        .filter(|name| name.starts_with("own"))
        .map(|name| (name.clone(), std::fs::read(files.join(name)).unwrap()))
        .collect();
    assert_eq!(kept.len(), 4);
    served.sql("DROP DICTIONARY d");
    assert_eq!(names(), ["folder.bin", "photos.bin"]);
    kept.iter().for_each(|(name, bytes)| std::fs::write(files.join(name), bytes).unwrap());
    let (code, text) = create("v String", "own", 1 << 20);
    assert!(code == "36" && text.contains("own.bin is the cache of another dictionary"), "{text}");
    assert_eq!(create("v UInt64", "own", 1 << 20), fine);
}

#[test]
fn browsers_see_the_dashboard() {
    let (_folder, served) = served();
    let page = served.get_as("/", &[("accept", "text/html,*/*")]);
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.text().contains("<title>Granary</title>"));
    // Only the page's own script runs.
    let policy = page.header("content-security-policy");
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    for (name, content_type) in
        [("style.css", "text/css; charset=utf-8"), ("script.js", "text/javascript; charset=utf-8")]
    {
        let file = served.get(&format!("/dashboard/{name}"));
        assert_eq!((file.status, file.header("content-type")), (200, content_type));
        assert!(page.text().contains(&format!("\"dashboard/{name}\"")) && !file.body.is_empty());
    }
    let wrong = served.get("/dashboard/history?since=yesterday");
    assert_eq!(wrong.header("x-clickhouse-exception-code"), "36", "{}", wrong.text());
}

fn history(served: &Served, since: u64) -> serde_json::Value {
    serde_json::from_str(&served.get(&format!("/dashboard/history?since={since}")).text()).unwrap()
}

#[test]
fn memcached_is_among_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--memcached", "127.0.0.1:0", "--memcached-memory", "64MiB", "--memcached-flash", "0"];
    let served = Served::start(folder.path(), &flags);
    served.sql(
        "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id \
        SOURCE(SQLITE(PATH 'none.db' TABLE 't')) LIFETIME(100) LAYOUT(CACHE(SIZE_IN_CELLS 10))",
    );
    assert_eq!(served.post("/", b"SELECT dictGet('d', 'v', 1)").status, 500);
    let address = history(&served, 0)["memcached"]["address"].as_str().unwrap().to_owned();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"set a 0 0 1\r\nx\r\nget a\r\nget b\r\nquit\r\n").unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\nEND\r\n");
    let metrics = served.get("/metrics").text();
    for line in [
        "granary_memcached_cmd_get_total 2",
        "granary_memcached_get_hits_total 1",
        "granary_memcached_get_misses_total 1",
        "granary_memcached_hits_memory_total 1",
        "granary_memcached_cmd_set_total 1",
        "granary_memcached_items 1",
        "# TYPE granary_memcached_items gauge",
    ] {
        assert!(metrics.lines().any(|found| found.starts_with(line)), "{line} is not in {metrics}");
    }
    // The dashboard shows them from its next sample on, with the source's failure.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let known = loop {
        let known = history(&served, 0);
        // A sample's figures may differ slightly in time, and the first may precede all of this.
        let last = |of: &serde_json::Value, column: &str| {
            of["series"][column].as_array().and_then(|series| series.last()?.as_u64())
        };
        let (memcached, dictionary) = (&known["memcached"], &known["dictionaries"]["default.d"]);
        if last(memcached, "cmd_get") == Some(2)
            && last(dictionary, "keys_requested") == Some(1)
            && last(dictionary, "source_errors") == Some(1)
        {
            break known;
        }
        assert!(std::time::Instant::now() < deadline, "{known}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    };
    let dictionary = &known["dictionaries"]["default.d"];
    let last = |column: &str| dictionary["series"][column].as_array().unwrap().last().unwrap().clone();
    let failure = &dictionary["failures"][0];
    assert!(failure["text"].as_str().unwrap().contains("none.db"), "{known}");
    // Samples sent before are not sent again.
    let fresh = history(&served, last("time").as_u64().unwrap());
    let times = &fresh["dictionaries"]["default.d"]["series"]["time"];
    assert!(!times.as_array().unwrap().contains(&last("time")), "{fresh}");
    assert_eq!(&fresh["dictionaries"]["default.d"]["failures"][0]["text"], &failure["text"]);
}

/// A request of NBD: its command, length and data. Returns what follows the answer's head.
fn nbd(stream: &mut std::net::TcpStream, command: u16, len: u32, data: &[u8], answer: usize) -> Vec<u8> {
    let mut request = vec![0x25, 0x60, 0x95, 0x13, 0, 0];
    request.extend(command.to_be_bytes());
    request.extend([7; 8]);
    request.extend(0u64.to_be_bytes());
    request.extend(len.to_be_bytes());
    request.extend(data);
    stream.write_all(&request).unwrap();
    let mut heard = vec![0; 16 + answer];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(heard[..16], [&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0][..], &[7; 8]].concat());
    heard.split_off(16)
}

#[test]
fn volumes_are_among_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for name in ["one", "two"] {
        let arguments = ["volume", "create", name, "--path", path, "--size", "16MiB"];
        let made = granary().args(arguments).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    }
    let served = Served::start(folder.path(), &["--nbd", "127.0.0.1:0"]);
    let address = history(&served, 0)["volumes"]["address"].as_str().unwrap().to_owned();
    // One URI for each volume.
    let (first, _) = address.split_once("/one, nbd://").unwrap();
    let mut stream = std::net::TcpStream::connect(first.strip_prefix("nbd://").unwrap()).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    // NBD_OPT_EXPORT_NAME, without the zeroes behind its answer.
    stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x03two").unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    nbd(&mut stream, 1, 8192, &[3; 8192], 0);
    nbd(&mut stream, 3, 0, &[], 0);
    assert_eq!(nbd(&mut stream, 0, 4096, &[], 4096), [3; 4096]);
    let metrics = served.get("/metrics").text();
    for line in [
        "granary_volume_reads_total{volume=\"two\"} 1",
        "granary_volume_writes_total{volume=\"two\"} 1",
        "granary_volume_flushes_total{volume=\"two\"} 1",
        "granary_volume_written_bytes_total{volume=\"two\"} 8192",
        "granary_volume_blocks_mapped{volume=\"two\"} 2",
        "granary_volume_blocks_mapped{volume=\"one\"} 0",
        "granary_volume_blocks{volume=\"one\"} 4096",
        "# TYPE granary_volume_segments_free gauge",
        "# TYPE granary_volume_read_duration_seconds histogram",
        "granary_volume_read_duration_seconds_count{volume=\"two\"} 1",
        "granary_volume_write_duration_seconds_bucket{le=\"+Inf\",volume=\"two\"} 1",
        "granary_volume_flush_duration_seconds_count{volume=\"two\"} 1",
        "granary_volume_flush_duration_seconds_count{volume=\"one\"} 0",
    ] {
        assert!(metrics.lines().any(|found| found.starts_with(line)), "{line} is not in {metrics}");
    }
    // A flush waits for the device.
    let flush = "granary_volume_flush_duration_seconds_sum{volume=\"two\"} ";
    let took = metrics.lines().find_map(|line| line.strip_prefix(flush)).unwrap();
    assert!(took.parse::<f64>().unwrap() > 0.0, "{metrics}");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let known = history(&served, 0);
        let series = &known["volumes"]["series"];
        // The read came last: a sample that has it has the write and the flush, too.
        let last = |name: &str| series[name]["reads"].as_array().and_then(|reads| reads.last()).cloned();
        if (last("one"), last("two")) == (Some(0.into()), Some(1.into())) {
            // In one sample, whichever it was, somebody waited for a flush; in volume one nobody ever did.
            let waited = |name: &str| {
                let median = series[name]["flush_us_p50"].as_array().unwrap();
                median.iter().any(|us| us.as_u64().unwrap() > 0)
            };
            assert_eq!((waited("one"), waited("two")), (false, true), "{known}");
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{known}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn rows_to_insert_come_in_the_body() {
    let (_folder, served) = served();
    served.sql("CREATE TABLE t (id UInt64, v String, n UInt8 DEFAULT id + 1)");
    let rows = [&1u64.to_le_bytes()[..], b"\x03\xe2\x82\xac", &2u64.to_le_bytes(), b"\x00"].concat();
    let answer = served.post("/?query=INSERT+INTO+t+(id,+v)+FORMAT+RowBinary", &rows);
    assert_eq!((answer.status, answer.body.len()), (200, 0), "{}", answer.text());
    let native =
        served.post("/", b"SELECT toUInt64(3) AS id, 'native' AS v, toUInt8(9) AS n FORMAT Native").body;
    let insert = [&b"INSERT INTO t FORMAT Native\n"[..], &native].concat();
    assert_eq!(served.post("/", &insert).status, 200);
    assert_eq!(served.post("/?query=INSERT+INTO+t+FORMAT+CSVWithNames", b"v,id\n\"a;\nb\",4\n").status, 200);
    assert_eq!(
        served.post("/", b"INSERT INTO t (id, v) FORMAT JSONEachRow {\"id\": 5, \"v\": \"it's\"}").status,
        200
    );
    let expected = "1\t\u{20ac}\t2\n2\t\t3\n3\tnative\t9\n4\ta;\\nb\t5\n5\tit\\'s\t6\n";
    assert_eq!(served.sql("SELECT * FROM t ORDER BY id"), expected);
    for (query, body, code) in [
        ("INSERT INTO t FORMAT RowBinary", &b"\x01"[..], "6"),
        ("INSERT INTO t FORMAT NoSuch", b"1", "73"),
        ("INSERT INTO nosuch FORMAT CSV", b"1", "60"),
        ("INSERT INTO t (nosuch) FORMAT CSV", b"1", "16"),
    ] {
        let answer = served.post(&format!("/?query={}", query.replace(' ', "+")), body);
        assert_eq!(answer.header("x-clickhouse-exception-code"), code, "{query}: {}", answer.text());
    }
    assert_eq!(served.sql("SELECT count() FROM t"), "5\n");
    let by_get = served.get("/?query=INSERT+INTO+t+FORMAT+CSV+1,2,3");
    assert_eq!(by_get.header("x-clickhouse-exception-code"), "164", "{}", by_get.text());
}

#[test]
fn the_log_says_when_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    let log = Served::start(folder.path(), &[]).log_of_stop();
    let [.., stops, stopped] = log.as_slice() else { panic!("{log:?}") };
    assert!(stops.contains("Granary stops, for SIGTERM has come"), "{stops}");
    assert!(stopped.contains("Granary has stopped"), "{stopped}");
}

#[test]
fn native_is_of_the_revision_that_a_client_knows() {
    let (_folder, served) = served();
    let block = b"\x01\x01\x01x\x05UInt8\x07";
    let with_serialization = b"\x01\x01\x01x\x05UInt8\0\x07";
    let info = b"\x01\0\x02\xff\xff\xff\xff\0";
    for (url, expected) in [
        ("/", block.to_vec()),
        ("/?client_protocol_version=0", block.to_vec()),
        ("/?client_protocol_version=54453", [&info[..], block].concat()),
        ("/?client_protocol_version=54460", [&info[..], with_serialization].concat()),
    ] {
        assert_eq!(served.post(url, b"SELECT 7 AS x FORMAT Native").body, expected, "{url}");
    }
    assert_eq!(served.post("/?client_protocol_version=new", b"SELECT 1").status, 400);
}
