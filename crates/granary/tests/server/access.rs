//! Users, rights, TLS and the configuration.

use crate::program::{GRANARY, granary, unset};
use crate::served::Served;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn users(folder: &Path) {
    let database = rusqlite::Connection::open(folder.join("user_files/t.db")).unwrap();
    database.execute_batch("CREATE TABLE t (id INTEGER, v TEXT); INSERT INTO t VALUES (1, 'one')").unwrap();
}

const CONFIG: &str = "
[users.root]
password = 'secret'
[users.reader]
password = 'letmein'
readonly = true
dictionaries = ['default.a*']
[users.guest]
password = ''
dictionaries = []
[settings]
max_result_rows = 1000
";

fn create(name: &str) -> String {
    format!(
        "CREATE DICTIONARY {name} (id UInt64, v String DEFAULT '?') PRIMARY KEY id \
         SOURCE(SQLITE(PATH 't.db' TABLE 't')) LIFETIME(1000) LAYOUT(CACHE(SIZE_IN_CELLS 1000))"
    )
}

fn configured() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("user_files")).unwrap();
    users(folder.path());
    let config = folder.path().join("granary.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let served = Served::start(folder.path(), &["--config", config.to_str().unwrap()]);
    (folder, served)
}

#[test]
fn limits_of_the_configuration_bind_who_may_not_do_anything() {
    let (_folder, served) = configured();
    let ask = |user: &str, query: &str, settings: &str| {
        let query = query.replace(' ', "+");
        let answer = served.get(&format!("/?user={user}&query={query}{settings}"));
        (answer.header("x-clickhouse-exception-code").to_owned(), answer.text().lines().count())
    };
    let many = "SELECT number FROM numbers(2000) FORMAT TSV";
    let root = "root&password=secret";
    let over = "396".to_owned();
    for user in ["guest", "reader&password=letmein", root] {
        assert_eq!(ask(user, many, "").0, over, "{user}");
        assert_eq!(ask(user, "SELECT number FROM numbers(20)", "&max_result_rows=10").0, over, "{user}");
    }
    for user in ["guest", "reader&password=letmein"] {
        for (query, setting) in [
            (many, "&max_result_rows=0"),
            (many, "&max_result_rows=5000"),
            ("SELECT number FROM numbers(2000) SETTINGS max_result_rows = 0", ""),
            ("SET max_result_rows = 1001", ""),
            // A sleep is bounded also without a setting.
            ("SELECT 1 SETTINGS function_sleep_max_microseconds_per_block = 0", ""),
        ] {
            assert_eq!(ask(user, query, setting).0, "452", "{user}: {query} {setting}");
        }
    }
    assert_eq!(ask(root, many, "&max_result_rows=0"), (String::new(), 2000));
}

#[test]
fn users_come_in_with_their_passwords() {
    let (_folder, served) = configured();
    let ask = |path: &str, headers: &[(&str, &str)]| {
        let answer = served.get_as(&format!("/?query=SELECT+currentUser(){path}"), headers);
        (answer.status, answer.header("x-clickhouse-exception-code").to_owned(), answer.text())
    };
    let root = (200, String::new(), "root\n".to_owned());
    assert_eq!(ask("&user=root&password=secret", &[]), root);
    assert_eq!(ask("", &[("x-clickhouse-user", "root"), ("x-clickhouse-key", "secret")]), root);
    assert_eq!(ask("", &[("authorization", "Basic cm9vdDpzZWNyZXQ=")]), root);
    assert_eq!(ask("&user=guest", &[]).2, "guest\n");
    // A key without a user is refused, rather than taken for the URL's user.
    let (_, code, text) = ask("&user=guest", &[("x-clickhouse-key", "secret")]);
    assert!(
        code == "516" && text.contains("Got an empty user name from X-ClickHouse HTTP headers"),
        "{text}"
    );
    for (path, headers) in [
        ("", &[][..]),
        ("&user=root", &[]),
        ("&user=root&password=Secret", &[]),
        ("&user=nobody&password=secret", &[]),
        ("", &[("authorization", "Bearer secret")]),
    ] {
        let (status, code, text) = ask(path, headers);
        assert!((status, code.as_str()) == (403, "516") || (status, code.as_str()) == (401, "194"), "{text}");
    }
    assert_eq!(served.get("/ping").text(), "Ok.\n");
    assert_ne!(served.get("/metrics").status, 200);
}

