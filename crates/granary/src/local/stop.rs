//! SIGINT, SIGTERM and SIGHUP: dictionaries are closed and the temporary folder is removed before the program ends.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use granary_sql::Session;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::Notify;

/// How long a running statement may take to release its dictionaries.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Whether the program was told to stop.
pub struct Stop {
    asked: Arc<Notify>,
}

impl Stop {
    /// Watches for signals for as long as the program runs. The first one closes the session; a second one ends the
    /// program without waiting for that.
    pub fn watch(session: &Arc<Session>) -> io::Result<Stop> {
        let asked = Arc::new(Notify::new());
        // `nohup` has SIGHUP ignored, which stays so.
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))?;
        let (session, told) = (Arc::downgrade(session), Arc::clone(&asked));
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut closing = None;
            for signal in signals.forever() {
                if closing.is_some() {
                    std::process::exit(status(signal));
                }
                told.notify_one();
                let session = Weak::clone(&session);
                closing = Some(thread::spawn(move || close(&session, signal)));
            }
        })?;
        Ok(Stop { asked })
    }

    /// Waits until the program is told to stop.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }
}

fn close(session: &Weak<Session>, signal: i32) {
    // Without a session the program is ending anyway.
    if let Some(session) = session.upgrade() {
        session.close(TIMEOUT);
        std::process::exit(status(signal));
    }
}

/// Whether the process ignores a signal, as the one that started it wanted.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// The shell's exit status for a signal: 129 for SIGHUP, 130 for SIGINT, 143 for SIGTERM.
fn status(signal: i32) -> i32 {
    128 + signal
}

/// Parks the thread: the one that closes the session ends the program.
pub fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}
