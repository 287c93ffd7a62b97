//! A Redis server of its own for each test file, from Debian's package.

use crate::process::{Process, again, on_free_ports};
use redis::{Client, Connection, IntoConnectionInfo, RedisConnectionInfo, RedisResult};
use std::process::Command;

pub struct Server {
    pub port: u16,
    process: Process,
    folder: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let ([port], process) = on_free_ports(|[port]| run(&folder, port));
        Server { port, process, folder }
    }

    /// Runs commands, as written for redis-cli, in one database.
    pub fn execute(&self, database: i64, commands: &[&str]) {
        let mut connection = connect(self.port, database).unwrap();
        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            let mut built = redis::cmd(words[0]);
            built.arg(&words[1..]);
            built.exec(&mut connection).unwrap_or_else(|e| panic!("{e}\n{command}"));
        }
    }

    pub fn connection(&self) -> Connection {
        connect(self.port, 0).unwrap()
    }

    /// From now on nothing is answered, until `go_on`. CLIENT PAUSE would end by itself, and CLIENT UNPAUSE wait for
    /// that.
    pub fn pause(&self) {
        self.process.signal("-STOP");
    }

    pub fn go_on(&self) {
        self.process.signal("-CONT");
    }

    /// Stops the server at once; connections break.
    pub fn stop(&mut self) {
        self.process.kill();
    }

    /// Starts it again, empty, on the same port.
    pub fn start_again(&mut self) {
        self.process = again(|| run(&self.folder, self.port));
    }
}

fn run(folder: &tempfile::TempDir, port: u16) -> Option<Process> {
    let mut command = Command::new("redis-server");
    command
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--requirepass", "secret"])
        .args(["--dir".as_ref(), folder.path().as_os_str()]);
    Process::start(&mut command, || connect(port, 0).is_ok())
}

fn connect(port: u16, database: i64) -> RedisResult<Connection> {
    let session = RedisConnectionInfo::default().set_password("secret").set_db(database);
    Client::open(("127.0.0.1", port).into_connection_info()?.set_redis_settings(session))?.get_connection()
}