#[test]
fn the_statement_for_clickhouse_says_who_asked_for_it() {
    let (_folder, served) = configured();
    served.post("/?user=root&password=secret", create("a1").as_bytes());
    let source = |answer: &crate::served::Answer| {
        answer.text().lines().find(|line| line.starts_with("SOURCE")).unwrap_or_default().to_owned()
    };
    let url = format!("{}/dictionary/a1?format=Native", served.url);
    for (path, headers, credentials) in [
        ("?user=root&password=secret", &[][..], "USER 'root' PASSWORD 'secret'"),
        ("", &[("authorization", "Basic cm9vdDpzZWNyZXQ=")], "USER 'root' PASSWORD 'secret'"),
        (
            "",
            &[("x-clickhouse-user", "reader"), ("x-clickhouse-key", "letmein")],
            "USER 'reader' PASSWORD 'letmein'",
        ),
    ] {
        let answer = served.get_as(&format!("/dictionary/a1/ddl{path}"), headers);
        let wanted = format!("SOURCE(HTTP(URL '{url}' FORMAT 'Native' CREDENTIALS({credentials})))");
        assert_eq!(source(&answer), wanted);
        assert_eq!(answer.header("cache-control"), "no-store");
    }
}

#[test]
fn rights_end_where_the_configuration_says() {
    let (_folder, served) = configured();
    let ask = |user: &str, sql: &str| {
        let answer = served.post(&format!("/?user={user}"), sql.as_bytes());
        let code = answer.header("x-clickhouse-exception-code").to_owned();
        if answer.status == 200 { answer.text() } else { code }
    };
    let root = |sql: &str| ask("root&password=secret", sql);
    let reader = |sql: &str| ask("reader&password=letmein", sql);
    assert_eq!((root(&create("a1")), root(&create("b1"))), (String::new(), String::new()));
    for (sql, of_reader, of_guest) in [
        ("SELECT dictGet('a1', 'v', 1)", "one\n", "497"),
        ("SELECT dictGet('b1', 'v', 1)", "497", "497"),
        ("SELECT * FROM (SELECT dictHas('default.b1', 1))", "497", "497"),
        ("SELECT dictGetAll('b1', 'v', 'a text')", "497", "497"),
        ("SELECT dictGetChildren('b1', toUInt64(1))", "497", "497"),
        // Granary's internal names: functions that no query can call, and tables.
        ("SELECT `dictGet/constant`('default.b1', 'v', toUInt64(1))", "46", "46"),
        ("SELECT count() FROM default.`b1\u{1}with times`", "497", "497"),
        ("SELECT file('a.csv')", "497", "497"),
        ("SELECT * FROM file('a.csv', 'CSV')", "497", "497"),
        ("SELECT * FROM 'a.csv'", "497", "497"),
        ("SELECT count() FROM a1", "1\n", "497"),
        ("SELECT count() FROM b1", "497", "497"),
        ("SELECT count() FROM dictionary('b1')", "497", "497"),
        ("SELECT name, type FROM system.dictionaries", "a1\tCache\n", ""),
        ("SELECT count() FROM system.dictionaries AS d JOIN system.dictionaries AS e ON 1 = 1", "1\n", "0\n"),
        ("SELECT name FROM (SELECT * FROM system.dictionaries) WHERE name = 'b1'", "", ""),
        ("SELECT count() FROM system.tables", "497", "497"),
        ("SELECT count() FROM system.columns", "497", "497"),
        ("SELECT count() FROM system.metrics", "497", "497"),
        ("SELECT count() FROM system.events", "497", "497"),
        ("SELECT count() FROM system.named_collections", "497", "497"),
        ("SHOW DICTIONARIES", "a1\n", ""),
        ("SHOW CREATE DICTIONARY b1", "497", "497"),
        ("DESCRIBE b1", "497", "497"),
        ("SYSTEM RELOAD DICTIONARY a1", "164", "497"),
        ("SYSTEM INVALIDATE DICTIONARY a1 KEYS (1)", "164", "497"),
        ("DROP DICTIONARY a1", "164", "497"),
        ("CREATE DATABASE x", "164", "497"),
        ("SELECT 1", "1\n", "1\n"),
    ] {
        assert_eq!((reader(sql).as_str(), ask("guest", sql).as_str()), (of_reader, of_guest), "{sql}");
    }
    let by_path = |user: &str| served.post(&format!("/dictionary/b1?format=CSV&user={user}"), b"1\n").status;
    assert_eq!((by_path("root&password=secret"), by_path("reader&password=letmein")), (200, 403));
    let code = |answer: crate::served::Answer| answer.header("x-clickhouse-exception-code").to_owned();
    for (user, of_renewals, of_metrics) in
        [("guest", "497", "497"), ("reader&password=letmein", "164", "497"), ("root&password=secret", "", "")]
    {
        for change in ["refresh", "invalidate"] {
            let path = format!("/dictionary/a1/{change}?format=CSV&user={user}");
            assert_eq!(code(served.post(&path, b"1\n")), of_renewals, "{user}: {change}");
        }
        assert_eq!(code(served.get(&format!("/metrics?user={user}"))), of_metrics, "{user}: metrics");
    }
    assert_eq!(root("SELECT number FROM numbers(2000)"), "396", "a setting of the configuration");
}

