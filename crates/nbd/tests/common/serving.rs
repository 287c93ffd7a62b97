//! A server, and the programs that are its clients.

use granary_nbd::{Export, Options, Server, SingleExport, UnixSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// A server of one export, over TCP and in a folder of its own.
pub struct Serving {
    pub server: Server,
    pub folder: TempDir,
}

impl Serving {
    pub fn new(export: Arc<dyn Export>) -> Self {
        Self::with(export, |_, _| {})
    }

    /// With other options, for which there is the folder.
    pub fn with(export: Arc<dyn Export>, change: impl FnOnce(&mut Options, &Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(Arc::new(SingleExport(export)));
        options.addresses.push("127.0.0.1:0".parse().unwrap());
        options.sockets.push(UnixSocket::new(folder.path().join("nbd.sock")));
        change(&mut options, folder.path());
        Self { server: Server::start(options).unwrap(), folder }
    }

    pub fn port(&self) -> u16 {
        self.server.addresses()[0].port()
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("nbd.sock")
    }

    pub fn tcp(&self) -> String {
        format!("nbd://127.0.0.1:{}", self.port())
    }

    pub fn unix(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket().display())
    }
}

/// Runs a program in the folder and gives what it prints.
pub fn run(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let (is_fine, output, errors) = attempt(folder, program, arguments);
    assert!(is_fine, "{program} {arguments:?}: {errors}{output}");
    output
}

/// Runs a program in the folder; gives whether it is content, what it prints, and its errors.
pub fn attempt(folder: &Path, program: &str, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", program]).args(arguments).current_dir(folder).stdin(Stdio::null());
    let output = command.output().expect("coreutils are installed");
    let code = output.status.code();
    assert_ne!(code, Some(127), "{program} is not installed: scripts/install-test-servers.sh");
    assert_ne!(code, Some(124), "{program} {arguments:?} hangs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// The example `serve_nbd`, which `cargo test` builds.
pub fn serve() -> String {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder.join("examples/serve_nbd").into_os_string().into_string().unwrap()
}
