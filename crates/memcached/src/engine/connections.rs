//! The list of connections, for `stats conns`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The state of a connection, by memcached's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Waits for clients to connect.
    Listening,
    /// Waits for a request.
    Reading,
    /// Waits for the rest of an item.
    ReadingItem,
    /// Waits for reads of the device.
    Waiting,
}

impl Doing {
    const ALL: [Self; 4] = [Self::Listening, Self::Reading, Self::ReadingItem, Self::Waiting];

    fn name(self) -> &'static str {
        match self {
            Self::Listening => "conn_listening",
            Self::Reading => "conn_read",
            Self::ReadingItem => "conn_nread",
            Self::Waiting => "conn_io_queue",
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct Peer {
    address: String,
    /// The listener by which the client connected; a listener has none.
    listener: Option<String>,
    active_at: AtomicU32,
    doing: AtomicU8,
}

impl Peer {
    /// A listener, which waits for clients at an address.
    pub fn listening(address: String, now: u32) -> Self {
        Self { address, listener: None, active_at: now.into(), doing: (Doing::Listening as u8).into() }
    }

    /// A client.
    pub fn client(address: String, listener: String, now: u32) -> Self {
        let doing = (Doing::Reading as u8).into();
        Self { address, listener: Some(listener), active_at: now.into(), doing }
    }

    /// Notes what the connection does, and when it last was active.
    pub fn note(&self, doing: Doing, active_at: u32) {
        self.doing.store(doing as u8, Ordering::Relaxed);
        self.active_at.store(active_at, Ordering::Relaxed);
    }
}

/// All connections of a server, by their file descriptors.
#[derive(Debug, Default)]
pub struct Connections(Mutex<BTreeMap<i32, Arc<Peer>>>);

impl Connections {
    fn all(&self) -> MutexGuard<'_, BTreeMap<i32, Arc<Peer>>> {
        self.0.lock().expect("no panic under the lock")
    }

    /// Adds a connection.
    pub fn add(&self, fd: i32, peer: Peer) -> Arc<Peer> {
        let peer = Arc::new(peer);
        self.all().insert(fd, Arc::clone(&peer));
        peer
    }

    /// Removes a connection that is about to be closed.
    pub fn remove(&self, fd: i32) {
        self.all().remove(&fd);
    }

    /// Calls `show(name, value)` for each line about each connection. `asking`: the connection that sent the request.
    pub fn show(&self, asking: Option<&Arc<Peer>>, now: u32, mut show: impl FnMut(&str, &str)) {
        for (fd, peer) in &*self.all() {
            show(&format!("{fd}:addr"), &peer.address);
            if let Some(listener) = &peer.listener {
                show(&format!("{fd}:listen_addr"), listener);
            }
            let doing = Doing::ALL[usize::from(peer.doing.load(Ordering::Relaxed))].name();
            let asks = asking.is_some_and(|asking| Arc::ptr_eq(asking, peer));
            show(&format!("{fd}:state"), if asks { "conn_parse_cmd" } else { doing });
            let active_at = if asks { now } else { peer.active_at.load(Ordering::Relaxed) };
            show(&format!("{fd}:secs_since_last_cmd"), &now.saturating_sub(active_at).to_string());
        }
    }
}
