//! Dictionaries over HTTP: by SQL, and as ClickHouse's source.

use crate::served::Served;
use std::path::Path;

/// An SQLite table of users 1 to 100 (id, name and city), in a folder that the server may read.
pub fn users(path: &Path) {
    let folder = path.join("user_files");
    std::fs::create_dir_all(&folder).unwrap();
    let database = rusqlite::Connection::open(folder.join("users.db")).unwrap();
    let made = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
        INSERT INTO users SELECT i, 'n' || i, CASE WHEN i % 2 THEN 'Riga' END FROM n;";
    database.execute_batch(made).unwrap();
}

const CREATE: &str = "CREATE DICTIONARY users (id UInt64, name String, city Nullable(String)) PRIMARY KEY id \
    SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LIFETIME(MIN 1000 MAX 2000) \
    LAYOUT(SSD_CACHE(PATH 'users' FILE_SIZE 4194304 WRITE_BUFFER_SIZE 65536))";

const CREATE_CACHED: &str = "CREATE DICTIONARY users (id UInt64, name String) PRIMARY KEY id \
    SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LIFETIME(1000) LAYOUT(CACHE(SIZE_IN_CELLS 1000))";

/// A server whose dictionary `users` is on SSD.
pub fn with_users() -> (tempfile::TempDir, Served) {
    serve(&[], CREATE)
}

/// A server, started with these arguments, whose dictionary `users` is in RAM.
pub fn with_cached_users(arguments: &[&str]) -> (tempfile::TempDir, Served) {
    serve(arguments, CREATE_CACHED)
}

fn serve(arguments: &[&str], create: &str) -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path());
    let served = Served::start(folder.path(), arguments);
    served.sql(create);
    (folder, served)
}

#[test]
fn it_answers_as_clickhouse_does() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    for path in ["/", "/ping", "/replicas_status"] {
        assert_eq!((served.get(path).status, served.get(path).text().as_str()), (200, "Ok.\n"));
    }
    let answer = served.get("/?query=SELECT%201,'a'");
    assert_eq!((answer.status, answer.text().as_str()), (200, "1\ta\n"));
    assert_eq!(answer.header("content-type"), "text/tab-separated-values; charset=UTF-8");
    assert_eq!(answer.header("x-clickhouse-format"), "TabSeparated");
    assert_eq!(served.post("/?query=SELECT%201%2B", b"2 FORMAT CSV").text(), "3\n");
    assert_eq!(served.post("/?default_format=JSONEachRow", b"SELECT 1 AS a").text(), "{\"a\":1}\n");
    assert_eq!(served.sql("SELECT sum(number) FROM numbers(1000000)"), "499999500000\n");
    assert_eq!(served.sql("SELECT number FROM numbers(300000)").lines().count(), 300_000);

    for (sql, status, code, says) in [
        ("SELECT", 400, "62", "SYNTAX_ERROR"),
        ("SELECT nosuch", 404, "47", "UNKNOWN_IDENTIFIER"),
        ("SELECT * FROM nosuch", 404, "60", "UNKNOWN_TABLE"),
        ("SELECT 1; SELECT 2", 400, "62", "Multi-statements are not allowed"),
        ("", 400, "62", "Empty query"),
    ] {
        let answer = served.post("/", sql.as_bytes());
        assert_eq!(answer.status, status, "{sql}: {}", answer.text());
        assert_eq!(answer.header("x-clickhouse-exception-code"), code);
        assert!(answer.text().starts_with(&format!("Code: {code}. DB::Exception: ")), "{}", answer.text());
        assert!(answer.text().contains(says), "{}", answer.text());
    }
}

#[test]
fn databases_are_of_a_request_and_dictionaries_of_all() {
    let (_folder, served) = with_users();
    let by_get = served.get("/?query=CREATE+DATABASE+other");
    assert_eq!(by_get.header("x-clickhouse-exception-code"), "164", "{}", by_get.text());
    served.sql("CREATE DATABASE other");
    assert_eq!(served.get("/?query=SHOW+DATABASES").text(), "default\nother\n");
    served.sql("USE other");
    assert_eq!(served.sql("SELECT dictGet('users', ('name', 'city'), 7)"), "('n7','Riga')\n");
    let there = served.post("/?database=other", b"SELECT dictGet('default.users', 'name', 8)");
    assert_eq!(there.text(), "n8\n");
    assert_eq!(served.post("/?database=other", b"SELECT dictGet('users', 'name', 8)").status, 400);
    assert_eq!(served.post("/?database=nosuch", b"SELECT 1").status, 404);
}

