//! A PostgreSQL server for a study, from Debian's package.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::process::{children, free_port, signal};
use crate::failure::{Failure, Result, at};

const INSTALL: &str = "scripts/install-test-servers.sh installs it";
const PASSWORD: &str = "secret";
/// How long it may take to start, also after it was stopped in the middle of its work.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server on loopback with one table; it is stopped on drop.
pub struct Postgres {
    binaries: PathBuf,
    folder: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    /// Makes a database in a new folder and serves it.
    pub fn start(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(at(folder))?;
        // PostgreSQL runs as its own user if we are root.
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).map_err(at(folder))?;
        let password = folder.join("password");
        std::fs::write(&password, PASSWORD).map_err(at(&password))?;
        let mut this =
            Self { binaries: binaries()?, folder: folder.to_owned(), port: free_port()?, server: None };
        let made = this
            .command("initdb")
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
            .arg(folder.join("data"))
            .output()
            .map_err(at(folder))?;
        if !made.status.success() {
            return Err(Failure::Answer(format!("initdb: {}", String::from_utf8_lossy(&made.stderr))));
        }
        this.start_again()?;
        Ok(this)
    }

    /// PostgreSQL refuses to run as root.
    fn command(&self, program: &str) -> Command {
        let program = self.binaries.join(program);
        let is_root = Command::new("id").arg("-u").output().is_ok_and(|answer| answer.stdout == b"0\n");
        let mut command = match is_root {
            true => Command::new("setpriv"),
            false => return Command::new(program),
        };
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
        command
    }

    /// Starts the server again, on the same port.
    pub fn start_again(&mut self) -> Result<()> {
        let server = self
            .command("postgres")
            .arg("-D")
            .arg(self.folder.join("data"))
            .args(["-p", &self.port.to_string(), "-h", "127.0.0.1", "-k", ""])
            .args(["-c", "fsync=off", "-c", "shared_buffers=512MB", "-c", "max_wal_size=4GB"])
            // For a table read by index on SSD; and autovacuum must not read it.
            .args(["-c", "random_page_cost=1.1", "-c", "autovacuum=off"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(at(&self.binaries))?;
        self.server = Some(server);
        let deadline = Instant::now() + TIMEOUT;
        while let Err(failure) = self.ask("SELECT 1") {
            let ended = self.server.as_mut().is_none_or(|server| !matches!(server.try_wait(), Ok(None)));
            if ended || Instant::now() > deadline {
                return Err(failure);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Runs SQL in psql; returns the answer's rows, with columns separated by `|`.
    pub fn ask(&self, sql: &str) -> Result<String> {
        let psql = self.binaries.join("psql");
        let mut command = Command::new(&psql);
        command.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "granary"]);
        command.args(["-p", &self.port.to_string(), "-d", "postgres", "-c", sql]).env("PGPASSWORD", PASSWORD);
        let answer = command.stdin(Stdio::null()).output().map_err(at(&psql))?;
        match answer.status.success() {
            true => Ok(String::from_utf8_lossy(&answer.stdout).trim().to_owned()),
            false => {
                Err(Failure::Answer(format!("psql: {}", String::from_utf8_lossy(&answer.stderr).trim())))
            }
        }
    }

    /// The one number that a query returns.
    pub fn number(&self, sql: &str) -> Result<u64> {
        let text = self.ask(sql)?;
        text.parse().map_err(|_| Failure::Answer(text))
    }

    /// `SOURCE(...)` of a dictionary over a table here, for Granary and for ClickHouse.
    pub fn source(&self, table: &str) -> String {
        format!(
            "SOURCE(POSTGRESQL(HOST '127.0.0.1' PORT {} USER 'granary' PASSWORD '{PASSWORD}' DB 'postgres' \
             TABLE '{table}'))",
            self.port
        )
    }

    /// The server's version.
    pub fn version(&self) -> Result<String> {
        self.ask("SHOW server_version")
    }

    /// Stops it immediately; connections break.
    pub fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        // Immediate shutdown, which ends its child processes, too.
        signal("QUIT", server.id());
        let _ = server.wait();
    }

    /// Suspends it and all of its connections: it accepts requests and answers none. Undone by `resume`.
    pub fn pause(&self) {
        self.signal_all("STOP");
    }

    /// Resumes it.
    pub fn resume(&self) {
        self.signal_all("CONT");
    }

    fn signal_all(&self, name: &str) {
        let Some(server) = &self.server else { return };
        signal(name, server.id());
        children(server.id()).into_iter().for_each(|child| signal(name, child));
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.resume();
        self.stop();
    }
}

/// `/usr/lib/postgresql/<version>/bin`, for the newest version.
fn binaries() -> Result<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = entries.map(|entry| entry.path().join("bin")).collect();
    versions.retain(|folder| folder.join("initdb").exists() && folder.join("postgres").exists());
    versions.sort();
    versions.pop().ok_or_else(|| Failure::Argument(format!("PostgreSQL is not installed: {INSTALL}")))
}
