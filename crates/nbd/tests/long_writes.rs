//! WRITEs that are longer than the buffer that they arrive in, and the memory that connections share.

mod common;

use common::bytes::*;
use common::late::LateExport;
use common::spoken::Spoken;
use granary_nbd::limits::{COMMANDS_IN_FLIGHT_MAX, PAYLOAD_BYTES_MAX, WRITE_PART_BYTES};
use granary_nbd::protocol::{Budget, Need};
use granary_nbd::{Command, Completions, Errno, Export, MemoryExport, Session, Tag};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const PART: usize = WRITE_PART_BYTES as usize;
const LONGEST: usize = PAYLOAD_BYTES_MAX as usize;

fn disk() -> Arc<dyn Export> {
    Arc::new(MemoryExport::new("disk", 64 << 20))
}

/// Sends `said` and returns the answers until nothing is in flight.
fn finish(spoken: &mut Spoken, said: &[u8]) -> Vec<u8> {
    let mut heard = spoken.ask(said);
    while spoken.0.in_flight() > 0 {
        heard.extend(spoken.ask(&[]));
    }
    heard
}

#[test]
fn each_is_answered_once_when_all_of_it_is_written() {
    let late: Arc<dyn Export> = Arc::new(LateExport::new(disk(), true));
    for structured in [false, true] {
        let mut spoken = Spoken::transmitting(Arc::clone(&late), structured);
        let lens = [PART, PART + 1, 5 * PART - 700, 2 << 20];
        let offset = |i: usize| (i * (3 << 20) + 700) as u64;
        let data = |i: usize| (0..lens[i]).map(|at| (at / 512 * 3 + i) as u8).collect::<Vec<_>>();
        // The last byte is withheld.
        for (i, len) in lens.into_iter().enumerate() {
            let said = write(FUA, i as u64, offset(i), &data(i));
            assert_eq!(finish(&mut spoken, &said[..said.len() - 1]), b"", "{len} bytes are not all there");
            assert!(spoken.0.is_partial());
            let heard = finish(&mut spoken, &said[said.len() - 1..]);
            let mut heard = Heard(&heard);
            assert_eq!(heard.outcome(), (0, i as u64));
            assert!(heard.0.is_empty() && !spoken.0.is_partial());
        }
        // All at once.
        let said: Vec<u8> = (0..lens.len()).flat_map(|i| write(0, i as u64, offset(i), &data(i))).collect();
        let heard = finish(&mut spoken, &said);
        let mut heard = Heard(&heard);
        let mut cookies: Vec<u64> = lens.iter().map(|_| heard.outcome().1).collect();
        cookies.sort();
        assert_eq!(cookies, [0, 1, 2, 3]);
        assert!(heard.0.is_empty());
        for (i, len) in lens.into_iter().enumerate() {
            let heard =
                finish(&mut spoken, &request(DF * u16::from(structured), READ, 9, offset(i), len as u32));
            let header = if structured { 28 } else { 16 };
            assert!(heard[header..] == data(i), "{len} bytes are read as they were written");
        }
    }
}

/// A disk that records the parts of WRITEs, and refuses one of them.
struct Parts {
    refused: u64,
    begun: Mutex<Vec<(u64, usize, bool)>>,
}

impl Export for Parts {
    fn name(&self) -> String {
        "parts".into()
    }
    fn size(&self) -> u64 {
        64 << 20
    }
    fn session(self: Arc<Self>) -> io::Result<Box<dyn Session>> {
        Ok(Box::new(PartsSession(self)))
    }
}

struct PartsSession(Arc<Parts>);

