//! Requests that wait for write buffers while the device takes no write, and those that do not.

use super::*;
use crate::store::StoreOptions;
use granary_cache::admission::Admission;
use granary_cache::{Device, MemoryDevice};
use std::io;
use std::path::Path;
use std::sync::{Condvar, Mutex};

/// A device whose writes wait while it is closed.
struct GatedDevice {
    bytes: MemoryDevice,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn close(&self) {
        *self.is_closed.lock().unwrap() = true;
    }

    fn open(&self) {
        *self.is_closed.lock().unwrap() = false;
        self.opened.notify_all();
    }
}

impl Device for GatedDevice {
    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.bytes.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, buffers: &[&[u8]]) -> io::Result<()> {
        let is_closed = self.gate.is_closed.lock().unwrap();
        drop(self.gate.opened.wait_while(is_closed, |is_closed| *is_closed).unwrap());
        self.bytes.write_at(offset, buffers)
    }

    fn sync(&self) -> io::Result<()> {
        self.bytes.sync()
    }
}

/// A server over a gated device, write-through.
struct Stalling {
    engine: Engine,
    gate: Arc<Gate>,
}

impl Stalling {
    fn new(folder: &Path) -> Self {
        let mut options = StoreOptions::new(folder.join("m"), 1 << 20, 64 << 20);
        (options.admission, options.memory_folder, options.hash_seed) = (Admission::All, None, Some(1));
        std::fs::create_dir(&options.path).unwrap();
        let gate = Arc::new(Gate::default());
        let device = GatedDevice { bytes: MemoryDevice::new(64 << 20), gate: Arc::clone(&gate) };
        let store = Store::open_on(Box::new(device), &options).unwrap();
        let settings = Settings { threads: 1, ..Settings::default() };
        Self { engine: Engine::new(Arc::new(ServerState::new(store, None, settings)), 0), gate }
    }

    /// Like [`new`](Self::new), with waits for write buffers that do not end before the test opens the gate.
    fn patient(folder: &Path) -> Self {
        let mut stalling = Self::new(folder);
        stalling.engine.write_stall_max = Duration::from_secs(60);
        stalling
    }

    fn session(&self, number: usize) -> Session {
        self.engine.shared().session(number)
    }

    fn turn(&mut self, session: &mut Session) {
        self.engine.turn(std::slice::from_mut(session), 1_000);
        self.engine.take_completions(1_000);
    }

    /// The server's answer, once it waits for nothing.
    fn ask(&mut self, session: &mut Session, request: &str) -> String {
        session.receive(request.as_bytes());
        self.turn(session);
        while session.is_pending() || session.may_step() || session.is_stalled() {
            self.turn(session);
        }
        replies(session)
    }

    /// Stores items until one waits, which is that of the session.
    fn fill(&mut self, session: &mut Session) {
        let value = "f".repeat(50_000);
        for i in 0.. {
            session.receive(format!("set filler-{i} 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
            self.turn(session);
            if session.is_stalled() {
                return;
            }
            assert_eq!(replies(session), "STORED\r\n");
        }
    }
}

fn replies(session: &mut Session) -> String {
    let replies = String::from_utf8(session.replies().to_vec()).unwrap();
    session.sent(replies.len());
    replies
}

/// Requests that store something, and what their replies begin with.
const STORING: [(&str, &str); 9] = [
    ("gat 100 k\r\n", "VALUE k 0 1\r\n5\r\nEND\r\n"),
    ("gats 100 none k\r\n", "VALUE k 0 1 "),
    ("mg k v T100\r\n", "VA 1\r\n5\r\n"),
    ("mg new N100\r\n", "HD W"),
    (" set k 0 0 1\r\n5\r\n", "STORED\r\n"),
    ("touch k 100\r\n", "TOUCHED\r\n"),
    ("incr k 1\r\n", "6\r\n"),
    ("set k 0 0 1\r\n6\r\n", "STORED\r\n"),
    ("delete k\r\n", "DELETED\r\n"),
];

#[test]
fn what_stores_waits_for_write_buffers_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Stalling::patient(folder.path());
    let (mut filling, mut other) = (server.session(0), server.session(1));
    assert_eq!(server.ask(&mut other, "set k 0 0 1\r\n5\r\n"), "STORED\r\n");
    for (request, reply) in STORING {
        server.gate.close();
        server.fill(&mut filling);
        let mut asking = server.session(2);
        asking.receive(request.as_bytes());
        server.turn(&mut asking);
        assert!(asking.is_stalled() && asking.replies().is_empty(), "{request}");
        let parses = asking.input.parses.get();
        let rest = "get k\r\nmg k v\r\nmn\r\nmg k v\r\nmn\r\nversion\r\nverbosity 1\r\nme none\r\n";
        let others = server.ask(&mut other, rest);
        assert!(others.contains("MN\r\nVERSION ") && others.ends_with("OK\r\nEN\r\n"), "{others}");
        server.gate.open();
        let told = server.ask(&mut asking, "");
        assert!(told.starts_with(reply), "{request}: {told}");
        assert_eq!(asking.input.parses.get(), parses, "{request} is parsed once");
        assert_eq!(server.ask(&mut filling, ""), "STORED\r\n");
    }
}

#[test]
fn the_last_write_buffer_is_waited_for_as_long_as_is_said_whoever_takes_its_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Stalling::new(folder.path());
    let (mut filling, mut asking) = (server.session(0), server.session(1));
    assert_eq!(server.ask(&mut asking, "set k 0 0 1\r\n5\r\n"), "STORED\r\n");
    server.gate.close();
    server.fill(&mut filling);
    let begun = Instant::now();
    let told = server.ask(&mut asking, "touch k 100\r\n");
    assert!(told.starts_with("SERVER_ERROR") || told == "TOUCHED\r\n", "{told}");
    assert!(begun.elapsed() >= Duration::from_millis(WRITE_STALL_MILLISECONDS), "it waited");
    server.gate.open();
}
