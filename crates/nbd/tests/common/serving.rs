//! A server, and the programs that are its clients.

use granary_nbd::{Export, Options, Server, SingleExport, UnixSocket};
use std::path::{Path, PathBuf};
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

    /// A server whose options `change` adapts, given the folder.
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

/// The example `serve_nbd`, which `cargo test` builds.
pub fn serve() -> String {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder.join("examples/serve_nbd").into_os_string().into_string().unwrap()
}
