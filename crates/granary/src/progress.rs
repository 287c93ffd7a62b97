//! Progress shown during long operations, on a terminal only.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

/// Queries shorter than this show nothing.
const QUIET: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(50);

/// A line that is redrawn until the first row is written.
pub struct Progress {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts to watch a query, if standard error is a terminal.
    pub fn start(query: granary_sql::Progress) -> Progress {
        Progress::watch(query, None)
    }

    /// Starts to watch a query that reads `rows` rows: shows a bar that fills.
    pub fn start_with_total(query: granary_sql::Progress, rows: u64) -> Progress {
        Progress::watch(query, Some(rows))
    }

    fn watch(query: granary_sql::Progress, total: Option<u64>) -> Progress {
        let done = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&done);
        let thread = std::io::stderr()
            .is_terminal()
            .then(|| std::thread::spawn(move || watch(&query, total, &watched)));
        Progress { done, thread }
    }

    /// Removes the line, so that it does not mix with further output.
    pub fn stop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop();
    }
}

fn watch(query: &granary_sql::Progress, total: Option<u64>, done: &AtomicBool) {
    let started = Instant::now();
    let bar = match total {
        Some(rows) => bar(rows),
        None => ProgressBar::new_spinner().with_style(ProgressStyle::default_spinner()),
    };
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(TICK);
        let elapsed = started.elapsed();
        if elapsed >= QUIET && !done.load(Ordering::Relaxed) {
            let rows = query.rows_read() as u64;
            let rate = (rows as f64 / elapsed.as_secs_f64()) as u64;
            bar.set_message(format!("{} rows, {} rows/s", HumanCount(rows), HumanCount(rate)));
            match total {
                Some(_) => bar.set_position(rows),
                None => bar.tick(),
            }
        }
    }
    bar.finish_and_clear();
}

/// A bar for `rows` rows; hidden unless standard error is a terminal.
pub fn bar(rows: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix}{bar:40} {percent:>3}% {msg}");
    // The template is constant: were it wrong, the default style would do.
    ProgressBar::new(rows).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