#[test]
fn keys_asked_for_are_answered_and_no_others() {
    let (_folder, served) = with_users();
    let keys = |keys: &[u64]| keys.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<u8>>();
    let row = |key: u64, name: &str, city: Option<&str>| {
        let mut row = key.to_le_bytes().to_vec();
        row.push(name.len() as u8);
        row.extend(name.bytes());
        match city {
            None => row.push(1),
            Some(city) => {
                row.extend([0, city.len() as u8]);
                row.extend(city.bytes());
            }
        }
        row
    };
    let answer = served.post("/dictionary/users", &keys(&[3, 1000, 4, 0, 3]));
    assert_eq!(answer.status, 200);
    let expected = [row(3, "n3", Some("Riga")), row(4, "n4", None), row(3, "n3", Some("Riga"))].concat();
    assert_eq!(answer.body, expected);
    for (format, asked, expected) in [
        ("TabSeparated", "5\n200\n6\n", "5\tn5\tRiga\n6\tn6\t\\N\n"),
        ("CSV", "5\n200\n6\n", "5,\"n5\",\"Riga\"\n6,\"n6\",\\N\n"),
        (
            "JSONEachRow",
            "{\"id\":5}\n{\"id\":\"6\"}\n",
            "{\"id\":5,\"name\":\"n5\",\"city\":\"Riga\"}\n{\"id\":6,\"name\":\"n6\",\"city\":null}\n",
        ),
    ] {
        let answer = served.post(&format!("/dictionary/users?format={format}"), asked.as_bytes());
        assert_eq!((answer.status, answer.text().as_str()), (200, expected), "{format}");
    }
    for nothing in [keys(&[]), keys(&[12345])] {
        let answer = served.post("/dictionary/users", &nothing);
        assert_eq!((answer.status, answer.body.len()), (200, 0));
    }
    let torn = served.post("/dictionary/users", &keys(&[1])[..5]);
    assert_eq!(torn.status, 400, "{}", torn.text());
    assert_eq!(served.post("/dictionary/nosuch", &keys(&[1])).status, 400);
    let refused = served.post("/dictionary/users?format=Parquet", &keys(&[1]));
    assert_eq!(refused.status, 404);
    let text = refused.text();
    let (_, known) = text.split_once("; use ").unwrap();
    let known = known.split(". (").next().unwrap().split(", ");
    for format in known.inspect(|name| assert!(!name.is_empty())) {
        let answer = served.post(&format!("/dictionary/users?format={format}"), b"");
        assert_ne!(answer.status, 404, "{format}");
    }
    let refused = served.get("/dictionary/users?format=Parquet").text();
    assert!(refused.contains("Rows of a dictionary are not written as Parquet"), "{refused}");
    let resident = served.get("/dictionary/users?format=TabSeparated").text();
    let mut resident: Vec<&str> = resident.lines().collect();
    resident.sort_unstable();
    assert_eq!(resident, ["3\tn3\tRiga", "4\tn4\t\\N", "5\tn5\tRiga", "6\tn6\t\\N"]);
}

