//! A PostgreSQL server of its own for each test file, from Debian's package.
#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::certificate::Certificate;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Server {
    pub port: u16,
    /// With it the server speaks TLS to clients that ask for it.
    pub certificate: Option<Certificate>,
    child: Child,
    _folder: tempfile::TempDir,
}

/// `/usr/lib/postgresql/<version>/bin`, the newest.
fn binaries() -> PathBuf {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    versions.retain(|bin| bin.join("initdb").exists() && bin.join("postgres").exists());
    versions.sort();
    versions.pop().expect("PostgreSQL is not installed: run scripts/install-test-servers.sh")
}

/// PostgreSQL refuses to run as root; then it runs as its own user.
fn command(program: &Path) -> Command {
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n");
    if !root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

impl Server {
    pub fn start() -> Server {
        Server::start_with(|_| None)
    }

    /// With a certificate that is made in the server's folder, if any.
    pub fn start_with(certificate: impl FnOnce(&Path) -> Option<Certificate>) -> Server {
        let bin = binaries();
        let folder = tempfile::tempdir().unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let (data, password) = (folder.path().join("data"), folder.path().join("password"));
        std::fs::write(&password, "secret\n").unwrap();
        let made = command(&bin.join("initdb"))
            .args([
                "--auth=scram-sha-256",
                "--username=granary",
                "--no-sync",
                "--encoding=UTF8",
                "--locale=C",
            ])
            .arg("--pwfile")
            .arg(&password)
            .arg("--pgdata")
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let certificate = certificate(folder.path());
        let mut tls = Vec::new();
        if let Some(Certificate { certificate, key }) = &certificate {
            // The server wants its key for itself.
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(key, mode).unwrap();
            if command(Path::new("true")).get_program() == "setpriv" {
                assert!(Command::new("chown").arg("postgres").arg(key).status().unwrap().success());
            }
            tls.push("ssl=on".to_string());
            tls.push(format!("ssl_cert_file={}", certificate.display()));
            tls.push(format!("ssl_key_file={}", key.display()));
        }
        let run = || {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let child = command(&bin.join("postgres"))
                .arg("-D")
                .arg(&data)
                .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", ""])
                .args(["-c", "fsync=off", "-c", "shared_buffers=16MB"])
                .args(tls.iter().flat_map(|setting| ["-c", setting]))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            (port, child)
        };
        let (port, child) = run();
        let mut server = Server { port, certificate, child, _folder: folder };
        let deadline = Instant::now() + Duration::from_secs(60);
        // Another process may have got the port first, and answer.
        while server.connect().is_err() || !server.is_running() {
            assert!(Instant::now() < deadline, "PostgreSQL did not start");
            if !server.is_running() {
                (server.port, server.child) = run();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn connect(&self) -> Result<postgres::Client, postgres::Error> {
        self.connect_to("postgres")
    }

    fn connect_to(&self, database: &str) -> Result<postgres::Client, postgres::Error> {
        let options = format!(
            "host=127.0.0.1 port={} user=granary password=secret dbname={database} connect_timeout=5",
            self.port
        );
        postgres::Client::connect(&options, postgres::NoTls)
    }

    pub fn execute(&self, sql: &str) {
        self.connect().unwrap().batch_execute(sql).unwrap();
    }

    /// Runs statements in another database.
    pub fn execute_in(&self, database: &str, sql: &str) {
        self.connect_to(database).unwrap().batch_execute(sql).unwrap();
    }

    /// Stops the server at once; connections break.
    pub fn stop(&mut self) {
        if !self.is_running() {
            return;
        }
        // SIGQUIT to the one process started here: immediate shutdown, which takes its children along.
        let _ = Command::new("kill").args(["-QUIT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
