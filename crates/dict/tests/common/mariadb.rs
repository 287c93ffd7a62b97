//! A MariaDB server of its own for each test file, from Debian's package.

use crate::process::{Process, again, on_free_ports};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use std::process::Command;

pub struct Server {
    pub port: u16,
    process: Process,
    folder: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap().trim().to_string();
        let made = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(format!("--user={user}"))
            .arg(format!("--datadir={}", folder.path().join("data").display()))
            .output()
            .expect("MariaDB is not installed: run scripts/install-test-servers.sh");
        assert!(made.status.success(), "mariadb-install-db: {}", String::from_utf8_lossy(&made.stderr));
        let ([port], process) = on_free_ports(|[port]| run(&folder, port, &user));
        let server = Server { port, process, folder };
        server.execute("CREATE DATABASE app CHARACTER SET utf8mb4");
        server.execute("CREATE USER granary@localhost IDENTIFIED BY 'it''s secret'");
        server.execute("GRANT ALL ON *.* TO granary@localhost");
        server
    }

    pub fn connection(&self) -> Conn {
        connect(self.port).unwrap()
    }

    /// Runs one statement.
    pub fn execute(&self, sql: &str) {
        connect(self.port).unwrap().query_drop(sql).unwrap_or_else(|e| panic!("{e}\n{sql}"));
    }

    /// Statements that run now, except this one.
    pub fn running(&self) -> Vec<String> {
        let sql = "SELECT info FROM information_schema.processlist WHERE info IS NOT NULL AND id <> connection_id()";
        connect(self.port).unwrap().query(sql).unwrap()
    }

    /// Prepared statements of all clients that are not closed.
    pub fn prepared(&self) -> u64 {
        let sql = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'";
        connect(self.port).unwrap().query_first::<(String, u64), _>(sql).unwrap().unwrap().1
    }

    /// Stops the server at once; connections break.
    pub fn stop(&mut self) {
        self.process.kill();
    }

    /// Starts it again, on the same port.
    pub fn start_again(&mut self) {
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap();
        self.process = again(|| run(&self.folder, self.port, user.trim()));
    }
}

fn run(folder: &tempfile::TempDir, port: u16, user: &str) -> Option<Process> {
    let mut command = Command::new("mariadbd");
    command
        .args(["--no-defaults", "--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=0"])
        // A table in a zone that is not UTC must not matter.
        .args(["--innodb-buffer-pool-size=32M", "--default-time-zone=+03:00"])
        .arg(format!("--user={user}"))
        .arg(format!("--datadir={}", folder.path().join("data").display()))
        .arg(format!("--socket={}", folder.path().join("socket").display()))
        .arg(format!("--pid-file={}", folder.path().join("pid").display()))
        .arg(format!("--port={port}"));
    Process::start(&mut command, || connect(port).is_ok())
}

fn connect(port: u16) -> Result<Conn, mysql::Error> {
    Conn::new(
        OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(port)
            .prefer_socket(false)
            .user(Some("root")),
    )
}
