//! How connections end: without a goodbye, waiting commands are given up before the client can notice the end, for it
//! may come back at once.

mod common;

use common::bytes::*;
use common::serving::Serving;
use common::spoken::Spoken;
use granary_nbd::limits::WRITE_PART_BYTES;
use granary_nbd::protocol::{Ending, Errno, Need};
use granary_nbd::{Command, Completions, Export, MemoryExport, Session, Tag};
use rustix::event::{EventfdFlags, eventfd};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A disk on which TRIM waits for room for ever.
#[derive(Default)]
struct FullDisk {
    is_given_up: AtomicBool,
}

impl Export for FullDisk {
    fn name(&self) -> String {
        "disk".into()
    }
    fn size(&self) -> u64 {
        1 << 20
    }
    fn session(self: Arc<Self>) -> io::Result<Box<dyn Session>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Box::new(FullSession { disk: self, waiting: Vec::new(), event }))
    }
}

struct FullSession {
    disk: Arc<FullDisk>,
    waiting: Vec<Tag>,
    event: OwnedFd,
}

impl Session for FullSession {
    fn begin(&mut self, tag: Tag, command: Command<'_>, completions: &mut Completions) {
        match command {
            Command::Trim { .. } => self.waiting.push(tag),
            _ => completions.finish(tag, Ok(())),
        }
    }
    fn poll(&mut self, completions: &mut Completions) {
        if self.disk.is_given_up.load(Ordering::Acquire) {
            self.waiting.drain(..).for_each(|tag| completions.fail(tag, Errno::Shutdown));
        }
    }
    fn client_has_gone(&mut self) {
        self.disk.is_given_up.store(true, Ordering::Release);
        rustix::io::write(&self.event, &1_u64.to_ne_bytes()).unwrap();
    }
    fn event(&self) -> Option<BorrowedFd<'_>> {
        Some(self.event.as_fd())
    }
}

/// A client with a waiting trim.
fn client(serving: &Serving) -> UnixStream {
    let mut stream = UnixStream::connect(serving.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let said = [handshake("disk", false), request(0, TRIM, 1, 0, 4096), request(0, FLUSH, 2, 0, 0)];
    stream.write_all(&said.concat()).unwrap();
    let mut heard = [0; GREETING.len() + (20 + 12) + 20 + 16];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(Heard(&heard[heard.len() - 16..]).simple(), (0, 2));
    stream
}

#[test]
fn what_waits_of_a_client_that_stalls_is_given_up_before_it_is_told() {
    let disk = Arc::new(FullDisk::default());
    let serving = Serving::with(Arc::clone(&disk) as Arc<dyn Export>, |options, _| {
        options.stall_timeout = Duration::from_millis(100);
    });
    let mut stream = client(&serving);
    stream.write_all(&write(0, 3, 0, &[1; 512])[..100]).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(disk.is_given_up.load(Ordering::Acquire), "the client may be back already");
}

/// Nothing more is read from it, so its disconnection would not be noticed either.
#[test]
fn what_waits_of_a_client_that_does_not_speak_the_protocol_is_given_up() {
    let disk = Arc::new(FullDisk::default());
    let mut spoken = Spoken::transmitting(Arc::clone(&disk) as Arc<dyn Export>, false);
    spoken.ask(&request(0, TRIM, 1, 0, 4096));
    let (mut heard, ending) = spoken.last(&[7; 28]);
    assert!(matches!(ending, Ending::Violation(_)), "{ending:?}");
    assert!(disk.is_given_up.load(Ordering::Acquire));
    assert!(matches!(spoken.0.advance(), Need::Nothing(Ending::Violation(_))));
    heard.extend(spoken.hear());
    assert_eq!((Heard(&heard).simple(), spoken.0.in_flight()), ((ESHUTDOWN, 1), 0));
}

#[test]
fn what_waits_of_a_client_that_says_goodbye_is_not_given_up() {
    let disk = Arc::new(FullDisk::default());
    let mut spoken = Spoken::transmitting(Arc::clone(&disk) as Arc<dyn Export>, false);
    let said = [request(0, TRIM, 1, 0, 4096), request(0, DISC, 2, 0, 0)].concat();
    assert_eq!(spoken.last(&said), (Vec::new(), Ending::Goodbye));
    assert_eq!((spoken.0.advance(), spoken.0.in_flight()), (Need::Nothing(Ending::Goodbye), 1));
    assert!(!disk.is_given_up.load(Ordering::Acquire));
}

/// A goodbye counts only where a request is expected, not in the data of a WRITE.
#[test]
fn a_goodbye_is_found_in_what_is_not_taken_yet() {
    let goodbye = request(0, DISC, 9, 0, 0);
    let long = 3 * WRITE_PART_BYTES as usize;
    for (taken, behind, is_found) in [
        (vec![], goodbye.clone(), true),
        (goodbye[..20].to_owned(), goodbye[20..].to_owned(), true),
        (vec![], goodbye[..27].to_owned(), false),
        (vec![], [write(0, 1, 0, &[1; 100]), request(0, FLUSH, 2, 0, 0), goodbye.clone()].concat(), true),
        (vec![], write(0, 1, 0, &goodbye), false),
        (request(0, WRITE, 1, 0, 28), goodbye.clone(), false),
        (request(0, WRITE, 1, 0, 28), goodbye.repeat(2), true),
        // Data that is skipped, and data that is taken in parts.
        (request(0, WRITE, 1, 0, u32::MAX), goodbye.clone(), false),
        (write(0, 1, 0, &vec![1; long])[..long].to_owned(), [vec![1; 28], goodbye.clone()].concat(), true),
        (write(0, 1, 0, &vec![1; long])[..long].to_owned(), goodbye.clone(), false),
        (vec![], [vec![7; 28], goodbye.clone()].concat(), false),
    ] {
        let mut spoken = Spoken::transmitting(Arc::new(MemoryExport::new("disk", 1 << 20)), false);
        spoken.ask(&taken);
        assert_eq!(spoken.0.has_disconnect(&behind), is_found, "{} bytes, {}", taken.len(), behind.len());
    }
}