#[test]
fn tls_is_spoken_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let arguments =
        ["--https", "127.0.0.1:0", "--tls-certificate", certificate.as_str(), "--tls-key", key.as_str()];
    let served = Served::start(folder.path(), &arguments);
    let https = served.https();
    let curl = |certificate: &str| -> Output {
        let url = format!("{https}/?query=SELECT%201");
        unset("curl").args(["-sS", "--cacert", certificate, &url]).output().unwrap()
    };
    assert_eq!(String::from_utf8_lossy(&curl(&certificate).stdout), "1\n");
    assert!(!curl("/etc/hostname").status.success(), "the certificate is checked");
    assert_eq!(served.sql("SELECT 1"), "1\n", "HTTP goes on");
}

#[test]
fn any_number_of_connections_may_be_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--connections", &usize::MAX.to_string()]);
    assert_eq!(served.sql("SELECT 1"), "1\n");
}

/// Connections are counted together; only connected clients take places, not listeners that wait for one.
#[test]
fn one_connection_is_enough_for_http_and_https() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let arguments = [
        &["--https", "127.0.0.1:0", "--connections", "1", "--tls-certificate"][..],
        &[certificate.as_str(), "--tls-key", key.as_str()],
    ];
    let served = Served::start(folder.path(), &arguments.concat());
    let https = format!("{}/?query=SELECT%201", served.https());
    let http = format!("{}/?query=SELECT%201", served.url);
    for url in [&http, &http, &https, &https, &http] {
        let asked = ["-sS", "--max-time", "20", "--cacert", &certificate, url];
        let answer = unset("curl").args(asked).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&answer.stdout), "1\n", "{url}");
    }
}

#[test]
fn sources_over_https_are_read_if_their_certificate_is_trusted() {
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (certificate, key) = certificate(there.path());
    let arguments =
        ["--https", "127.0.0.1:0", "--tls-certificate", certificate.as_str(), "--tls-key", key.as_str()];
    let source = Served::start(there.path(), &arguments);
    let https = source.https();
    source.sql("CREATE TABLE t (id UInt64, v String)");
    source.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')");
    source.sql("CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id SOURCE(CLICKHOUSE(TABLE 't')) LAYOUT(DIRECT())");
    let port = https.rsplit(':').next().unwrap();
    let of_http = format!("HTTP(URL '{https}/dictionary/d' FORMAT 'RowBinary')");
    let of_clickhouse = format!("CLICKHOUSE(HOST 'localhost' PORT {port} SECURE 1 TABLE 't')");
    let served = Served::start_in(here.path(), &[], &[("SSL_CERT_FILE", &certificate)]);
    let ask = |served: &Served, name: &str, source: &str| {
        served.sql(&format!(
            "CREATE DICTIONARY {name} (id UInt64, v String) PRIMARY KEY id SOURCE({source}) LAYOUT(DIRECT())"
        ));
        served.post("/", format!("SELECT dictGet('{name}', 'v', 2)").as_bytes())
    };
    assert_eq!(ask(&served, "h", &of_http).text(), "two\n");
    assert_eq!(ask(&served, "c", &of_clickhouse).text(), "two\n");
    let distrusts = tempfile::tempdir().unwrap();
    let distrusts =
        Served::start_in(distrusts.path(), &[], &[("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")]);
    let refused = ask(&distrusts, "h", &of_http);
    assert_ne!(refused.status, 200, "{}", refused.text());
}

