use super::*;
use crate::key::KeyHasher;

fn candidate(key: &[u8], reads: u8, updates: u8) -> Candidate<'_> {
    Candidate { key: KeyHasher::with_seed(0).key(key), bytes: 1000, reads, updates }
}

fn name(prefix: &str, n: u32) -> Vec<u8> {
    format!("{prefix}{n}").into_bytes()
}

#[test]
fn the_plain_policies_do_what_their_names_say() {
    let admitted = |admission: &Admission, times: usize| {
        let mut admitter = Admitter::new(admission, &Applications::default(), 1 << 20, None, 1);
        (0..4000)
            .map(name_of_plain)
            .map(|key| {
                (0..times).filter(|_| admitter.decide(&candidate(&key, 0, 0), 0.0) == Decision::Flash).count()
            })
            .sum::<usize>()
    };
    assert_eq!(admitted(&Admission::All, 1), 4000);
    assert_eq!(admitted(&Admission::None, 1), 0);
    let half = admitted(&Admission::Probability(0.5), 1);
    assert!((1850..2150).contains(&half), "{half}");
    let first = admitted(&Admission::RejectFirst, 1);
    assert!(first < 800, "{first} of 4000 new keys are taken for old ones");
    let second = admitted(&Admission::RejectFirst, 2);
    assert!(second >= 4000, "{second}: who comes again is let in");
}

fn name_of_plain(n: u32) -> Vec<u8> {
    name("k", n)
}

#[test]
fn reject_first_forgets_in_time() {
    let mut admitter = Admitter::new(&Admission::RejectFirst, &Applications::default(), 1 << 20, None, 1);
    let key = b"once and much later";
    assert_eq!(admitter.decide(&candidate(key, 0, 0), 0.0), Decision::Drop);
    for n in 0..100_000 {
        admitter.decide(&candidate(&name("k", n), 0, 0), 0.0);
    }
    assert_eq!(admitter.decide(&candidate(key, 0, 0), 0.0), Decision::Drop);
    assert_eq!(admitter.decide(&candidate(key, 0, 0), 0.0), Decision::Flash);
    // Few large objects are as long a time as many small ones.
    admitter.on_put(KeyHasher::with_seed(0).key(b"large"), 1 << 19);
    assert_eq!(admitter.decide(&candidate(key, 0, 0), 0.0), Decision::Flash);
    admitter.on_put(KeyHasher::with_seed(0).key(b"large"), 1 << 19);
    admitter.on_put(KeyHasher::with_seed(0).key(b"large"), 1 << 19);
    assert_eq!(admitter.decide(&candidate(key, 0, 0), 0.0), Decision::Drop);
}

#[test]
fn reuse_takes_what_was_read_what_returns_and_a_few_others() {
    let mut admitter = Admitter::new(&Admission::Reuse, &Applications::default(), 64 << 20, None, 1);
    let admitted = |admitter: &mut Admitter, reads: u8, keys: std::ops::Range<u32>| {
        let mut admits = |key: &Vec<u8>| admitter.decide(&candidate(key, reads, 0), 0.0) == Decision::Flash;
        keys.map(name_of_plain).filter(|key| admits(key)).count()
    };
    let unproven = admitted(&mut admitter, 0, 10_000..14_000);
    assert!((1800..2300).contains(&unproven), "half of them while flash is empty: {unproven}");
    admitter.set_free_bytes(0);
    let unproven = admitted(&mut admitter, 0, 0..4000);
    assert!((150..350).contains(&unproven), "one in twenty: {unproven}");
    assert_eq!(admitted(&mut admitter, 0, 0..4000), 4000, "they return");
    assert_eq!(admitted(&mut admitter, 1, 4000..8000), 4000, "they were read");
}

#[test]
fn a_budget_is_held_within_five_percent() {
    let per_day = 86_400 * 10_000;
    let mut admitter = Admitter::new(&Admission::All, &Applications::default(), 1 << 30, Some(per_day), 1);
    // Two hours of 25 000 bytes a second, one hour of nothing, two of 25 000: a budget of 10 000.
    let mut written = 0;
    for second in (0..7200).chain(10_800..18_000) {
        for n in 0..25 {
            if admitter.decide(&candidate(&name("k", n), 0, 0), f64::from(second)) == Decision::Flash {
                written += 1000;
            }
        }
    }
    let busy = f64::from(7200 * 2 * 10_000);
    assert!((0.95..1.05).contains(&(f64::from(written) / busy)), "{written} of {busy}");
}

/// Objects "good" are read again and again, "bad" ones once, "changing" ones are read and then updated.
fn learnt(applications: &Applications) -> Admitter {
    let mut admitter =
        Admitter::new(&Admission::Flashield(Flashield::default()), applications, 64 << 10, None, 1);
    let read = |admitter: &mut Admitter, key: &[u8]| {
        admitter.on_read(KeyHasher::with_seed(0).key(key), true);
    };
    for n in 0..20_000 {
        let (good, bad, changing) = (name("good", n % 300), name("bad", n), name("changing", n % 300));
        if n < 300 {
            admitter.on_put(KeyHasher::with_seed(0).key(&good), 500);
        }
        admitter.on_put(KeyHasher::with_seed(0).key(&bad), 500);
        admitter.on_put(KeyHasher::with_seed(0).key(&changing), 500);
        read(&mut admitter, &good);
        if n >= 300 {
            read(&mut admitter, &good);
        }
        read(&mut admitter, &bad);
        read(&mut admitter, &changing);
    }
    admitter
}

