//! Carries out the requests of clients, without sockets.

mod changing;
mod connections;
mod dumping;
mod input;
mod memory;
mod parked;
mod pending;
mod pieces;
mod reading;
mod session;
mod since_reset;
#[cfg(test)]
mod stall_tests;
mod stats;
mod stepping;
#[cfg(test)]
mod tests;
mod usage;
mod writing;

pub use connections::{Connections, Peer};
pub use dumping::Dumps;
pub use memory::{AllocatorSizes, ProcessMemory};
pub use session::Session;
pub use since_reset::Since;
pub use stats::{Flush, Settings};

use crate::counters::Counters;
use crate::limits::{KEYS_PROBED, REPLY_BYTES_PER_TURN, STEPS_IN_A_ROW, WRITE_STALL_MILLISECONDS};
use crate::protocol::Access;
use crate::store::{MissReason, Store, ThreadContext};
use crate::users::Users;
use pending::PendingReads;
use session::WriteStall;
use since_reset::ResetBase;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The state that all threads share.
pub struct ServerState {
    /// The items.
    pub store: Store,
    /// Users that must log in; `None`: every client may do everything.
    pub users: Option<Users>,
    /// The counters of each thread.
    pub counters: Vec<Counters>,
    /// The number of connections now.
    pub connections: AtomicUsize,
    /// The list of these connections.
    pub peers: Connections,
    /// Connections turned away.
    pub rejected: AtomicU64,
    /// The number of pauses of accepting after an error, such as want of file descriptors.
    pub accept_failures: AtomicU64,
    /// Microseconds of these pauses.
    pub accept_pause_us: AtomicU64,
    /// Figures at the last `stats reset`.
    reset_base: Mutex<ResetBase>,
    /// Lists of all items that are under way.
    pub dumps: Dumps,
    /// The options that `stats settings` shows.
    pub settings: Settings,
    /// The start of the server.
    pub started: Instant,
}

impl ServerState {
    /// The shared state over a store, for `settings.threads` threads.
    pub fn new(store: Store, users: Option<Users>, settings: Settings) -> Self {
        let counters = (0..settings.threads).map(|_| Counters::default()).collect();
        Self {
            store,
            users,
            counters,
            connections: AtomicUsize::new(0),
            peers: Connections::default(),
            rejected: AtomicU64::new(0),
            accept_failures: AtomicU64::default(),
            accept_pause_us: AtomicU64::default(),
            reset_base: Mutex::default(),
            dumps: Dumps::default(),
            settings,
            started: Instant::now(),
        }
    }

    /// The session of a new client; `number` is unique on its thread.
    pub fn session(&self, number: usize) -> Session {
        let access = if self.users.is_some() { Access::LoginFirst } else { Access::Granted };
        Session::new(self.store.item_bytes_max(), access, number)
    }
}

/// Executes the requests of the clients of one thread.
pub struct Engine {
    shared: Arc<ServerState>,
    thread: usize,
    context: ThreadContext,
    /// Values on their way from the cache to replies.
    values: Vec<u8>,
    pending: PendingReads,
    /// The number of keys whose values are expected to find room in one lookup of the cache, at most [`KEYS_PROBED`].
    keys_fit: usize,
    hurries: bool,
    /// The longest wait of a change for write buffers.
    write_stall_max: Duration,
}

impl Engine {
    /// The engine of a thread, numbered from 0.
    pub fn new(shared: Arc<ServerState>, thread: usize) -> Self {
        let context = shared.store.context();
        let pending = PendingReads::default();
        let (values, keys_fit) = (Vec::new(), KEYS_PROBED);
        let write_stall_max = Duration::from_millis(WRITE_STALL_MILLISECONDS);
        Self { shared, thread, context, values, pending, keys_fit, hurries: false, write_stall_max }
    }

    /// The state that all threads share.
    pub fn shared(&self) -> &Arc<ServerState> {
        &self.shared
    }

    /// The counters of this thread.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters[self.thread]
    }

    /// A file descriptor that is readable after reads have come from the device, which [`poll`](Self::poll) takes: to
    /// be watched for changes.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.context.event()
    }

    /// Submits reads to the device, and takes those that have come. To be called after each turn.
    pub fn take_completions(&mut self, now: u32) {
        let Engine { shared, context, pending, .. } = self;
        shared.store.poll(context, now, |ticket, lookup| pending.complete(ticket, lookup));
        self.counters().reads_waiting.set(self.pending.waiting());
    }

    /// The number of a session that has reads that can be answered now.
    pub fn next_ready(&mut self) -> Option<usize> {
        self.pending.next_ready()
    }

    /// Drops what a session waits for, as the session ends.
    pub fn forget(&mut self, session: &Session) {
        session.pending.iter().for_each(|id| self.pending.cancel(*id));
    }

    /// Carries out the requests of these clients, as far as they have arrived and the clients take the replies. Reads
    /// and plain `set`s of all clients are batched; each client's requests keep their order. A request that is no read
    /// waits until the reads before it have come from the device, which is at a later turn. Reads of very many keys are
    /// continued at later turns, too, so that other clients do not wait for them.
    pub fn turn(&mut self, sessions: &mut [Session], now: u32) {
        self.shared.store.tick(now);
        sessions.iter_mut().for_each(Session::begin_turn);
        self.answer_ready(sessions, now);
        self.end_stalls(sessions);
        self.dump(sessions, now);
        let waiting = |sessions: &[Session]| -> usize { sessions.iter().map(|it| it.replies().len()).sum() };
        let replies_max = waiting(sessions) + REPLY_BYTES_PER_TURN;
        while sessions.iter().any(|session| session.keys_left() > 0) {
            let mut progress = self.read_many(sessions, now);
            progress |= self.set_many(sessions, now);
            for session in &mut *sessions {
                for _ in 0..STEPS_IN_A_ROW {
                    if !self.step(session, now) {
                        break;
                    }
                    progress = true;
                }
            }
            // Other sessions wait for their turn, and these clients for their replies.
            if !progress || waiting(sessions) >= replies_max {
                return;
            }
        }
    }

    /// From now on no change waits for write buffers.
    pub fn stop_stalling(&mut self) {
        self.hurries = true;
    }

    fn is_behind(&self) -> bool {
        !self.hurries && self.shared.store.is_behind()
    }

    /// Has the next request of a session wait if there is no write buffer for what it stores; whether it waits. It holds up
    /// its own client only, for [`WRITE_STALL_MILLISECONDS`] at most.
    fn stall_write(&self, write_stall: &mut WriteStall) -> bool {
        self.is_behind() && write_stall.begin(Instant::now(), self.write_stall_max)
    }

    /// Ends the waits of all requests if there are write buffers again, else those that have lasted long enough.
    fn end_stalls(&self, sessions: &mut [Session]) {
        if sessions.iter().any(Session::is_stalled) {
            let (is_behind, now) = (self.is_behind(), Instant::now());
            sessions.iter_mut().for_each(|session| session.end_stall(is_behind, now));
        }
    }

    fn count_miss(&self, why: MissReason) {
        let counters = self.counters();
        counters.get_misses.add(1);
        match why {
            MissReason::Unknown => {}
            MissReason::Expired => counters.get_expired.add(1),
            MissReason::Flushed => counters.get_flushed.add(1),
        }
    }
}
