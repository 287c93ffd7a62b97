//! The real program on the file system, and requests to it.

use crate::fuse::Running;
use crate::program::{GRANARY, granary, unset};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Has the rest of its arguments run on a machine that came up again: with another boot id, that of the first one. File
/// systems of other tests, which are not to stay for as long as this runs, it leaves: all but the second one.
const REBOOTED: &str = r#"
mount --bind "$1" /proc/sys/kernel/random/boot_id || exit
awk -v mine="$2" '$2 ~ "/(disk|image)/mount$" && $2 != mine {print $2}' /proc/mounts | xargs -r umount -l
shift 2
exec "$@""#;

/// Longer than any answer takes, and the end of a server.
const TIMEOUT: Duration = Duration::from_secs(300);

pub struct Process {
    child: Running,
    http: String,
    memcached: TcpStream,
    nbd: String,
}

impl Process {
    /// Starts the server; `rebooted`: a file with the id of another start of the machine, and where the file system is
    /// mounted.
    pub fn start(path: &Path, rebooted: Option<(&Path, &Path)>, memory: &Path, arguments: &[&str]) -> Self {
        let mut command = match rebooted {
            None => granary(),
            Some((boot_id, mount)) => {
                let mut command = unset("unshare");
                command.args(["-m", "sh", "-c", REBOOTED, "sh"]).args([boot_id, mount]).arg(GRANARY);
                command
            }
        };
        command.args([
            "server",
            "--http",
            "127.0.0.1:0",
            "--memcached",
            "127.0.0.1:0",
            "--nbd",
            "127.0.0.1:0",
        ]);
        command.args(["--allow-executable", "--path"]).arg(path).args(arguments);
        command.arg("--memcached-memory-folder").arg(memory);
        command.arg("--dictionary-memory-folder").arg(memory);
        let mut child = Running(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        let lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
        let (send, log) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("{line}");
                let _ = send.send(line);
            }
        });
        let behind = |words: &str| loop {
            let line = log.recv_timeout(Duration::from_secs(60));
            let line = line.unwrap_or_else(|why| panic!("no line with {words:?}: {why}"));
            if let Some((_, rest)) = line.split_once(words) {
                break rest.trim().to_owned();
            }
        };
        let http = behind("Granary listens on ");
        let memcached = TcpStream::connect(behind("serves memcached on ")).unwrap();
        memcached.set_nodelay(true).unwrap();
        memcached.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let nbd = behind("nbd://");
        Self { child, http, memcached, nbd }
    }

    /// The address of its volumes.
    pub fn nbd(&self) -> &str {
        &self.nbd
    }

    /// The text that SQL answers.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        let options = ureq::Agent::config_builder().http_status_as_error(false);
        let agent: ureq::Agent = options.timeout_global(Some(TIMEOUT)).build().into();
        let (parts, mut body) = agent.post(&self.http).send(sql).unwrap().into_parts();
        let text = body.with_config().limit(1 << 30).read_to_string().unwrap();
        assert_eq!(parts.status.as_u16(), 200, "{sql}: {text}");
        text
    }

    /// What memcached answers, up to what it answers to `mn`.
    #[track_caller]
    pub fn say(&self, requests: &[u8]) -> Vec<u8> {
        let mut stream = &self.memcached;
        stream.write_all(&[requests, b"mn\r\n"].concat()).unwrap();
        let (mut heard, mut part) = (Vec::new(), vec![0; 1 << 16]);
        while !heard.ends_with(b"MN\r\n") {
            let read = stream.read(&mut part).unwrap();
            assert!(read > 0, "memcached goes on");
            heard.extend_from_slice(&part[..read]);
        }
        heard.truncate(heard.len() - 4);
        heard
    }

    /// Ends it as a person does, and waits.
    pub fn stop(mut self) {
        let stop = Command::new("kill").arg(self.child.0.id().to_string()).status().unwrap();
        assert!(stop.success());
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(status.success());
    }
}
