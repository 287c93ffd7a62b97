//! Models of caches: sequences with outcomes worked out on paper, and random ones after which every sum is recomputed.

use granary_lab::model::*;
use granary_lab::trace::{Label, Operation, Request};

const KIB: u64 = 1024;

/// `a b c`: reads; `+a`: a set; `-a`: a deletion. A second for each; objects of 1 KiB.
fn workload(text: &str) -> Workload {
    let request = |(time, word): (usize, &str)| {
        let (operation, key) = match word.split_at(1) {
            ("+", key) => (Operation::Set, key),
            ("-", key) => (Operation::Delete, key),
            ("?", key) => (Operation::Add, key),
            _ => (Operation::Get, word),
        };
        let key = u64::from(key.as_bytes()[0]);
        Request { time: time as u64, key, key_bytes: 24, value_bytes: 1000, operation, ttl: 0 }
    };
    let requests: Vec<Request> = text.split_whitespace().enumerate().map(request).collect();
    Workload::new("paper", Label::Synthetic, &requests)
}

/// Budgets in objects of 1 KiB; a segment holds `segment` of them.
fn budget(dram: u64, flash: u64, segment: u64) -> Budget {
    Budget { dram_bytes: dram * KIB, flash_bytes: flash * KIB, segment_bytes: segment * KIB }
}

fn run(model: &mut dyn Model, text: &str) -> Tally {
    let workload = workload(text);
    let tally = replay(model, &workload, &workload.next_reads(), |_| ());
    model.validate();
    tally
}

/// Hits, hits on flash, objects written to flash, objects stored.
fn counts(tally: &Tally) -> [u64; 4] {
    [tally.hits, tally.flash_hits, tally.flash_bytes_written / KIB, tally.stored_bytes / KIB]
}

#[test]
fn lru_lets_the_least_recently_used_go() {
    // b leaves for c, then a for b.
    let tally = run(&mut Lru::new(2 * KIB, 9), "a b a c a b a c");
    assert_eq!(counts(&tally), [3, 0, 0, 5]);
    assert_eq!((tally.hit_ratio(), tally.clwa()), (0.375, 0.0));
    // A deletion makes room, a set is no read, an add stores only absent objects.
    let tally = run(&mut Lru::new(2 * KIB, 9), "a b -a c b +c c ?c ?d d b");
    assert_eq!(counts(&tally), [3, 0, 0, 6]);
    assert_eq!(tally.reads, 7);
}

#[test]
fn belady_keeps_what_is_read_first() {
    // Room for two: when c comes, b is read before a.
    let tally = run(&mut Belady::new(2 * KIB, 9), "a b c b a b");
    assert_eq!(counts(&tally)[0], 3, "c is not kept, a and b are");
    let tally = run(&mut Belady::new(2 * KIB, 9), "a b c d a b c d a b c d");
    assert_eq!(counts(&tally)[0], 4, "LRU finds none of them");
    // A copy that is overwritten before it is read is useless.
    let tally = run(&mut Belady::new(KIB, 9), "a b +a b a");
    assert_eq!(counts(&tally)[0], 1, "b");
}

#[test]
fn fifo_writes_each_store_once() {
    // Segments of one object, three on flash, one open; no more DRAM.
    let tally = run(&mut Fifo::new(&budget(1, 3, 1), 9), "a b c d a b e a");
    // a b c d are stored; a and b are found on flash; e frees a.
    assert_eq!(counts(&tally), [2, 2, 5, 6]);
}

#[test]
fn a_victim_cache_writes_what_leaves_dram_each_time() {
    // One object in DRAM beside the open segment of one, three on flash.
    let tally = run(&mut Victim::new(&budget(2, 3, 1), 9), "a b c a b c");
    // Each read sends the last one to the log, which writes what it held before: a, b, c, a.
    assert_eq!(counts(&tally), [3, 3, 4, 3]);
}

#[test]
fn s3_fifo_forgets_one_hit_wonders_first() {
    // Ten places, one of them small: a and b are read twice more and survive a scan.
    let model = &mut S3Fifo::new(10 * KIB, 40);
    let tally = run(model, "a b a b a b c d e f g h i j k l m n o p a b");
    assert_eq!(counts(&tally)[0], 6);
    let tally = run(&mut Lru::new(10 * KIB, 40), "a b a b a b c d e f g h i j k l m n o p a b");
    assert_eq!(counts(&tally)[0], 4);
}