#[test]
fn a_block_of_keys_as_clickhouse_sends_it() {
    let (_folder, served) = with_users();
    let keys: Vec<u8> = (0..65_409u64).flat_map(u64::to_le_bytes).collect();
    let first = served.post("/dictionary/users", &keys);
    assert_eq!(first.status, 200);
    let again = std::thread::scope(|scope| {
        let asking: Vec<_> =
            (0..8).map(|_| scope.spawn(|| served.post("/dictionary/users", &keys).body)).collect();
        asking.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(again.iter().all(|body| *body == first.body));
    // Except for a few that look alike to the index and evict each other.
    let rows = served.sql("SELECT source_rows FROM system.dictionaries");
    assert!((100..110).contains(&rows.trim().parse::<u32>().unwrap()), "each key was asked for once: {rows}");
}

#[test]
fn it_is_warm_when_it_starts_again() {
    let (folder, served) = with_users();
    served.sql("SELECT count(dictGet('users', 'name', number)) FROM numbers(100)");
    assert_eq!(served.stop(), Some(0));
    std::fs::remove_file(folder.path().join("user_files/users.db")).unwrap();
    let served = Served::start(folder.path(), &[]);
    assert_eq!(served.sql("SELECT dictGet('users', 'name', 99)"), "n99\n");
    assert_eq!(served.get("/dictionary/users?format=CSV").text().lines().count(), 99);
}

#[test]
fn the_statement_for_clickhouse() {
    let (_folder, served) = with_users();
    let expected = format!(
        "CREATE DICTIONARY users\n(\n    `id` UInt64,\n    `name` String,\n    `city` Nullable(String)\n)\n\
         PRIMARY KEY id\nSOURCE(HTTP(URL '{}/dictionary/users?format=Native' FORMAT 'Native'))\nLAYOUT(DIRECT())\n",
        served.url
    );
    assert_eq!(served.get("/dictionary/users/ddl").text(), expected);
}

/// Special characters of a name are not interpreted as parts of the URL.
#[test]
fn the_statement_for_clickhouse_names_any_dictionary() {
    let (_folder, served) = with_users();
    served.sql(
        "CREATE DICTIONARY `who? 50%/é` (id UInt64, name String) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LAYOUT(DIRECT)",
    );
    let path = "/dictionary/who%3F%2050%25%2F%C3%A9";
    let statement = served.get(&format!("{path}/ddl")).text();
    assert!(statement.contains(&format!("URL '{}{path}?format=Native'", served.url)), "{statement}");
    assert_eq!(served.post(&format!("{path}?format=CSV"), b"9\n").text(), "9,\"n9\"\n");
}

#[test]
fn rows_that_keys_do_not_find_are_given_whole() {
    let (folder, served) = with_users();
    served.sql(
        "CREATE DICTIONARY ranges (id UInt64, name String, low UInt8 EXPRESSION id % 7, high UInt8 EXPRESSION 7) \
         PRIMARY KEY id SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LIFETIME(0) LAYOUT(RANGE_HASHED()) \
         RANGE(MIN low MAX high)",
    );
    assert_eq!(served.stop(), Some(0));
    let served = Served::start(folder.path(), &[]);
    let found = served.sql("SELECT dictGet('ranges', 'name', 9, 2), dictHas('ranges', 9, 1)");
    assert_eq!(found, "n9\t0\n");
    let rows = served.get("/dictionary/ranges?format=CSV").text();
    assert_eq!((rows.lines().count(), rows.lines().nth(8)), (100, Some("9,2,7,\"n9\"")));
    for refused in
        [served.post("/dictionary/ranges?format=TSV", b"9\n"), served.get("/dictionary/ranges/ddl")]
    {
        assert_eq!(refused.header("x-clickhouse-exception-code"), "1", "{}", refused.text());
    }
}

#[test]
fn what_is_not_allowed_is_refused() {
    let (folder, served) = with_users();
    let outside = CREATE.replace("users.db", "/etc/passwd").replace("DICTIONARY users", "DICTIONARY o");
    let outside = outside.replace("(PATH 'users'", "(PATH 'o'");
    let answer = served.post("/", outside.as_bytes());
    assert_eq!(
        (answer.status, answer.header("x-clickhouse-exception-code")),
        (500, "481"),
        "{}",
        answer.text()
    );
    for file in ["/etc/passwd", "../default/users.sql", "nosuch.csv"] {
        let answer = served.post("/", format!("SELECT * FROM file('{file}', 'CSV')").as_bytes());
        let code = if file == "nosuch.csv" { "76" } else { "481" };
        assert_eq!(answer.header("x-clickhouse-exception-code"), code, "{}", answer.text());
    }
    std::fs::write(folder.path().join("user_files/a.csv"), "1,2\n").unwrap();
    assert_eq!(served.sql("SELECT * FROM 'a.csv'"), "1\t2\n");
    let program = "CREATE DICTIONARY p (id UInt64, v String) PRIMARY KEY id \
        SOURCE(EXECUTABLE(COMMAND 'cat' FORMAT 'TabSeparated')) LIFETIME(9) LAYOUT(CACHE(SIZE_IN_CELLS 10))";
    // As in ClickHouse, queries that need its rows get the error that it may not run.
    assert_eq!(served.post("/", program.as_bytes()).status, 200);
    let answer = served.post("/", b"SELECT dictGet('p', 'v', 1)");
    assert_eq!(answer.header("x-clickhouse-exception-code"), "482", "{}", answer.text());
}

#[test]
fn entries_are_renewed_on_demand() {
    let (folder, served) = with_users();
    let name = |key: u64| served.sql(&format!("SELECT dictGet('users', 'name', {key})"));
    assert_eq!(
        (name(1), name(2), name(3), name(500)),
        ("n1\n".into(), "n2\n".into(), "n3\n".into(), "\n".into())
    );
    let database = rusqlite::Connection::open(folder.path().join("user_files/users.db")).unwrap();
    database
        .execute_batch("UPDATE users SET name = 'new' || id; INSERT INTO users VALUES (500, 'n500', '')")
        .unwrap();
    assert_eq!((name(1), name(500)), ("n1\n".into(), "\n".into()), "cached");
    served.sql("SYSTEM REFRESH DICTIONARY users KEYS (1, 500)");
    served.sql("SYSTEM INVALIDATE DICTIONARY users KEYS (2)");
    assert_eq!(
        (name(1), name(2), name(3), name(500)),
        ("new1\n".into(), "new2\n".into(), "n3\n".into(), "n500\n".into())
    );
    database.execute_batch("UPDATE users SET name = 'newer' || id").unwrap();
    let post =
        |path: &str, body: &[u8]| served.post(&format!("/dictionary/users/{path}?format=CSV"), body).status;
    assert_eq!((post("refresh", b"1\n"), post("invalidate", b"2\n")), (200, 200));
    assert_eq!((name(1), name(2), name(3)), ("newer1\n".into(), "newer2\n".into(), "n3\n".into()));
    assert_eq!(post("invalidate", b""), 200);
    assert_eq!(name(3), "newer3\n");
    assert_eq!(post("refresh", b"x\n"), 400);
    database.execute_batch("DROP TABLE users").unwrap();
    assert_eq!(served.post("/", b"SYSTEM REFRESH DICTIONARY users KEYS (3)").status, 500);
    assert_eq!(name(3), "newer3\n", "a refresh that fails takes nothing away");
}
