//! A `granary server` for a study: this program in another process.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::process::{resident_bytes, signal};
use crate::failure::{Failure, Result, at};

/// Longer than the server waits for any source.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// A running server, ended on drop.
pub struct Served {
    process: Child,
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    agent: ureq::Agent,
}

/// A client that keeps its connection.
pub fn agent() -> ureq::Agent {
    let options = ureq::Agent::config_builder().http_status_as_error(false);
    // ClickHouse does not ask for compressed answers either.
    let options = options.accept_encoding(ureq::config::AutoHeaderValue::None);
    options.timeout_global(Some(ANSWER_TIMEOUT)).build().into()
}

/// Sends a body and reads the whole answer: its status and its body.
pub fn post(agent: &ureq::Agent, url: &str, body: &[u8]) -> std::result::Result<(u16, Vec<u8>), ureq::Error> {
    let (parts, mut body) = agent.post(url).send(body)?.into_parts();
    Ok((parts.status.as_u16(), body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?))
}

impl Served {
    /// Serves the dictionaries in a folder, on `port`, which stays the same across restarts.
    pub fn start(folder: &Path, port: u16) -> Result<Self> {
        let program = PathBuf::from("/proc/self/exe");
        let mut command = Command::new(&program);
        command.args(["server", "--http", &format!("127.0.0.1:{port}"), "--path"]).arg(folder);
        command.args(["--log", "info"]);
        let pipes = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = pipes.spawn().map_err(at(&program))?;
        let mut lines = BufReader::new(process.stderr.take().expect("piped")).lines();
        let listening = lines
            .by_ref()
            .map_while(std::io::Result::ok)
            .find_map(|line| line.split_once("Granary listens on ").map(|(_, url)| url.trim().to_owned()));
        // A server whose output is not read would block in the end.
        std::thread::spawn(move || lines.map_while(std::io::Result::ok).for_each(drop));
        let url = listening.unwrap_or_default();
        let this = Self { process, url, agent: agent() };
        match this.url.is_empty() {
            true => Err(Failure::Argument("granary server did not start".to_owned())),
            false => Ok(this),
        }
    }

    /// The answer to SQL.
    pub fn ask(&self, sql: &str) -> Result<String> {
        let answer = self.post("/", sql.as_bytes())?;
        Ok(String::from_utf8_lossy(&answer).trim().to_owned())
    }

    /// The answer to a body at a path.
    pub fn post(&self, path: &str, body: &[u8]) -> Result<Vec<u8>> {
        match post(&self.agent, &format!("{}{path}", self.url), body) {
            Ok((200, answer)) => Ok(answer),
            Ok((status, text)) => {
                Err(Failure::Answer(format!("{status}: {}", String::from_utf8_lossy(&text).trim())))
            }
            Err(error) => Err(Failure::Answer(error.to_string())),
        }
    }

    /// Bytes of its resident RAM.
    pub fn resident_bytes(&self) -> u64 {
        resident_bytes(self.process.id()).unwrap_or(0)
    }

    /// Stops it by SIGTERM.
    pub fn stop(mut self) -> Result<()> {
        signal("TERM", self.process.id());
        let ended = self.process.wait().map_err(at(Path::new("granary server")))?;
        match ended.success() {
            true => Ok(()),
            false => Err(Failure::Answer(format!("granary server: {ended}"))),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // After `stop` there is nothing left to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