#[test]
fn ripq_moves_up_what_is_read_and_writes_it_again() {
    // Blocks of one object: eight on flash, and an open one for each of the eight insertion points.
    let sequence = "a b a c d e f g h i j";
    let mut model = Ripq::new(&budget(8, 8, 1), 40);
    // a is on flash when it is read: only its name moves up. j's coming writes the ninth block, i, and frees
    // a's; a's bytes follow its name to the open block there, in DRAM. b was not read, and is next to leave.
    assert_eq!(counts(&run(&mut model, sequence)), [1, 1, 9, 10]);
    assert_eq!([0, 1, 9].map(|key| model.place(key)), [Place::Dram, Place::Flash, Place::Dram]);
    let mut model = Ripq::new(&budget(8, 8, 1), 40);
    assert_eq!(counts(&run(&mut model, &format!("{sequence} k b a"))), [2, 1, 11, 12]);
}

/// Admits objects that were read this often.
struct Reads(u8);

impl Filter for Reads {
    fn on_read(&mut self, _: u32, _: bool) {}
    fn on_put(&mut self, _: u32, _: u32) {}
    fn admits(&mut self, offer: &Offer, _: u32) -> bool {
        offer.reads >= self.0
    }
    fn bytes_allocated(&self) -> u64 {
        0
    }
}

fn hybrid(dram: u64, flash: u64, options: HybridOptions, reads: u8) -> Hybrid<Reads> {
    Hybrid::new(&budget(dram + 1, flash, 1), 40, options, Reads(reads))
}

#[test]
fn the_hybrid_writes_only_what_earned_it() {
    // Two in DRAM. a is read there, so it goes to flash when c comes; b and c are dropped.
    let mut model = hybrid(2, 4, HybridOptions::default(), 1);
    let tally = run(&mut model, "a b a c d e a b");
    assert_eq!(counts(&tally), [2, 0, 0, 6], "the open segment is in DRAM");
    assert_eq!((model.place(0), model.place(2)), (Place::Dram, Place::Absent));
    // f is read, has its round, and pushes a's segment out of DRAM when h comes.
    let mut model = hybrid(2, 4, HybridOptions::default(), 1);
    let tally = run(&mut model, "a b a c f f d e g h a");
    assert_eq!(counts(&tally), [3, 1, 1, 8]);
}

#[test]
fn hot_objects_of_a_freed_segment_have_to_earn_flash_again() {
    let options = HybridOptions { hot: 1.0, copies: false };
    // What was read has its round, in which the next object is dropped; at its second try that one drives it
    // out. So a, b and c go to flash; there a is found. d's way to flash frees a's segment: a is hot, so it
    // is in the ring again, and e, unread, goes for it.
    let sequence = "a a b b b c c c d d a d e e";
    let mut model = hybrid(1, 2, options, 1);
    assert_eq!(counts(&run(&mut model, sequence)), [5, 1, 3, 9]);
    assert_eq!([0, 1, 4].map(|key| model.place(key)), [Place::Dram, Place::Flash, Place::Absent]);
    // It is not written again before it is read again.
    let mut model = hybrid(1, 2, options, 1);
    assert_eq!(counts(&run(&mut model, &format!("{sequence} f"))), [5, 1, 3, 10]);
    assert_eq!(model.place(0), Place::Absent);
}

#[test]
fn what_is_too_large_a_part_of_dram_is_written_at_once_with_a_copy_there() {
    let costs = |large_bytes| Costs { large_bytes, ..Costs::none(&budget(2, 4, 1)) };
    let run_with = |costs, sequence| {
        let mut model = Hybrid::with_costs(&budget(3, 4, 1), 40, HybridOptions::default(), costs, Reads(9));
        let tally = run(&mut model, sequence);
        (counts(&tally), [0, 1, 2].map(|key| model.place(key)))
    };
    // Nothing earns flash. Two copies in DRAM, and the last object written waits there, too.
    let (found, places) = run_with(costs(KIB), "a b c a b");
    assert_eq!((found, places), ([0, 0, 0, 5], [Place::Dram, Place::Dram, Place::Absent]));
    let (found, places) = run_with(costs(KIB - 1), "a b c a b d");
    assert_eq!((found, places), ([2, 1, 3, 4], [Place::Flash, Place::Dram, Place::Flash]));
}

#[test]
fn what_objects_take_beside_their_bytes_takes_from_the_space() {
    let costs = Costs {
        dram_bytes_per_object: KIB as u32,
        flash_bytes_per_object: 512,
        ..Costs::none(&budget(3, 4, 1))
    };
    // DRAM for four objects of 1 KiB, or for two with their overhead: the third evicts the first.
    let with = |costs| Hybrid::with_costs(&budget(5, 6, 1), 40, HybridOptions::default(), costs, Reads(0));
    let mut model = with(costs);
    run(&mut model, "a b c d e");
    assert_eq!(
        [0, 2, 3, 4].map(|key| model.place(key)),
        [Place::Flash, Place::Dram, Place::Dram, Place::Dram]
    );
    assert_eq!(model.flash_bytes_written(), 2 * 1536, "a and b; c waits in the open segment");
    let mut model = with(Costs::none(&budget(5, 6, 1)));
    run(&mut model, "a b c d e");
    assert_eq!((model.place(0), model.flash_bytes_written()), (Place::Dram, 0));
}

