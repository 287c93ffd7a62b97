//! SIGINT and SIGTERM: dictionaries are closed and the temporary folder is removed before the program ends.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use granary_sql::Session;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::Notify;

/// How long a statement that runs may take to let go of its dictionaries.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the program was told to stop.
pub struct Stop {
    asked: Arc<Notify>,
}

impl Stop {
    /// Watches for signals for as long as the program runs. The first one closes the session; another one does
    /// not wait for that.
    pub fn watch(session: &Arc<Session>) -> io::Result<Stop> {
        let asked = Arc::new(Notify::new());
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
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
    // Without a session the program is at its end anyway.
    if let Some(session) = session.upgrade() {
        session.close(PATIENCE);
        std::process::exit(status(signal));
    }
}

/// As the shell counts: 130 for SIGINT, 143 for SIGTERM.
fn status(signal: i32) -> i32 {
    128 + signal
}

/// Leaves the end of the program to the thread that closes the session.
pub fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}
