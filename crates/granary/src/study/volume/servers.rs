//! The compared NBD servers, each in its own process on a Unix socket.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use granary_lab::FioTarget;
use granary_volume::{Config, Volume};

use crate::failure::{Failure, Result, at};
use crate::study::process::signal;

const INSTALL: &str = "scripts/install-test-servers.sh installs it";
/// The number of connections that qemu-nbd accepts.
const QEMU_CONNECTIONS: &str = "16";
const VOLUME: &str = "bench";

/// The program that serves, and what it serves from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// A volume this many times as large as its used part.
    Granary(u64),
    NbdkitNull,
    NbdkitMemory,
    NbdkitFile,
    /// Through the page cache.
    Qemu,
    /// Bypassing the page cache.
    QemuDirect,
}

impl ServerKind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            ServerKind::Granary(_) => "granary volume",
            ServerKind::NbdkitNull => "nbdkit null",
            ServerKind::NbdkitMemory => "nbdkit memory",
            ServerKind::NbdkitFile => "nbdkit file",
            ServerKind::Qemu => "qemu-nbd",
            ServerKind::QemuDirect => "qemu-nbd, direct I/O",
        }
    }
}

/// A running server, ended on drop.
pub struct NbdServer {
    child: Child,
    uri: String,
}

impl NbdServer {
    /// Serves `bytes` bytes, in files of `folder` if the kind uses files.
    pub fn start(kind: ServerKind, folder: &Path, bytes: u64) -> Result<Self> {
        let name = kind.name().replace([' ', ',', '/'], "-");
        let (socket, file) = (folder.join(format!("{name}.sock")), folder.join(format!("{name}.raw")));
        let mut export = "";
        let mut command = match kind {
            ServerKind::Granary(times) => {
                export = VOLUME;
                let home = folder.join(&name);
                Volume::create(&home.join("volumes"), VOLUME, &Config::new(bytes * times))?;
                // This program, even if its file was replaced meanwhile.
                let mut command = Command::new("/proc/self/exe");
                command.arg("server").arg("--path").arg(&home).args(["--http", "127.0.0.1:0"]);
                command.arg("--nbd-socket").arg(&socket);
                command
            }
            ServerKind::NbdkitNull | ServerKind::NbdkitMemory | ServerKind::NbdkitFile => {
                let mut command = Command::new("nbdkit");
                command.args(["-f", "-U"]).arg(&socket);
                match kind {
                    ServerKind::NbdkitNull => command.args(["null", &bytes.to_string()]),
                    ServerKind::NbdkitMemory => command.args(["memory", &bytes.to_string()]),
                    _ => {
                        reserve(&file, bytes)?;
                        command.arg("file").arg(&file).arg("cache=none")
                    }
                };
                command
            }
            ServerKind::Qemu | ServerKind::QemuDirect => {
                reserve(&file, bytes)?;
                let mut command = Command::new("qemu-nbd");
                command.args(["-f", "raw", "-t", "-e", QEMU_CONNECTIONS, "-x", "", "-k"]).arg(&socket);
                if kind == ServerKind::QemuDirect {
                    command.args(["--cache=none", "--aio=io_uring"]);
                }
                command.arg(&file);
                command
            }
        };
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let program = command.get_program().to_string_lossy().into_owned();
        let child = child.map_err(|error| Failure::File(format!("{program} ({INSTALL})"), error))?;
        let mut server = Self { child, uri: format!("nbd+unix:///{export}?socket={}", socket.display()) };
        server.wait(&socket, &program)?;
        Ok(server)
    }

    fn wait(&mut self, socket: &PathBuf, program: &str) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while let Err(error) = UnixStream::connect(socket) {
            if Instant::now() > deadline || self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err(Failure::File(format!("{program} does not serve"), error));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The export, for fio.
    pub fn target(&self) -> FioTarget {
        FioTarget::Nbd(self.uri.clone())
    }

    /// Id of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Seconds of CPU time that it has used.
    pub fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The name before it may contain anything.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
        ticks.sum::<f64>() / rustix::param::clock_ticks_per_second() as f64
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        signal("TERM", self.child.id());
        // However it ended, its data are removed with the folder.
        let _ = self.child.wait();
    }
}

fn reserve(file: &Path, bytes: u64) -> Result<()> {
    let reserved = std::fs::File::create(file).and_then(|file| file.set_len(bytes));
    reserved.map_err(at(file))
}
