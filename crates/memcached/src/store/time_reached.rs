//! The last second in which items were seen: a file with the Unix time, ten digits and a line end, written over in place
//! once in a second of use. A clock that was set back between two processes must not bring expired items back.

use crate::limits::CLOCK_SET_BACK_SECONDS_MAX;
use granary_cache::open_or_create;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The clock at a start, compared with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// It goes on.
    Onward,
    /// It was set back by a few seconds: time has to go on from this one.
    StartFrom(u32),
    /// It was set back by that many seconds: items that have expired would be there again.
    SetBack(u32),
}

/// The file. Shared by all threads.
#[derive(Debug)]
pub(super) struct TimeReached {
    file: File,
    /// The time in the file.
    seconds: AtomicU32,
    /// Held by the thread that writes it.
    writing: Mutex<()>,
    /// Whether a write has failed and the log says so.
    is_told: AtomicBool,
}

impl TimeReached {
    /// Reads the file, or makes it. `now`: seconds of Unix time by the system's clock.
    pub fn open(path: &Path, now: u32) -> io::Result<(Self, Clock)> {
        let mut file = File::from(open_or_create(path, OFlags::RDWR, Mode::RUSR | Mode::WUSR)?);
        let mut text = String::new();
        let read = (&mut file).take(16).read_to_string(&mut text);
        let reached: u32 = match read {
            Ok(_) => text.trim_end().parse().unwrap_or(0),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => 0,
            Err(error) => return Err(error),
        };
        let clock = match reached.saturating_sub(now) {
            0 => Clock::Onward,
            1..=CLOCK_SET_BACK_SECONDS_MAX => Clock::StartFrom(reached),
            seconds => Clock::SetBack(seconds),
        };
        let seconds = AtomicU32::new(if let Clock::SetBack(_) = clock { 0 } else { reached });
        let this = Self { file, seconds, writing: Mutex::new(()), is_told: AtomicBool::new(false) };
        Ok((this, clock))
    }

    /// The latest second that was noted by any thread.
    pub fn seconds(&self) -> u32 {
        self.seconds.load(Ordering::Acquire)
    }

    /// Notes that it is `now`, before anything that this second ends is answered as gone.
    pub fn note(&self, now: u32) {
        if now <= self.seconds.load(Ordering::Relaxed) {
            return;
        }
        let _held = self.writing.lock().expect("no panic under the lock");
        if now <= self.seconds.load(Ordering::Relaxed) {
            return;
        }
        let written = self.file.write_all_at(format!("{now:010}\n").as_bytes(), 0);
        // Last: other threads go on without the lock from here on.
        self.seconds.store(now, Ordering::Release);
        if let Err(error) = written
            && !self.is_told.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(%error, "the time cannot be noted: if the clock is set back, expired items may come back");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("time");
        let open = |now| TimeReached::open(&path, now).unwrap();
        let (time, clock) = open(1_000_000);
        assert_eq!(clock, Clock::Onward, "there was no file");
        time.note(1_000_000);
        time.note(1_000_100);
        time.note(1_000_050);
        assert_eq!(open(1_000_100).1, Clock::Onward);
        assert_eq!(open(1_000_099).1, Clock::StartFrom(1_000_100));
        assert_eq!(open(1_000_100 - CLOCK_SET_BACK_SECONDS_MAX).1, Clock::StartFrom(1_000_100));
        let (time, clock) = open(900_000);
        assert_eq!(clock, Clock::SetBack(100_100));
        time.note(900_000);
        assert_eq!(open(900_001).1, Clock::Onward, "that start has emptied the cache");
        for damaged in ["", "\u{fffd}", "x", "99999999999999999"] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(open(1).1, Clock::Onward, "{damaged}");
        }
    }
}
