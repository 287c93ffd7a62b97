//! Browsers, and requests that pages of other servers can make them send.

use crate::served::Served;

#[test]
fn pages_of_others_can_neither_change_nor_read_anything() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let evil = ("origin", "http://evil.example");
    let site = ("sec-fetch-site", "cross-site");
    let text = ("content-type", "text/plain");
    for headers in [&[evil, site, text][..], &[evil, text], &[site], &[("origin", "null")]] {
        for path in ["/", "/dictionary/d", "/dictionary/d/refresh", "/dictionary/d/invalidate"] {
            let answer = served.post_as(path, b"CREATE DATABASE evil", headers);
            let code = answer.header("x-clickhouse-exception-code");
            assert_eq!((answer.status, code), (403, "497"), "{path} {headers:?}: {}", answer.text());
        }
    }
    let script = [site, ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")];
    for path in ["/?query=SELECT+1", "/metrics", "/dictionary/d", "/dashboard/history"] {
        assert_eq!(served.get_as(path, &script).status, 403, "{path}");
    }
    assert_eq!(served.sql("SHOW DATABASES LIKE 'evil'"), "");
    // A browser without fetch metadata does not run an answer as a script.
    for path in ["/?query=SELECT+1", "/?query=SELECT", "/ping", "/nothing"] {
        assert_eq!(served.get(path).header("x-content-type-options"), "nosniff", "{path}");
    }
    // Links are followed; its own pages, and programs, are answered.
    let link =
        [site, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"), ("accept", "text/html")];
    for path in ["/", "/dashboard", "/?query=SELECT+1"] {
        assert_eq!(served.get_as(path, &link).status, 200, "{path}");
    }
    let host = served.url.as_str();
    for headers in [
        &[("origin", host), ("sec-fetch-site", "same-origin")][..],
        &[("origin", host)],
        &[("sec-fetch-site", "none")],
        &[],
    ] {
        assert_eq!(served.post_as("/", b"SELECT 1", headers).text(), "1\n", "{headers:?}");
        assert_eq!(served.get_as("/?query=SELECT+1", headers).text(), "1\n", "{headers:?}");
    }
}

#[test]
fn a_name_that_was_led_here_is_no_page_of_this_server() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let port = served.host().rsplit(':').next().unwrap().to_owned();
    let ask = |name: &str, origin: &str| {
        let (host, origin) = (format!("{name}:{port}"), format!("{origin}:{port}"));
        served.post_as("/", b"SELECT 1", &[("host", &host), ("origin", &origin)]).status
    };
    assert_eq!(ask("evil.example", "http://evil.example"), 403);
    assert_eq!(ask("localhost", "http://localhost"), 200);
    assert_eq!(ask("127.0.0.1", "http://127.0.0.1"), 200);
    // A proxy with a certificate, and a program.
    assert_eq!(ask("granary.example", "https://granary.example"), 200);
    assert_eq!(served.post_as("/", b"SELECT 1", &[("host", "granary")]).status, 200);
    // With users, the password decides.
    let config = folder.path().join("granary.toml");
    std::fs::write(&config, "[users.default]\npassword = ''").unwrap();
    drop(served);
    let served = Served::start(folder.path(), &["--config", config.to_str().unwrap()]);
    let own = [("host", "granary:8123"), ("origin", "http://granary:8123")];
    assert_eq!(served.post_as("/", b"SELECT 1", &own).status, 200);
}
