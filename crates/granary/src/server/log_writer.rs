//! Log lines on their way to standard error. A thread of its own writes them, so that a reader that stalls holds up
//! nobody: lines that find no room are dropped and counted. It writes past the lock of the standard library's stderr,
//! for which a thread that panics waits.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use super::logging::LogFormat;

/// Lines that wait at most.
const LINES_MAX: usize = 8192;

/// How long a stop waits for lines to be written.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    /// Lines that found no room behind the last one in the queue.
    dropped: u64,
    /// A line is being written.
    is_writing: bool,
}

impl Queue {
    /// A line that says how many were dropped, where some were.
    fn gap(&mut self, format: LogFormat) -> Option<Vec<u8>> {
        let dropped = std::mem::take(&mut self.dropped);
        (dropped > 0).then(|| gap_line(dropped, format).into_bytes())
    }
}

fn gap_line(dropped: u64, format: LogFormat) -> String {
    let message = format!("{dropped} log lines were left out: nobody read them");
    let mut time = String::new();
    // A text takes whatever is written to it.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    match format {
        LogFormat::Text => format!("{time}  WARN {message}\n"),
        LogFormat::Json => {
            format!("{{\"timestamp\":\"{time}\",\"level\":\"WARN\",\"message\":\"{message}\"}}\n")
        }
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    format: LogFormat,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut queue = self.lock();
        if queue.lines.len() < LINES_MAX {
            let gap = queue.gap(self.format);
            queue.lines.extend(gap.into_iter().chain([line.to_vec()]));
        } else {
            queue.dropped += 1;
        }
        self.changed.notify_all();
    }

    /// Writes lines for as long as the process lives. A line that cannot be written is lost: there is nobody to tell.
    fn write_all(&self, mut out: impl Write) {
        let mut queue = self.lock();
        loop {
            let line = queue.lines.pop_front().or_else(|| queue.gap(self.format));
            let Some(line) = line else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.is_writing = true;
            drop(queue);
            let _ = out.write_all(&line);
            queue = self.lock();
            queue.is_writing = false;
            self.changed.notify_all();
        }
    }
}

/// Makes writers of log lines.
#[derive(Clone)]
pub struct LogWriter(Arc<Shared>);

/// Dropped, it waits a moment until the lines so far are written.
pub struct LogGuard(Arc<Shared>);

/// Starts the thread.
///
/// # Errors
/// There is no standard error, or no thread.
pub fn start(format: LogFormat) -> io::Result<(LogWriter, LogGuard)> {
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let shared = Arc::new(Shared { format, ..Shared::default() });
    let given = Arc::clone(&shared);
    std::thread::Builder::new().name("log".to_owned()).spawn(move || given.write_all(stderr))?;
    Ok((LogWriter(Arc::clone(&shared)), LogGuard(shared)))
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LogWriter;

    fn make_writer(&'a self) -> LogWriter {
        self.clone()
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let is_busy = |queue: &mut Queue| !queue.lines.is_empty() || queue.is_writing;
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), STOP_TIMEOUT, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Instant;

    /// Takes a line when it is told to, and gives it on.
    struct Gated(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Gated {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            self.1.send(line.to_vec()).map_err(io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_find_no_room_are_counted_and_nobody_waits() {
        let shared = Arc::new(Shared { format: LogFormat::Json, ..Shared::default() });
        let ((open, gate), (written, lines)) = (channel(), channel());
        let given = Arc::clone(&shared);
        std::thread::spawn(move || given.write_all(Gated(gate, written)));
        let mut writer = LogWriter(Arc::clone(&shared));
        writer.write_all(b"first\n").unwrap();
        // It is on its way, and stuck.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !shared.lock().is_writing {
            assert!(Instant::now() < deadline, "nothing is written");
            std::thread::yield_now();
        }
        for i in 0..LINES_MAX + 5 {
            writer.write_all(format!("{i}\n").as_bytes()).unwrap();
        }
        (0..LINES_MAX + 2).for_each(|_| open.send(()).unwrap());
        let lines: Vec<String> =
            lines.iter().take(LINES_MAX + 2).map(|line| String::from_utf8(line).unwrap()).collect();
        assert_eq!(lines[..2], ["first\n", "0\n"]);
        assert_eq!(lines[LINES_MAX], format!("{}\n", LINES_MAX - 1));
        let gap: serde_json::Value = serde_json::from_str(&lines[LINES_MAX + 1]).unwrap();
        assert_eq!(gap["message"], "5 log lines were left out: nobody read them");
        assert!(
            gap["timestamp"].as_str().is_some_and(|time| time.starts_with("20") && time.ends_with('Z')),
            "{gap}"
        );
        drop(LogGuard(shared));
    }
}