#[test]
fn a_lifetime_ends_wherever_the_object_is() {
    let request = |time, key, ttl| Request {
        time,
        key,
        key_bytes: 24,
        value_bytes: 1000,
        operation: Operation::Get,
        ttl,
    };
    let requests = [request(0, 1, 10), request(9, 1, 10), request(10, 1, 10), request(15, 1, 10)];
    let workload = Workload::new("ends", Label::Synthetic, &requests);
    let budget = budget(4, 16, 1);
    for (name, _) in Policy::NAMES {
        let mut model = name.parse::<Policy>().unwrap().model(&budget, workload.keys);
        let tally = replay(&mut *model, &workload, &workload.next_reads(), |_| ());
        assert_eq!((tally.hits, tally.stored_bytes), (2, 2 * KIB), "{name}");
    }
}

/// Xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn random_workload(seed: u64, requests: usize) -> Workload {
    let mut random = Random(seed);
    let requests: Vec<Request> = (0..requests)
        .map(|time| {
            let operation = match random.below(20) {
                0 => Operation::Delete,
                1 | 2 => Operation::Set,
                3 => Operation::Add,
                _ => Operation::Get,
            };
            let bound = 1 + random.below(500);
            let key = random.below(bound);
            let changed = u64::from(random.below(50) == 0);
            let value_bytes = (1 + key * 37 % 700 + changed) as u32;
            let ttl = if key.is_multiple_of(3) { 300 } else { 0 };
            Request { time: time as u64, key, key_bytes: 8, value_bytes, operation, ttl }
        })
        .collect();
    Workload::new("random", Label::Synthetic, &requests)
}

#[test]
fn every_sum_of_every_model_is_right_after_random_requests() {
    for seed in 1..=6 {
        let workload = random_workload(seed * 7919, 20_000);
        let next_reads = workload.next_reads();
        for (dram, flash, segment) in [(2_000, 30_000, 200), (40_000, 40_000, 2_000), (900, 9_000, 64)] {
            let budget = Budget { dram_bytes: dram, flash_bytes: flash, segment_bytes: segment };
            for (name, _) in Policy::NAMES {
                let policy: Policy = name.parse().unwrap();
                let mut model = policy.model(&budget, workload.keys);
                let tally = replay(&mut *model, &workload, &next_reads, |_| ());
                model.validate();
                assert!(tally.hits <= tally.reads && tally.flash_hits <= tally.hits, "{name}");
                assert!(tally.dram_bytes <= dram + flash, "{name}");
            }
        }
    }
}

#[test]
fn nobody_finds_more_than_belady_among_objects_of_one_size() {
    let mut random = Random(99);
    let text: Vec<String> = (0..4000)
        .map(|_| {
            let bound = 1 + random.below(26);
            String::from(char::from(b'a' + random.below(bound) as u8))
        })
        .collect();
    let text = text.join(" ");
    let budget = budget(3, 6, 1);
    let best = run(&mut *Policy::Belady.model(&budget, 26), &text);
    for (name, _) in Policy::NAMES {
        let mut model = name.parse::<Policy>().unwrap().model(&budget, 26);
        let tally = run(&mut *model, &text);
        assert!(tally.hits <= best.hits, "{name}: {} of {}", tally.hits, best.hits);
    }
}

#[test]
fn a_hit_on_flash_is_a_read_of_flash_and_no_write_goes_uncounted() {
    let workload = random_workload(5, 20_000);
    let budget = Budget::new(10_000, 70_000);
    let tally = |policy: &str| {
        let mut model = policy.parse::<Policy>().unwrap().model(&budget, workload.keys);
        replay(&mut *model, &workload, &[], |_| ())
    };
    let (fifo, all, none, victim) = (tally("fifo"), tally("probability:1"), tally("none"), tally("victim"));
    // All but the bytes that wait in the open segment.
    assert!(fifo.stored_bytes - fifo.flash_bytes_written <= budget.segment_bytes * 2);
    assert_eq!((none.flash_bytes_written, none.flash_hits), (0, 0));
    assert!(none.hits < all.hits);
    assert!(victim.flash_bytes_written > fifo.flash_bytes_written, "what is read is written again");
}