/// A certificate for localhost, and its key, as files.
pub fn certificate(folder: &Path) -> (String, String) {
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let subject = [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ];
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "1",
        ])
        .args(subject)
        .args(["-keyout", &key, "-out", &certificate])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
    (certificate, key)
}

/// The error of a server that does not start.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = granary()
        .args(["server", "--path"])
        .arg(folder.join("data"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_would_be_unsafe_or_wrong_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("granary.toml");
    let text = config.to_str().unwrap();
    assert!(refusal(folder.path(), &["--http", "0.0.0.0:0"]).contains("there are no users"));
    std::fs::write(&config, "htp = '127.0.0.1:0'").unwrap();
    assert!(refusal(folder.path(), &["--config", text]).contains("htp"));
    std::fs::write(&config, "[users.ann]").unwrap();
    assert!(refusal(folder.path(), &["--config", text]).contains("password_hash"));
    std::fs::write(&config, "[settings]\nno_such = 1").unwrap();
    let flags =
        ["--config", text, "--http", "127.0.0.1:0", "--memcached", "127.0.0.1:0", "--memcached-flash", "0"];
    assert!(refusal(folder.path(), &flags).contains("no_such"));
    let begun = std::fs::read_dir(folder.path().join("data")).map_or(0, Iterator::count);
    assert_eq!(begun, 0, "what changes on disk comes after all that can refuse a start");
    assert!(refusal(folder.path(), &["--https", "127.0.0.1:0"]).contains("certificate"));
    let missing = ["--https", "127.0.0.1:0", "--tls-certificate", "/none.pem", "--tls-key", "/none.pem"];
    assert!(
        refusal(folder.path(), &[&["--http", "127.0.0.1:0"][..], &missing].concat()).contains("/none.pem")
    );
    assert!(refusal(folder.path(), &["--config", "/none.toml"]).contains("/none.toml"));
    // Settings without effect are taken for mistakes.
    for (idle, said) in [
        ("[tls]\ncertificate = 'c.pem'\nkey = 'k.pem'", "nothing speaks TLS"),
        (
            "[tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\n[memcached]\naddress = '127.0.0.1:0'",
            "nothing speaks TLS",
        ),
        ("[memcached]\nmemory = '64MiB'", "memcached has no address"),
        ("[nbd]\ntls = true", "NBD has no address"),
        ("http = 'localhost'", "is no address with a port"),
        ("http = 'no.such.host.invalid:1'", "has no address"),
    ] {
        std::fs::write(&config, idle).unwrap();
        let refused = refusal(folder.path(), &["--config", text]);
        assert!(refused.contains(said), "{idle}: {refused}");
    }
    assert!(refusal(folder.path(), &["--memcached-memory", "64MiB"]).contains("memcached has no address"));
    let too_much = refusal(folder.path(), &["--memcached", "127.0.0.1:0", "--memcached-memory", "900TiB"]);
    assert!(too_much.contains("900.00 TiB of RAM are wanted for items"), "{too_much}");
    assert!(refusal(folder.path(), &["--nbd-tls"]).contains("NBD has no address"));
    let idle = ["--tls-certificate", "c.pem", "--tls-key", "k.pem"];
    assert!(refusal(folder.path(), &idle).contains("nothing speaks TLS"));
}

#[test]
fn a_hashed_password_is_as_good_as_a_plain_one() {
    let folder = tempfile::tempdir().unwrap();
    let hash = Command::new("sh")
        .args(["-c", "printf 'pass word\\n' | \"$0\" hash-password", GRANARY])
        .output()
        .unwrap();
    let hash = String::from_utf8(hash.stdout).unwrap();
    let config = folder.path().join("granary.toml");
    std::fs::write(&config, format!("[users.ann]\npassword_hash = '{}'", hash.trim())).unwrap();
    let served = Served::start(folder.path(), &["--config", config.to_str().unwrap()]);
    assert_eq!(served.get("/?query=SELECT+1&user=ann&password=pass%20word").text(), "1\n");
    assert_ne!(served.get("/?query=SELECT+1&user=ann&password=pass").status, 200);
    let empty = Command::new("sh").args(["-c", "echo | \"$0\" hash-password", GRANARY]).output().unwrap();
    assert_eq!((empty.status.success(), empty.stdout.as_slice()), (false, &b""[..]));
    assert!(String::from_utf8(empty.stderr).unwrap().contains("no password was given"));
}

#[test]
fn a_name_is_an_address_and_a_hangup_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start_at("localhost:0", folder.path(), &[], &[]);
    assert!(served.url.starts_with("http://127.0.0.1:"), "{}", served.url);
    served.signal("HUP");
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(served.sql("SELECT 1"), "1\n");
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn browsers_are_asked_for_a_password() {
    let (_folder, served) = configured();
    let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let root = ("authorization", "Basic cm9vdDpzZWNyZXQ=");
    for wrong in [&[browser][..], &[browser, ("authorization", "Basic cm9vdDpTZWNyZXQ=")]] {
        for path in ["/", "/dashboard", "/?query=SELECT+1"] {
            let asked = served.get_as(path, wrong);
            assert_eq!((asked.status, asked.header("www-authenticate")), (401, "Basic realm=\"Granary\""));
            assert_eq!(asked.header("x-clickhouse-exception-code"), "516");
            assert!(asked.text().starts_with("Code: 516. DB::Exception: "), "{}", asked.text());
        }
    }
    // Programs get ClickHouse's answers.
    for answer in [served.get("/"), served.post_as("/", b"SELECT 1", &[browser])] {
        assert_eq!((answer.status, answer.header("www-authenticate")), (403, ""));
    }
    let page = served.get_as("/", &[browser, root]);
    assert!(page.status == 200 && page.text().contains("<title>Granary</title>"));
    assert_eq!(served.get_as("/dashboard/history", &[root]).status, 200);
    // The browser's credentials are for the server's own pages, not for those of others.
    let host = served.url.as_str();
    let ask = |headers: &[(&str, &str)]| {
        let answer = served.post_as("/?default_format=CSV", b"SELECT 1", &[&[root], headers].concat());
        (answer.status, answer.header("x-clickhouse-exception-code").to_owned())
    };
    assert_eq!(ask(&[("origin", host)]), (200, String::new()));
    assert_eq!(ask(&[("origin", "https://proxy"), ("sec-fetch-site", "same-origin")]), (200, String::new()));
    for other in [&[("origin", "http://evil")][..], &[("origin", host), ("sec-fetch-site", "cross-site")]] {
        assert_eq!(ask(other), (403, "497".to_owned()));
    }
}

#[test]
fn the_dashboard_tells_of_what_may_be_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("user_files")).unwrap();
    users(folder.path());
    let config = folder.path().join("granary.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let flags =
        ["--config", config.to_str().unwrap(), "--memcached", "127.0.0.1:0", "--memcached-flash", "0"];
    let served = Served::start(folder.path(), &flags);
    for name in ["a1", "b1"] {
        assert_eq!(served.post("/?user=root&password=secret", create(name).as_bytes()).status, 200);
    }
    let history = |user: &str| -> serde_json::Value {
        serde_json::from_str(&served.get(&format!("/dashboard/history?user={user}")).text()).unwrap()
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let all = loop {
        let all = history("root&password=secret");
        if all["dictionaries"]["default.b1"].is_object() {
            break all;
        }
        assert!(std::time::Instant::now() < deadline, "{all}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    };
    assert!(all["dictionaries"]["default.a1"].is_object() && all["memcached"].is_object(), "{all}");
    let some = history("reader&password=letmein");
    let names: Vec<String> = some["dictionaries"].as_object().unwrap().keys().cloned().collect();
    // What else the page requests.
    let script = served.get("/dashboard/script.js").text();
    let quoted = |before: &str, quote: char| {
        let (_, rest) = script.split_once(before).unwrap();
        rest.split(quote).next().unwrap().to_owned()
    };
    let query = quoted("const query = `", '`').replace("${times}", &quoted("const times = \"", '"'));
    let states = |user: &str| -> serde_json::Value {
        let path = format!("/?default_format=JSON&user={user}");
        serde_json::from_str(&served.post(&path, query.as_bytes()).text()).unwrap()
    };
    for (user, dictionaries) in [("root&password=secret", 2), ("reader&password=letmein", 1), ("guest", 0)] {
        let states = states(user);
        assert_eq!(states["data"].as_array().unwrap().len(), dictionaries, "{user}: {states}");
    }
    assert_eq!(states("reader&password=letmein")["data"][0]["name"], "a1");
    assert_eq!((names, some["memcached"].is_null()), (vec!["default.a1".to_owned()], true), "{some}");
    assert_eq!(history("guest"), serde_json::json!({"dictionaries": {}, "memcached": null, "volumes": null}));
    assert_eq!(served.get("/dashboard/history").status, 403);
}

#[test]
fn dictionary_files_are_read_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("user_files")).unwrap();
    users(folder.path());
    let xml = |default: &str| {
        format!(
            "<clickhouse><dictionary><name>x</name><structure><id><name>id</name></id><attribute><name>v</name>\
             <type>String</type><null_value>{default}</null_value></attribute></structure>\
             <source><sqlite><path>t.db</path><table>t</table></sqlite></source>\
             <layout><cache><size_in_cells>100</size_in_cells></cache></layout>\
             <lifetime>100</lifetime></dictionary></clickhouse>"
        )
    };
    let file = folder.path().join("x_dictionary.xml");
    std::fs::write(&file, xml("a")).unwrap();
    let pattern = folder.path().join("*_dictionary.xml");
    let served = Served::start(folder.path(), &["--dictionaries", pattern.to_str().unwrap()]);
    assert_eq!(served.sql("SELECT dictGet('x', 'v', 1), dictGet('x', 'v', 2)"), "one\ta\n");
    std::fs::write(&file, xml("something else")).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while served.sql("SELECT dictGet('x', 'v', 2)") != "something else\n" {
        assert!(std::time::Instant::now() < deadline, "the file is not read again");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// A name can be written in more ways than the rights consider: a restricted user must not read a forbidden dictionary
/// by any of them.
#[test]
fn no_way_to_say_a_name_goes_around_the_rights() {
    let (_folder, served) = configured();
    let ask = |user: &str, sql: &str| {
        let answer = served.post(&format!("/?user={user}"), sql.as_bytes());
        let code = answer.header("x-clickhouse-exception-code").to_owned();
        if answer.status == 200 { answer.text() } else { code }
    };
    for sql in [
        create("b1").as_str(),
        "CREATE DATABASE `p.q`",
        "CREATE TABLE `p.q`.c (x UInt64)",
        "INSERT INTO `p.q`.c VALUES (42)",
    ] {
        assert_eq!(ask("root&password=secret", sql), "", "{sql}");
    }
    for sql in [
        "SELECT dictGet(identity('default.b1'), 'v', 1)",
        "SELECT dictGet(toLowCardinality('default.b1'), 'v', 1)",
        "SELECT dictGet($$default.b1$$, 'v', 1)",
        "WITH identity('default.b1') AS n SELECT dictGet(n, 'v', 1)",
        "SELECT dictHas(identity('default.b1'), 1)",
        // A database with a dot in its name is split at the wrong one.
        "SELECT * FROM `p.q`.c",
    ] {
        assert!(ask("root&password=secret", sql).contains('\n'), "{sql}");
        for user in ["reader&password=letmein", "guest"] {
            assert_eq!(ask(user, sql), "497", "{user}: {sql}");
        }
    }
}
