use super::*;
use crate::store::StoreOptions;
use granary_cache::admission::Admission;
use std::path::Path;

fn engine(folder: &Path) -> Engine {
    let mut options = StoreOptions::new(folder.join("m"), 1 << 20, 64 << 20);
    (options.admission, options.memory_folder) = (Admission::All, None);
    // With this seed no key of the tests has the hash bits of a filler.
    options.hash_seed = Some(1);
    let settings = Settings { threads: 1, ..Settings::default() };
    Engine::new(Arc::new(ServerState::new(Store::open(&options).unwrap(), None, settings)), 0)
}

/// Lets sessions take their turns until none waits; returns each one's replies.
fn run(engine: &mut Engine, sessions: &mut [Session]) -> Vec<String> {
    while sessions.iter().any(|session| session.is_pending() || session.may_step() || session.is_stalled()) {
        engine.turn(sessions, 1_000);
        engine.take_completions(1_000);
    }
    let told = |session: &mut Session| {
        let told = String::from_utf8(session.replies().to_vec()).unwrap();
        session.sent(told.len());
        told
    };
    sessions.iter_mut().map(told).collect()
}

/// Stores items that are then on the device only: fillers put after them are more than RAM and write buffers hold.
fn fill(engine: &mut Engine, session: &mut Session) {
    for first in ["set n 0 0 1\r\n5\r\n", "set m 0 0 1\r\n5\r\n", "set s 0 0 3\r\nabc\r\n"] {
        session.receive(first.as_bytes());
    }
    run(engine, std::slice::from_mut(session));
    let filler = "f".repeat(500);
    for first in (0..20_000).step_by(100) {
        let set = |i| format!("set filler-{i} 0 0 {}\r\n{filler}\r\n", filler.len());
        session.receive((first..first + 100).map(set).collect::<String>().as_bytes());
        run(engine, std::slice::from_mut(session));
    }
    // Waits however slow the device is: the first write buffer, with these items, is written before the second.
    while engine.shared().store.cache_stats().segments_written < 2 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_change_of_what_is_on_the_device_waits_and_its_thread_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = engine(folder.path());
    let mut sessions: Vec<Session> = (0..3).map(|number| engine.shared().session(number)).collect();
    fill(&mut engine, &mut sessions[0]);
    sessions[0].receive(b"incr n 1\r\nget n\r\n");
    sessions[1].receive(b"incr n 10\r\nincr n 100\r\n");
    sessions[2].receive(b"get unknown\r\nset x 0 0 1\r\ny\r\nget x\r\n");
    engine.turn(&mut sessions, 1_000);
    assert!(sessions[0].is_pending() && sessions[1].is_pending(), "their key is on the device");
    assert!(sessions[0].replies().is_empty() && sessions[1].replies().is_empty());
    assert_eq!(sessions[2].replies(), b"END\r\nSTORED\r\nVALUE x 0 1\r\ny\r\nEND\r\n", "others go on");
    let sent = sessions[2].replies().len();
    sessions[2].sent(sent);
    let told = run(&mut engine, &mut sessions);
    // Each client's change sees those of the others; the second one looks the key up again.
    let number = |text: &str| text.trim().parse::<u64>().unwrap();
    let (first, seen) = told[0].split_once("\r\n").unwrap();
    let [second, third] = [0, 1].map(|i| number(told[1].lines().nth(i).unwrap()));
    let first = number(first);
    let orders = [(6, 16, 116), (116, 15, 115), (16, 15, 116)];
    assert!(orders.contains(&(first, second, third)), "{told:?}");
    let length = first.max(third).to_string().len().max(first.to_string().len());
    assert!(seen.starts_with("VALUE n 0 ") && length <= 3, "{seen}");
    sessions[0].receive(b"get n\r\n");
    assert_eq!(run(&mut engine, &mut sessions)[0], "VALUE n 0 3\r\n116\r\nEND\r\n");
}

#[test]
fn every_kind_of_change_finds_what_is_on_the_device() {
    for (request, reply) in [
        ("append s 0 0 1\r\nd\r\nget s\r\n", "STORED\r\nVALUE s 0 4\r\nabcd\r\nEND\r\n"),
        ("add s 0 0 1\r\nd\r\n", "NOT_STORED\r\n"),
        ("replace s 0 0 1\r\nd\r\nget s\r\n", "STORED\r\nVALUE s 0 1\r\nd\r\nEND\r\n"),
        ("delete s\r\nget s\r\ndelete s\r\n", "DELETED\r\nEND\r\nNOT_FOUND\r\n"),
        ("touch s 100\r\n", "TOUCHED\r\n"),
        (
            "gat 100 n unknown s m\r\nget s\r\n",
            "VALUE n 0 1\r\n5\r\nVALUE s 0 3\r\nabc\r\nVALUE m 0 1\r\n5\r\nEND\r\nVALUE s 0 3\r\nabc\r\nEND\r\n",
        ),
        ("mg s v T100\r\nmn\r\n", "VA 3\r\nabc\r\nMN\r\n"),
        ("ma n v\r\nma m v MD\r\n", "VA 1\r\n6\r\nVA 1\r\n4\r\n"),
        ("ms s 1 MA\r\nx\r\nmd s\r\nmg s v\r\n", "HD\r\nHD\r\nEN\r\n"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut engine = engine(folder.path());
        let mut sessions = [engine.shared().session(0)];
        fill(&mut engine, &mut sessions[0]);
        sessions[0].receive(request.as_bytes());
        engine.turn(&mut sessions, 1_000);
        assert!(sessions[0].is_pending(), "{request}");
        assert_eq!(run(&mut engine, &mut sessions)[0], reply, "{request}");
    }
}

#[test]
fn a_request_that_waits_for_several_keys_is_parsed_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = engine(folder.path());
    let mut sessions = [engine.shared().session(0)];
    fill(&mut engine, &mut sessions[0]);
    sessions[0].receive(b"gat 100 n unknown s m\r\n");
    engine.turn(&mut sessions, 1_000);
    assert!(sessions[0].is_pending());
    let parses = sessions[0].input.parses.get();
    let told = run(&mut engine, &mut sessions);
    assert_eq!(told[0], "VALUE n 0 1\r\n5\r\nVALUE s 0 3\r\nabc\r\nVALUE m 0 1\r\n5\r\nEND\r\n");
    assert_eq!(sessions[0].input.parses.get(), parses);
}

