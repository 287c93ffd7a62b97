//! The compared servers, each in its own process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use granary_lab::MemoryLimit;

use crate::failure::{Failure, Result};

/// The resources of a server.
#[derive(Clone, Copy)]
pub struct Resources {
    /// RAM for items.
    pub memory_bytes: u64,
    /// Space on the device; 0: none.
    pub flash_bytes: u64,
    pub threads: usize,
}

/// A running server, ended on drop.
pub struct MemcachedServer {
    child: Child,
    pub address: SocketAddr,
    /// Dropped after its process has ended.
    limit: Option<MemoryLimit>,
}

const MIB: u64 = 1 << 20;

/// Granary's memcached server, as `granary server` runs it.
pub fn granary(folder: &Path, given: Resources, admission: &str) -> Result<MemcachedServer> {
    let address = free_address()?;
    // This program, even if its file was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.arg("server").arg("--path").arg(folder).args(["--http", "127.0.0.1:0"]);
    command.args(["--memcached", &address.to_string(), "--memcached-admission", admission]);
    command.args(["--memcached-memory", &given.memory_bytes.to_string()]);
    command.args(["--memcached-flash", &given.flash_bytes.to_string()]);
    command.args(["--memcached-threads", &given.threads.to_string()]);
    MemcachedServer::start(command, address)
}

/// A real memcached; with space on the device, its extstore in a file of `folder`. `limit`: RAM in total, including the
/// page cache.
pub fn memcached(folder: &Path, given: Resources, limit: Option<MemoryLimit>) -> Result<MemcachedServer> {
    let address = free_address()?;
    let mut command = match &limit {
        Some(limit) => limit.command("memcached"),
        None => Command::new("memcached"),
    };
    command.args(["-l", "127.0.0.1", "-U", "0", "-u", "root", "-p", &address.port().to_string()]);
    command.args(["-m", &(given.memory_bytes / MIB).to_string(), "-t", &given.threads.to_string()]);
    if given.flash_bytes > 0 {
        command.args(["-o", &extstore(folder, given.flash_bytes)]);
    }
    let mut server = MemcachedServer::start(command, address)?;
    server.limit = limit;
    Ok(server)
}

/// extstore's options: small pages for a small store, as many threads for reads as it can use, and room made in time
/// for what it keeps in RAM per item on the device.
pub fn extstore(folder: &Path, flash_bytes: u64) -> String {
    let file = folder.join("extstore");
    format!(
        "ext_page_size=16,ext_wbuf_size=4,ext_threads=8,ext_item_size=256,slab_automove_window=3,slab_automove_freeratio=0.2,\
         ext_path={}:{}m",
        file.display(),
        flash_bytes / MIB
    )
}

fn free_address() -> Result<SocketAddr> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.map_err(|error| Failure::File("a free port".to_owned(), error))
}

impl MemcachedServer {
    fn start(mut command: Command, address: SocketAddr) -> Result<MemcachedServer> {
        let program = PathBuf::from(command.get_program());
        let failed = |error| Failure::File(program.display().to_string(), error);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut server = MemcachedServer { child: child.map_err(failed)?, address, limit: None };
        let deadline = Instant::now() + Duration::from_secs(30);
        while let Err(error) = TcpStream::connect(address) {
            if Instant::now() > deadline || server.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err(Failure::File(format!("{} does not serve", program.display()), error));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// The numbers of `stats` and one of its groups.
    pub fn statistics(&self, group: &str) -> Result<HashMap<String, u64>> {
        self.ask_statistics(group).map_err(|error| Failure::File("statistics".to_owned(), error))
    }

    fn ask_statistics(&self, group: &str) -> std::io::Result<HashMap<String, u64>> {
        let mut stream = TcpStream::connect(self.address)?;
        write!(stream, "stats {group}\r\nquit\r\n")?;
        let mut statistics = HashMap::new();
        for line in BufReader::new(stream).lines() {
            if let Some((name, value)) = line?.strip_prefix("STAT ").and_then(|line| line.split_once(' '))
                && let Ok(value) = value.parse()
            {
                statistics.insert(name.to_owned(), value);
            }
        }
        Ok(statistics)
    }
}

impl Drop for MemcachedServer {
    fn drop(&mut self) {
        // Its data are removed with the folder, so it can be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.limit = None;
    }
}

/// memcached's version.
pub fn version() -> Result<String> {
    let said = Command::new("memcached").arg("-V").output();
    let said =
        said.map_err(|error| Failure::File("memcached (scripts/install-test-servers.sh)".to_owned(), error))?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().trim_start_matches("memcached ").to_owned())
}