#[test]
fn flashield_learns_who_is_read_again() {
    let mut admitter = learnt(&Applications::default());
    assert_eq!(admitter.decide(&candidate(b"never read", 0, 0), 0.0), Decision::Drop);
    assert_eq!(admitter.decide(&candidate(b"read once", 1, 0), 0.0), Decision::Drop, "as the bad ones");
    assert_eq!(admitter.decide(&candidate(b"read a lot", 12, 0), 0.0), Decision::Flash);
    assert_eq!(admitter.decide(&candidate(b"read and updated", 4, 4), 0.0), Decision::Drop);
    assert!(admitter.bytes_allocated() < 2 << 20, "{}", admitter.bytes_allocated());
}

#[test]
fn applications_are_learnt_apart() {
    let applications = Applications::new([b"good".to_vec(), b"bad".to_vec()]);
    let mut admitter = learnt(&applications);
    assert_eq!(admitter.decide(&candidate(b"good one", 1, 0), 0.0), Decision::Flash);
    assert_eq!(admitter.decide(&candidate(b"bad one", 1, 0), 0.0), Decision::Drop);
}

#[test]
fn before_it_has_learnt_a_read_is_enough() {
    let mut admitter = Admitter::new(
        &Admission::Flashield(Flashield::default()),
        &Applications::default(),
        1 << 20,
        None,
        1,
    );
    assert_eq!(admitter.decide(&candidate(b"read", 1, 0), 0.0), Decision::Flash);
    assert_eq!(admitter.decide(&candidate(b"not read", 0, 0), 0.0), Decision::Drop);
}

#[test]
fn policies_have_names() {
    for name in ["all", "none", "probability:0.25", "reject-first", "reuse", "flashield:1", "flashield:3"] {
        assert_eq!(name.parse::<Admission>().unwrap().to_string(), name);
    }
    assert_eq!("flashield".parse(), Ok(Admission::Flashield(Flashield::default())));
    for name in
        ["", "lru", "all:1", "probability", "probability:2", "probability:x", "flashield:0", "flashield:16"]
    {
        assert!(name.parse::<Admission>().unwrap_err().to_string().contains("reject-first"), "{name}");
    }
}

#[test]
fn reads_alone_take_no_more_memory() {
    let mut samples = super::samples::Samples::default();
    let mut random = fastrand::Rng::with_seed(1);
    let hashes: Vec<_> = (0..100).map(|n| KeyHasher::with_seed(0).key(&name("k", n)).hash()).collect();
    for hash in &hashes {
        samples.on_put(*hash, 1);
    }
    let mut read = |samples: &mut super::samples::Samples, times: usize| {
        (0..times).for_each(|_| hashes.iter().for_each(|hash| samples.on_read(*hash, true, &mut random)));
        samples.bytes_allocated()
    };
    let before = read(&mut samples, 100);
    assert_eq!(read(&mut samples, 10_000), before);
    // Remembered examples end as before.
    samples.on_put(hashes[0], 1 << 30);
    assert_eq!(std::iter::from_fn(|| samples.next(1)).count(), hashes.len() - 1);
}

#[test]
fn what_others_put_ends_the_examples_of_a_small_application() {
    let small = Applications::new([b"small:".to_vec()]);
    let mut learners = Learners::new(&Flashield::default(), &small, 1 << 20, 1);
    let hasher = KeyHasher::with_seed(0);
    let key = |application: &str, n: u32| name(&format!("{application}:"), n);
    learners.on_put(hasher.key(&key("small", 0)), 100);
    learners.on_read(hasher.key(&key("small", 0)), true);
    (0..40_000).for_each(|n| learners.on_put(hasher.key(&key("other", n)), 1000));
    assert_eq!(learners.examples(b"small:"), 0);
    learners.on_put(hasher.key(&key("small", 1)), 100);
    assert_eq!(learners.examples(b"small:"), 1);
}

#[test]
fn what_was_not_written_costs_no_budget() {
    let day = Some(86_400_000);
    let mut admitter = Admitter::new(&Admission::All, &Applications::default(), 1 << 20, day, 1);
    let decide = |admitter: &mut Admitter, now: f64| admitter.decide(&candidate(b"k", 0, 0), now);
    decide(&mut admitter, 0.0);
    assert_eq!((0..10).filter(|_| decide(&mut admitter, 10.0) == Decision::Flash).count(), 10, "10 seconds");
    assert_eq!(decide(&mut admitter, 10.0), Decision::Drop);
    // Behind a slow device each is asked for again and again.
    for _ in 0..100 {
        admitter.refund(1000);
        assert_eq!(decide(&mut admitter, 10.0), Decision::Flash);
    }
    assert_eq!(decide(&mut admitter, 10.0), Decision::Drop);
}
