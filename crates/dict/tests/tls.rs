//! Sources over TLS, on the real servers.

#[path = "common/certificate.rs"]
mod certificate;
mod common;
#[path = "common/ferretdb.rs"]
mod ferretdb;
#[path = "common/postgres.rs"]
mod postgres_server;
#[path = "common/process.rs"]
mod process;

use certificate::Certificate;
use common::*;
use granary_dict::{Dictionary, Environment, parse_create};
use postgres_server::Server;
use process::{Process, on_free_ports};
use redis::{Client, Connection, ConnectionAddr, IntoConnectionInfo, RedisResult, TlsCertificates};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn open(source: &str) -> Dictionary {
    let sql =
        format!("CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id SOURCE({source}) LAYOUT(DIRECT())");
    Dictionary::open(definition(&sql), &Environment::new(std::env::temp_dir())).unwrap()
}

/// The value of key 1, or why there is none.
fn value(source: &str) -> Result<String, String> {
    let answer = open(source).get(&[0], &u64s([1])).map_err(|error| error.to_string())?;
    Ok(texts(&answer.columns[0]).remove(0))
}

#[test]
fn postgres_as_sslmode_says() {
    let folder = tempfile::tempdir().unwrap();
    let other = Certificate::new(folder.path(), "other");
    let server = Server::start_with(|folder| Some(Certificate::new(folder, "server")));
    let plain = Server::start();
    // Whether the server sees TLS.
    let query = "SELECT 1 AS id, ssl::text AS v FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let ask = |server: &Server, host: &str, tls: &str| {
        let port = server.port;
        value(&format!(
            "POSTGRESQL(HOST '{host}' PORT {port} USER 'granary' PASSWORD 'secret' QUERY '{query}' {tls})"
        ))
    };
    let own = server.certificate.as_ref().unwrap().certificate.display().to_string();
    let other = other.certificate.display().to_string();
    let by = |mode: &str, file: &str| format!("SSLMODE '{mode}' SSLROOTCERT '{file}'");
    for (host, tls, expected) in [
        ("localhost", String::new(), "false"),
        ("localhost", "SSLMODE 'disable'".into(), "false"),
        ("localhost", "SSLMODE 'prefer'".into(), "true"),
        ("localhost", "SSLMODE 'require'".into(), "true"),
        ("localhost", by("require", &own), "true"),
        ("127.0.0.1", by("require", &own), "true"),
        ("127.0.0.1", by("verify-ca", &own), "true"),
        ("localhost", by("verify-full", &own), "true"),
    ] {
        assert_eq!(ask(&server, host, &tls).as_deref(), Ok(expected), "{host} {tls}");
    }
    for (host, tls, says) in [
        ("localhost", by("require", &other), "invalid peer certificate"),
        ("localhost", by("verify-ca", &other), "invalid peer certificate"),
        ("localhost", by("verify-full", &other), "invalid peer certificate"),
        ("127.0.0.1", by("verify-full", &own), "not valid for name"),
        ("localhost", "SSLMODE 'verify-full'".into(), "invalid peer certificate"),
        ("localhost", by("verify-full", "/nosuch.pem"), "/nosuch.pem"),
        ("localhost", by("verify-full", "/etc/hostname"), "there is none that can be used"),
    ] {
        let error = ask(&server, host, &tls).unwrap_err();
        assert!(error.contains(says), "{host} {tls}: {error}");
    }
    assert_eq!(ask(&plain, "localhost", "SSLMODE 'prefer'").as_deref(), Ok("false"));
    let error = ask(&plain, "localhost", "SSLMODE 'require'").unwrap_err();
    assert!(error.contains("does not support TLS"), "{error}");
}

#[test]
fn redis_with_secure() {
    let folder = tempfile::tempdir().unwrap();
    let own = Certificate::new(folder.path(), "server");
    let other = Certificate::new(folder.path(), "other");
    let ([port], _server) = on_free_ports(|[port]| {
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--port", "0", "--save", "", "--tls-auth-clients", "no", "--dir"])
            .arg(folder.path())
            .args(["--tls-port", &port.to_string(), "--tls-cert-file"])
            .arg(&own.certificate)
            .arg("--tls-key-file")
            .arg(&own.key)
            .arg("--tls-ca-cert-file")
            .arg(&own.certificate);
        Process::start(&mut command, || redis_connection(port, &own.certificate).is_ok())
    });
    redis::cmd("SET")
        .arg("1")
        .arg("one")
        .exec(&mut redis_connection(port, &own.certificate).unwrap())
        .unwrap();
    let ask = |host: &str, tls: &str| value(&format!("REDIS(HOST '{host}' PORT {port} {tls})"));
    let by = |file: &Path| format!("SECURE 1 SSL_CA '{}'", file.display());
    assert_eq!(ask("localhost", &by(&own.certificate)).as_deref(), Ok("one"));
    for (host, tls) in [
        ("localhost", String::new()),
        ("localhost", "SECURE 1".into()),
        ("localhost", by(&other.certificate)),
        ("127.0.0.1", by(&own.certificate)),
    ] {
        let error = ask(host, &tls).unwrap_err();
        assert!(error.contains("Redis"), "{host} {tls}: {error}");
    }
}