impl Session for PartsSession {
    fn begin(&mut self, tag: Tag, command: Command<'_>, completions: &mut Completions) {
        let Command::Write { offset, data, fua } = command else { panic!("{command:?}") };
        self.0.begun.lock().unwrap().push((offset, data.len(), fua));
        let refused = (offset == self.0.refused).then_some(Errno::NoSpace);
        completions.finish(tag, refused.map_or(Ok(()), Err));
    }
    fn poll(&mut self, _: &mut Completions) {}
    fn event(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[test]
fn what_fails_is_answered_once_and_the_rest_is_passed_by() {
    let parts = Arc::new(Parts { refused: 2 * PART as u64, begun: Mutex::default() });
    let mut spoken = Spoken::transmitting(Arc::clone(&parts) as Arc<dyn Export>, true);
    let said = write(FUA, 7, 512, &vec![1; 10 * PART]);
    assert_eq!(spoken.ask(&said[..said.len() - 1]), b"");
    // The last byte comes alone; begun parts are not begun again.
    let heard = spoken.ask(&[&said[said.len() - 1..], &write(0, 8, 4096, &[1; 4096])[..]].concat());
    let mut heard = Heard(&heard);
    assert_eq!((heard.outcome(), heard.outcome()), ((ENOSPC, 7), (0, 8)));
    let begun = std::mem::take(&mut *parts.begun.lock().unwrap());
    let (part, first) = (PART as u64, PART - 512);
    assert_eq!(begun, [(512, first, true), (part, PART, true), (2 * part, PART, true), (4096, 4096, false)]);
    // A stopping server completes the WRITE; later commands are refused.
    assert_eq!(spoken.ask(&said[..28 + 2 * PART]), b"");
    spoken.0.stop();
    let heard = spoken.ask(&[&said[28 + 2 * PART..], &write(0, 8, 4096, &[1; 4096])[..]].concat());
    let mut heard = Heard(&heard);
    assert_eq!((heard.outcome(), heard.outcome()), ((ENOSPC, 7), (ESHUTDOWN, 8)));
}

/// Clients that announce long WRITEs and send little hold no memory.
#[test]
fn headers_hold_no_memory() {
    let budget = Arc::new(Budget::new(2 * LONGEST));
    let disk = disk();
    let mut others: Vec<Spoken> = (0..3).map(|_| Spoken::sharing(Arc::clone(&disk), &budget)).collect();
    let said = write(0, 1, 0, &vec![7; LONGEST]);
    for (i, other) in others.iter_mut().enumerate() {
        other.ask(&said[..28 + i * LONGEST / 3]);
        assert!(!other.0.holds_memory());
    }
    let mut spoken = Spoken::sharing(disk, &budget);
    for _ in 0..2 {
        let heard = spoken.ask(&request(0, READ, 2, 0, PAYLOAD_BYTES_MAX));
        assert_eq!(heard.len(), 16 + LONGEST);
        spoken.0.give_back();
    }
    // All of them go on concurrently.
    for (i, other) in others.iter_mut().enumerate() {
        let heard = other.ask(&said[28 + i * LONGEST / 3..]);
        assert_eq!(Heard(&heard).simple(), (0, 1));
    }
}

/// A disk on which CACHE never completes, and only `may_end` parts of WRITEs do.
#[derive(Default)]
struct Slow {
    may_end: AtomicUsize,
}

impl Export for Slow {
    fn name(&self) -> String {
        "slow".into()
    }
    fn size(&self) -> u64 {
        64 << 20
    }
    fn session(self: Arc<Self>) -> io::Result<Box<dyn Session>> {
        Ok(Box::new(SlowSession(self, VecDeque::new())))
    }
}

struct SlowSession(Arc<Slow>, VecDeque<Tag>);

impl Session for SlowSession {
    fn begin(&mut self, tag: Tag, command: Command<'_>, _: &mut Completions) {
        if matches!(command, Command::Write { .. }) {
            self.1.push_back(tag);
        }
    }
    fn poll(&mut self, completions: &mut Completions) {
        let ending = self.1.len().min(self.0.may_end.swap(0, Ordering::Relaxed));
        self.1.drain(..ending).for_each(|tag| completions.finish(tag, Ok(())));
    }
    fn event(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A part that ends has no answer, but makes room, which must be used without another event.
#[test]
fn the_room_that_a_part_leaves_is_taken_at_once() {
    let slow = Arc::new(Slow::default());
    let mut spoken = Spoken::transmitting(Arc::clone(&slow) as Arc<dyn Export>, false);
    for i in 2..COMMANDS_IN_FLIGHT_MAX as u64 {
        spoken.ask(&request(0, CACHE, i, 0, 4096));
    }
    let said = write(0, 1, 0, &vec![7; 3 * PART]);
    let (first, rest) = said.split_at(said.len() - PART - 1);
    spoken.ask(first);
    spoken.0.space()[..rest.len()].copy_from_slice(rest);
    spoken.0.arrived(rest.len());
    assert_eq!((spoken.0.advance(), spoken.0.in_flight()), (Need::Room, COMMANDS_IN_FLIGHT_MAX));
    slow.may_end.store(1, Ordering::Relaxed);
    assert_eq!((spoken.0.advance(), spoken.0.in_flight()), (Need::Input, COMMANDS_IN_FLIGHT_MAX));
    slow.may_end.store(2, Ordering::Relaxed);
    assert_eq!(Heard(&spoken.ask(&[])).simple(), (0, 1));
}

/// A disk on which the first command never ends, and how many it was given.
struct Busy(Arc<dyn Export>, AtomicUsize);

impl Export for Busy {
    fn name(&self) -> String {
        self.0.name()
    }
    fn size(&self) -> u64 {
        self.0.size()
    }
    fn session(self: Arc<Self>) -> io::Result<Box<dyn Session>> {
        let inner = Arc::clone(&self.0).session()?;
        Ok(Box::new(BusySession(self, inner)))
    }
}

struct BusySession(Arc<Busy>, Box<dyn Session>);

impl Session for BusySession {
    fn begin(&mut self, tag: Tag, command: Command<'_>, completions: &mut Completions) {
        if self.0.1.fetch_add(1, Ordering::Relaxed) == 0 {
            return;
        }
        self.1.begin(tag, command, completions);
    }
    fn poll(&mut self, completions: &mut Completions) {
        self.1.poll(completions);
    }
    fn event(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A READ's data exists twice while it is copied to its reply: both copies count against the memory budget.
#[test]
fn a_long_read_counts_with_its_copy() {
    let budget = Arc::new(Budget::new(2 * LONGEST - (1 << 20)));
    let mut spoken = Spoken::sharing(disk(), &budget);
    let (_, need) = spoken.say(&request(0, READ, 1, 0, PAYLOAD_BYTES_MAX));
    assert_eq!(need, Need::Memory);
    let mut other = Spoken::sharing(disk(), &budget);
    let heard = other.ask(&request(0, READ, 1, 0, PAYLOAD_BYTES_MAX - (1 << 20)));
    assert_eq!(heard.len(), 16 + LONGEST - (1 << 20));
}

/// A connection that always has something in flight gives back what only its largest requests needed.
#[test]
fn busy_connections_give_memory_back() {
    for in_flight in [4096, 1 << 20] {
        let budget = Arc::new(Budget::new(2 * LONGEST + 4 * in_flight as usize));
        let busy = Arc::new(Busy(disk(), AtomicUsize::new(0)));
        let mut spoken = Spoken::sharing(Arc::clone(&busy) as Arc<dyn Export>, &budget);
        spoken.ask(&request(0, READ, 1, 0, in_flight));
        spoken.ask(&request(0, READ, 2, 0, PAYLOAD_BYTES_MAX));
        spoken.ask(&request(0, READ, 3, 0, 4096));
        assert_eq!((spoken.0.in_flight(), busy.1.load(Ordering::Relaxed)), (1, 3));
        let mut other = Spoken::sharing(disk(), &budget);
        let (_, need) = other.say(&request(0, READ, 3, 0, PAYLOAD_BYTES_MAX));
        assert_eq!(need, Need::Memory);
        // Twice as many rounds as are looked back on.
        for i in 0..130 {
            assert_eq!(spoken.ask(&request(0, READ, i, 0, 4096)).len(), 16 + 4096);
            spoken.0.tidy();
        }
        assert_eq!(spoken.0.holds_memory(), in_flight > 4096);
        assert_eq!(other.ask(&[]).len(), 16 + LONGEST);
    }
}
