//! Granary's memcached server beside a real one.

#![allow(dead_code, reason = "each test uses its part")]

pub mod process;

use granary_memcached::{Options, Server, StoreOptions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Options of small sizes, with flash. With this seed no two of the tests' keys have equal hash bits in the index: with
/// a random one, one item in some ten thousand is lost.
pub fn options(folder: &Path) -> Options {
    let mut store = StoreOptions::new(folder.join("memcached"), 64 << 20, 256 << 20);
    store.hash_seed = Some(1);
    Options::new("127.0.0.1:0".parse().unwrap(), store)
}

/// Suffix of the name of a policy: each change is synced.
pub const SYNCED: &str = " synced";

/// Suffix of the name of a policy: flash has eight segments, which are reused again and again.
pub const LITTLE_FLASH: &str = " on little flash";

/// Options of a policy, with so little RAM that items leave it all the time.
pub fn with_policy(folder: &Path, admission: &str) -> Options {
    let mut options = options(folder);
    options.store.memory_bytes = 4 << 20;
    let admission = match admission.strip_suffix(LITTLE_FLASH) {
        Some(admission) => {
            options.store.flash_bytes = 32 << 20;
            admission
        }
        None => admission,
    };
    let (admission, synced) = match admission.strip_suffix(SYNCED) {
        Some(admission) => (admission, true),
        None => (admission, false),
    };
    options.store.admission = admission.parse().unwrap();
    options.store.sync_changes = synced;
    options
}

pub fn start(folder: &Path) -> Server {
    Server::start(&options(folder)).unwrap()
}

/// A server that is not Granary's, on a free port; it is killed when this is dropped.
pub struct OtherServer {
    child: Child,
    pub address: SocketAddr,
}

impl OtherServer {
    /// Starts the command that `command` returns for an address.
    pub fn start(name: &str, command: impl Fn(SocketAddr) -> Command) -> OtherServer {
        // Between the choice of a port and its use another process may take it, or a connection to itself.
        std::iter::repeat_with(|| Self::try_start(&command))
            .take(10)
            .flatten()
            .next()
            .unwrap_or_else(|| panic!("{name} answers"))
    }

    fn try_start(command: impl Fn(SocketAddr) -> Command) -> Option<OtherServer> {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = command(address);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("it is installed: scripts/install-test-servers.sh");
        let mut server = OtherServer { child, address };
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            if server.is_itself() {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Whether this process answers at the address: a process that did not get its port ends.
    fn is_itself(&mut self) -> bool {
        let stream = TcpStream::connect(self.address);
        let connected = stream.is_ok_and(|stream| stream.local_addr().is_ok_and(|own| own != self.address));
        if connected {
            std::thread::sleep(Duration::from_millis(50));
        }
        connected && self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for OtherServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a real memcached.
pub fn memcached(arguments: &[&str]) -> OtherServer {
    OtherServer::start("memcached", |address| {
        let mut command = Command::new("memcached");
        command
            .args(["-l", "127.0.0.1", "-U", "0", "-u", "root", "-p", &address.port().to_string()])
            .args(arguments);
        command
    })
}

const END: &[u8] = b"EN Othe-end\r\n";

/// A client that sends given requests and returns the replies.
pub struct Client {
    address: SocketAddr,
    stream: TcpStream,
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client { address, stream }
    }

    /// Sends a request and one more after it, and returns everything before the reply to that one. A closed connection
    /// is followed by a new one.
    pub fn say(&mut self, request: &[u8]) -> Vec<u8> {
        self.ask(request);
        self.hear(request)
    }

    /// The first half of [`say`](Self::say).
    pub fn ask(&mut self, request: &[u8]) {
        let mut sent = request.to_vec();
        sent.extend_from_slice(b"mg no-such-key Othe-end\r\n");
        // The peer may have closed its end already.
        let _ = self.stream.write_all(&sent);
    }

    /// The second half of [`say`](Self::say).
    pub fn hear(&mut self, request: &[u8]) -> Vec<u8> {
        let mut heard = Vec::new();
        let mut buffer = [0; 65536];
        while !heard.ends_with(END) {
            match self.stream.read(&mut buffer) {
                Ok(len) if len > 0 => heard.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    panic!("no end of the answer to {}: {}", request.escape_ascii(), heard.escape_ascii())
                }
                _ => {
                    *self = Client::new(self.address);
                    heard.extend_from_slice(b"<closed>");
                    return heard;
                }
            }
        }
        heard.truncate(heard.len() - END.len());
        heard
    }

    /// Like [`say`](Self::say), with text whose lines end in `\n`.
    pub fn lines(&mut self, request: &str) -> String {
        let request = request.replace('\n', "\r\n") + "\r\n";
        String::from_utf8(self.say(request.as_bytes())).unwrap().replace("\r\n", "\n")
    }
}