fn redis_connection(port: u16, certificate: &Path) -> RedisResult<Connection> {
    let address =
        ConnectionAddr::TcpTls { host: "localhost".into(), port, insecure: false, tls_params: None };
    let certificates =
        TlsCertificates { client_tls: None, root_cert: Some(std::fs::read(certificate).unwrap()) };
    Client::build_with_tls(address.into_connection_info()?, certificates)?.get_connection()
}

#[test]
fn mongodb_as_its_options_say() {
    let folder = tempfile::tempdir().unwrap();
    let own = Certificate::new(folder.path(), "server");
    let other = Certificate::new(folder.path(), "other");
    let (own, other) = (own.certificate.display().to_string(), other.certificate.display().to_string());
    let server = ferretdb::Server::start_with(Some(Certificate::of(folder.path(), "server")));
    server.insert("t", [mongodb::bson::doc! { "id": 1, "v": "one" }]);
    let (plain, port) = (server.port, server.tls_port.unwrap());
    let ask = |host: &str, port: u16, timeout_ms: u32, options: &str| {
        let (user, password) = (ferretdb::USER, ferretdb::PASSWORD.replace('\'', "''"));
        value(&format!(
            "MONGODB(HOST '{host}' PORT {port} USER '{user}' PASSWORD '{password}' DB 'app' COLLECTION 't' \
             OPTIONS '{}&serverSelectionTimeoutMS={timeout_ms}&{options}')",
            ferretdb::OPTIONS
        ))
    };
    for (host, port, options) in [
        ("localhost", plain, "tls=false".into()),
        ("localhost", port, format!("tls=true&tlsCAFile={own}")),
        ("localhost", port, format!("ssl=true&tlsCAFile={own}")),
        ("127.0.0.1", port, "tls=true&tlsAllowInvalidCertificates=true".into()),
    ] {
        assert_eq!(ask(host, port, 20_000, &options).as_deref(), Ok("one"), "{host} {options}");
    }
    for (host, port, options, says) in [
        ("localhost", port, String::new(), "MongoDB"),
        ("localhost", plain, format!("tls=true&tlsCAFile={own}"), "MongoDB"),
        ("localhost", port, "tls=true".into(), "invalid peer certificate"),
        ("localhost", port, format!("tls=true&tlsCAFile={other}"), "invalid peer certificate"),
        ("127.0.0.1", port, format!("tls=true&tlsCAFile={own}"), "not valid for name"),
        ("localhost", port, "tls=true&tlsCAFile=/nosuch.pem".into(), "/nosuch.pem"),
        ("localhost", port, "tls=true&tlsCAFile=/etc/hostname".into(), "there is none that can be used"),
    ] {
        // The driver tries for all of the time, and may not have come so far by its end.
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let error = ask(host, port, 1000, &options).unwrap_err();
            if error.contains(says) {
                break;
            }
            assert!(Instant::now() < deadline, "{host} {options}: {error}");
        }
    }
}

#[test]
fn how_it_is_spoken_is_written_and_read_back_and_does_not_change_what_is_cached() {
    let with = |source: &str| {
        format!("CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id SOURCE({source}) LAYOUT(DIRECT())")
    };
    for (plain, secure) in [
        ("POSTGRESQL(TABLE 't' ", "SSLMODE 'verify-full' SSLROOTCERT '/a.pem')"),
        ("REDIS(PORT 1 ", "SECURE 1 SSL_CA '/a.pem')"),
    ] {
        let secure = definition(&with(&format!("{plain}{secure}")));
        assert_eq!(definition(&secure.to_sql()), secure, "{}", secure.to_sql());
        assert!(!definition(&with(&format!("{plain})"))).to_sql().contains("SSL"));
    }
    for (source, code, says) in [
        ("POSTGRESQL(TABLE 't' SSLMODE 'allow')", 36, "disable, prefer, require, verify-ca, verify-full"),
        ("POSTGRESQL(TABLE 't' SSLCERT '/a.pem')", 48, "SSLCERT"),
        ("MYSQL(TABLE 't' SSL_MODE 'REQUIRED')", 48, "use a tunnel"),
        ("REDIS(SECURE yes)", 36, "SECURE"),
    ] {
        let error = parse_create(&with(source)).unwrap_err();
        assert!(error.code() == code && error.message().contains(says), "{source}: {error}");
    }
    let confined = Environment {
        user_files: Some(std::env::temp_dir().join("nosuch")),
        ..Environment::new(std::env::temp_dir())
    };
    for source in [
        "POSTGRESQL(TABLE 't' SSLMODE 'verify-ca' SSLROOTCERT '/etc/passwd')",
        "MONGODB(URI 'mongodb://h/d?tls=true&tlsCAFile=/etc/passwd' COLLECTION 'c')",
    ] {
        let outside = Dictionary::open(definition(&with(source)), &confined);
        assert_eq!(outside.err().map(|error| error.code()), Some(481), "{source}");
    }
}