/// Clients of two threads change the same keys, which are on the device: those of the second thread do so after the keys
/// were read for those of the first, and before these are carried out.
#[test]
fn a_change_that_is_overtaken_goes_by_the_newest_item_and_reads_no_second_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = engine(folder.path());
    let mut second = Engine::new(Arc::clone(first.shared()), 0);
    let mut waiting: Vec<Session> = (0..3).map(|number| first.shared().session(number)).collect();
    let mut others = [first.shared().session(0)];
    fill(&mut first, &mut waiting[0]);
    waiting[0].receive(b"append s 0 0 1\r\nd\r\nget s\r\n");
    waiting[1].receive(b"incr m 1\r\n");
    waiting[2].receive(b"incr n 1\r\n");
    first.turn(&mut waiting, 1_000);
    assert!(waiting.iter().all(Session::is_pending), "their keys are on the device");
    while first.pending.waiting() > 0 {
        first.take_completions(1_000);
    }
    let appended = b"append s 0 0 1\r\ne\r\n".repeat(50);
    others[0].receive(&[&appended[..], b"delete m\r\nset n 0 0 2\r\n40\r\n"].concat());
    let told = run(&mut second, &mut others);
    assert_eq!(told[0], format!("{}DELETED\r\nSTORED\r\n", "STORED\r\n".repeat(50)));
    let reads = first.shared().store.cache_stats().reads;
    first.turn(&mut waiting, 1_000);
    assert!(!waiting.iter().any(Session::is_pending), "they wait no second time");
    let told = run(&mut first, &mut waiting);
    let appended = format!("abc{}d", "e".repeat(50));
    assert_eq!(told[0], format!("STORED\r\nVALUE s 0 54\r\n{appended}\r\nEND\r\n"));
    assert_eq!(told[1..], ["NOT_FOUND\r\n", "41\r\n"]);
    assert_eq!(first.shared().store.cache_stats().reads, reads);
}

#[test]
fn a_client_that_goes_while_its_key_is_read_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = engine(folder.path());
    let mut sessions = [engine.shared().session(0)];
    fill(&mut engine, &mut sessions[0]);
    sessions[0].receive(b"incr n 1\r\n");
    engine.turn(&mut sessions, 1_000);
    assert!(sessions[0].is_pending());
    engine.forget(&sessions[0]);
    let mut next = [engine.shared().session(0)];
    next[0].receive(b"incr n 1\r\nget n\r\n");
    assert_eq!(run(&mut engine, &mut next)[0], "6\r\nVALUE n 0 1\r\n6\r\nEND\r\n");
    assert_eq!(engine.pending.waiting(), 0);
}

#[test]
fn others_have_their_turn_during_a_get_of_very_many_keys() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = engine(folder.path());
    let mut sessions = [0, 1].map(|number| engine.shared().session(number));
    let many = format!("get{}\r\n", " k".repeat(400_000));
    sessions[0].receive(many.as_bytes());
    sessions[1].receive(b"get x\r\nset x 0 0 1\r\ny\r\n");
    engine.turn(&mut sessions, 1_000);
    assert_eq!(sessions[1].replies(), b"END\r\nSTORED\r\n");
    assert!(sessions[0].may_step() && sessions[0].replies().is_empty(), "it goes on at its next turn");
    assert!(sessions[0].has_full_turn(), "no more is read before");
    let told = run(&mut engine, &mut sessions);
    assert_eq!(told[0], "END\r\n");
}

/// Threads read the clock at the beginning of their turns, which may be long.
#[test]
fn an_item_that_one_thread_called_expired_is_expired_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut ahead = engine(folder.path());
    let mut behind = Engine::new(Arc::clone(ahead.shared()), 0);
    let mut sessions = [0, 1].map(|number| [ahead.shared().session(number)]);
    sessions[0][0].receive(b"set k 0 10 1\r\nv\r\nset l 0 10 1\r\nv\r\nget k l\r\n");
    ahead.turn(&mut sessions[0], 1_000);
    assert!(sessions[0][0].replies().ends_with(b"VALUE k 0 1\r\nv\r\nVALUE l 0 1\r\nv\r\nEND\r\n"));
    sessions[0][0].sent(sessions[0][0].replies().len());
    sessions[0][0].receive(b"get k\r\n");
    ahead.turn(&mut sessions[0], 1_011);
    assert_eq!(sessions[0][0].replies(), b"END\r\n");
    sessions[1][0].receive(
        b"get k\r\ntouch k 100\r\ngat 100 k\r\nmg k T100 v\r\nget l\r\nincr l 1\r\nadd l 0 10 1\r\nw\r\n",
    );
    behind.turn(&mut sessions[1], 1_009);
    assert_eq!(sessions[1][0].replies(), b"END\r\nNOT_FOUND\r\nEND\r\nEN\r\nEND\r\nNOT_FOUND\r\nSTORED\r\n");
}
