//! Negotiation, byte by byte.

mod common;

use common::bytes::*;
use common::spoken::Spoken;
use granary_nbd::limits::{
    HANDSHAKE_OUTPUT_BYTES_SOFT, LARGE_BUFFER_BYTES_MAX, META_QUERIES_MAX, OPTION_BYTES_MAX, OPTIONS_MAX,
    STRING_BYTES_MAX,
};
use granary_nbd::protocol::{Budget, Ending, Need};
use granary_nbd::{Export, Exports, MemoryExport, TlsPolicy};
use std::sync::Arc;

const SIZE: u64 = 1 << 20;
/// HAS_FLAGS, FLUSH, FUA, TRIM, WRITE_ZEROES, MULTI_CONN, CACHE, FAST_ZERO.
const WRITABLE: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;
/// Without the flags of changes, and with READ_ONLY.
const READ_ONLY: u16 = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 8 | 1 << 10;
const SEND_DF: u16 = 1 << 7;

fn disk() -> Arc<dyn Export> {
    Arc::new(MemoryExport::new("disk", SIZE))
}

fn greeted(policy: TlsPolicy) -> Spoken {
    let mut spoken = Spoken::new(disk(), policy);
    assert_eq!(spoken.ask(&flags(FIXED_NEWSTYLE | NO_ZEROES)), b"");
    spoken
}

/// The only reply to an option.
fn answer(spoken: &mut Spoken, number: u32, data: &[u8]) -> u32 {
    let heard = spoken.ask(&option(number, data));
    let mut heard = Heard(&heard);
    let (kind, text) = heard.option_reply(number);
    assert!(heard.0.is_empty(), "there is one reply");
    assert_eq!(kind == ACK, text.is_empty(), "a refusal has a text");
    kind
}

#[test]
fn export_name_ends_it_with_or_without_zeroes() {
    for (client, zeroes) in [(FIXED_NEWSTYLE, 124), (FIXED_NEWSTYLE | NO_ZEROES, 0), (0, 124), (NO_ZEROES, 0)]
    {
        for name in ["disk", ""] {
            let mut spoken = Spoken::new(disk(), TlsPolicy::Off);
            let said = [flags(client), option(EXPORT_NAME, name.as_bytes())].concat();
            let mut expected = SIZE.to_be_bytes().to_vec();
            expected.extend(WRITABLE.to_be_bytes());
            expected.extend(vec![0; zeroes]);
            assert_eq!(spoken.ask(&said), expected);
            assert!(spoken.0.is_transmitting());
        }
    }
}

#[test]
fn what_export_name_cannot_have_ends_the_connection() {
    for name in [&b"none"[..], b"\xFF", &[b'n'; STRING_BYTES_MAX + 1], &[b'n'; OPTION_BYTES_MAX + 1]] {
        let (heard, ending) = greeted(TlsPolicy::Off).last(&option(EXPORT_NAME, name));
        assert_eq!((heard.as_slice(), ending), (&b""[..], Ending::Refused));
    }
}

#[test]
fn clients_that_do_not_speak_the_protocol_are_disconnected() {
    let (_, ending) = Spoken::new(disk(), TlsPolicy::Off).last(&flags(4));
    assert!(matches!(ending, Ending::Violation(_)), "{ending:?}");
    let (_, ending) = greeted(TlsPolicy::Off).last(b"GET / HTTP/1.1\r\nHost: disk\r\n\r\n");
    assert!(matches!(ending, Ending::Violation(_)), "{ending:?}");
    let plain = [flags(NO_ZEROES), option(LIST, &[])].concat();
    let (_, ending) = Spoken::new(disk(), TlsPolicy::Off).last(&plain);
    assert!(matches!(ending, Ending::Violation(_)), "{ending:?}");
}

#[test]
fn go_tells_what_is_asked_for() {
    let mut spoken = greeted(TlsPolicy::Off);
    assert_eq!(answer(&mut spoken, STRUCTURED_REPLY, &[]), ACK);
    let heard = spoken.ask(&option(GO, &info("", &[1, 3, 2, 77])));
    let mut heard = Heard(&heard);
    let mut told = Vec::new();
    loop {
        match heard.option_reply(GO) {
            (ACK, &[]) => break,
            (3, data) => told.push(data.to_owned()),
            other => panic!("{other:?}"),
        }
    }
    assert!(heard.0.is_empty());
    told.sort();
    let export = [&[0, 0], &SIZE.to_be_bytes()[..], &(WRITABLE | SEND_DF).to_be_bytes()].concat();
    let name = b"\0\x01disk".to_vec();
    let description = b"\0\x021048576 bytes of memory".to_vec();
    let block_size = [&[0, 3, 0, 0, 0, 1, 0, 0, 16, 0], &(32_u32 << 20).to_be_bytes()[..]].concat();
    assert_eq!(told, [export, name, description, block_size]);
    assert!(spoken.0.is_transmitting());
}

#[test]
fn a_read_only_export_says_so() {
    let disk = Arc::new(MemoryExport::new("disk", SIZE).read_only().with_minimum_block(512));
    let mut spoken = Spoken::new(disk, TlsPolicy::Off);
    let heard = spoken.ask(&[flags(FIXED_NEWSTYLE), option(INFO, &info("disk", &[3]))].concat());
    let mut heard = Heard(&heard);
    let export = [&[0, 0], &SIZE.to_be_bytes()[..], &READ_ONLY.to_be_bytes()].concat();
    assert_eq!(heard.option_reply(INFO), (3, &export[..]));
    let block_size = [&[0, 3, 0, 0, 2, 0, 0, 0, 16, 0], &(32_u32 << 20).to_be_bytes()[..]].concat();
    assert_eq!(heard.option_reply(INFO), (3, &block_size[..]));
    assert_eq!(heard.option_reply(INFO), (ACK, &[][..]));
    assert!(!spoken.0.is_transmitting());
}

#[test]
fn lists_and_contexts() {
    let mut spoken = greeted(TlsPolicy::Off);
    let heard = spoken.ask(&option(LIST, &[]));
    let mut heard = Heard(&heard);
    assert_eq!(heard.option_reply(LIST), (2, &b"\0\0\0\x04disk1048576 bytes of memory"[..]));
    assert_eq!(heard.option_reply(LIST), (ACK, &[][..]));
    let context = |id: u32| [&id.to_be_bytes()[..], b"base:allocation"].concat();
    for queries in [&[][..], &["base:"], &["x-a:b", "base:allocation"]] {
        let heard = spoken.ask(&option(LIST_META_CONTEXT, &meta("disk", queries)));
        let mut heard = Heard(&heard);
        assert_eq!(heard.option_reply(LIST_META_CONTEXT), (4, &context(0)[..]));
        assert_eq!(heard.option_reply(LIST_META_CONTEXT), (ACK, &[][..]));
    }
    assert_eq!(answer(&mut spoken, LIST_META_CONTEXT, &meta("disk", &["base:other"])), ACK);
    assert_eq!(answer(&mut spoken, LIST_META_CONTEXT, &meta("none", &[])), ERR_UNKNOWN);
    assert_eq!(answer(&mut spoken, SET_META_CONTEXT, &meta("disk", &["base:allocation"])), ERR_INVALID);
    assert_eq!(answer(&mut spoken, STRUCTURED_REPLY, &[]), ACK);
    let heard = spoken.ask(&option(SET_META_CONTEXT, &meta("disk", &["base:allocation"])));
    let mut heard = Heard(&heard);
    assert_eq!(heard.option_reply(SET_META_CONTEXT), (4, &context(1)[..]));
    for queries in [&[][..], &["base:"], &["x-a:b"]] {
        assert_eq!(answer(&mut spoken, SET_META_CONTEXT, &meta("disk", queries)), ACK);
    }
}

/// Whether BLOCK_STATUS is answered after these options and GO.
fn has_allocation(options: &[Vec<u8>], name: &str) -> bool {
    let mut spoken = greeted(TlsPolicy::Off);
    let said = [options.concat(), option(GO, &info(name, &[]))].concat();
    spoken.ask(&said);
    let heard = spoken.ask(&request(0, BLOCK_STATUS, 1, 0, 4096));
    Heard(&heard).chunk().1 == 5
}

#[test]
fn contexts_are_of_the_export_they_were_selected_for() {
    let select = |name, query| option(SET_META_CONTEXT, &meta(name, &[query]));
    let structured = option(STRUCTURED_REPLY, &[]);
    let good = [structured.clone(), select("disk", "base:allocation")];
    assert!(has_allocation(&good, "disk"));
    assert!(!has_allocation(&good, ""), "another name");
    assert!(!has_allocation(std::slice::from_ref(&structured), "disk"));
    // The last selection counts, even if it fails.
    for later in [select("disk", "x-a:b"), select("none", "base:allocation"), select("disk", "nocolon")] {
        assert!(!has_allocation(&[&good[..], &[later]].concat(), "disk"));
    }
    let long = option(SET_META_CONTEXT, &vec![0; OPTION_BYTES_MAX + 1]);
    assert!(!has_allocation(&[&good[..], &[long]].concat(), "disk"));
}

#[test]
fn options_that_make_no_sense_are_refused_and_it_goes_on() {
    let mut spoken = greeted(TlsPolicy::Off);
    assert_eq!(answer(&mut spoken, 4, &[]), ERR_UNSUP);
    assert_eq!(answer(&mut spoken, 11, &[]), ERR_UNSUP);
    assert_eq!(answer(&mut spoken, 0xFFFF_FFFF, b"data"), ERR_UNSUP);
    assert_eq!(answer(&mut spoken, LIST, b"data"), ERR_INVALID);
    assert_eq!(answer(&mut spoken, GO, b"data"), ERR_INVALID);
    assert_eq!(answer(&mut spoken, GO, &info("none", &[])), ERR_UNKNOWN);
    assert_eq!(answer(&mut spoken, INFO, &info(&"n".repeat(STRING_BYTES_MAX + 1), &[])), ERR_TOO_BIG);
    assert_eq!(answer(&mut spoken, STARTTLS, &[]), ERR_POLICY);
    for len in [OPTION_BYTES_MAX + 1, 3 << 20] {
        assert_eq!(answer(&mut spoken, GO, &vec![1; len]), ERR_TOO_BIG);
        for number in [LIST, STRUCTURED_REPLY, STARTTLS] {
            assert_eq!(answer(&mut spoken, number, &vec![1; len]), ERR_INVALID);
        }
    }
    // More queries than are taken, and than the option's data holds.
    for (queries, len, refusal) in [
        (META_QUERIES_MAX + 1, 4 * (META_QUERIES_MAX as usize + 1), ERR_TOO_BIG),
        (META_QUERIES_MAX + 1, 4 * META_QUERIES_MAX as usize, ERR_INVALID),
        (u32::MAX, 0, ERR_INVALID),
    ] {
        let data = [&4_u32.to_be_bytes()[..], b"disk", &queries.to_be_bytes(), &vec![0; len]].concat();
        for number in [LIST_META_CONTEXT, SET_META_CONTEXT] {
            assert_eq!(answer(&mut spoken, number, &data), refusal);
        }
    }
    assert_eq!(answer(&mut spoken, 99, &vec![1; 1 << 20]), ERR_UNSUP);
    let (heard, ending) = spoken.last(&option(ABORT, &vec![1; 1 << 20]));
    assert_eq!(Heard(&heard).option_reply(ABORT), (ACK, &[][..]));
    assert_eq!(ending, Ending::Goodbye);
}

#[test]
fn options_are_bounded() {
    let mut spoken = greeted(TlsPolicy::Off);
    let (heard, ending) = spoken.last(&option(99, &[]).repeat(OPTIONS_MAX as usize + 1));
    assert!(matches!(ending, Ending::Violation(_)), "{ending:?}");
    let one = spoken_len(&option(99, &[]));
    assert_eq!(heard.len(), one * OPTIONS_MAX as usize);
}

fn spoken_len(said: &[u8]) -> usize {
    greeted(TlsPolicy::Off).ask(said).len()
}

#[test]
fn where_tls_is_required_nothing_is_said_before() {
    let mut spoken = greeted(TlsPolicy::Required);
    for number in [LIST, INFO, GO, STRUCTURED_REPLY, LIST_META_CONTEXT, SET_META_CONTEXT, 99] {
        for data in [&b"data"[..], &[1; OPTION_BYTES_MAX + 1]] {
            assert_eq!(answer(&mut spoken, number, data), ERR_TLS_REQD);
        }
    }
    let (heard, need) = spoken.say(&option(STARTTLS, &[]));
    assert_eq!((Heard(&heard).option_reply(STARTTLS), need), ((ACK, &[][..]), Need::StartTls));
    assert_eq!(spoken.0.advance(), Need::StartTls, "a client may take the reply when it likes");
    spoken.0.encrypted();
    assert_eq!(answer(&mut spoken, STARTTLS, &[]), ERR_INVALID);
    assert_eq!(answer(&mut spoken, GO, &info("none", &[])), ERR_UNKNOWN);
    let (_, ending) = greeted(TlsPolicy::Required).last(&option(EXPORT_NAME, b"disk"));
    assert_eq!(ending, Ending::Refused);
    let (_, ending) = greeted(TlsPolicy::Required).last(&option(ABORT, &[]));
    assert_eq!(ending, Ending::Goodbye);
}

#[test]
fn tls_forgets_what_came_before() {
    let mut spoken = greeted(TlsPolicy::Optional);
    assert_eq!(answer(&mut spoken, STRUCTURED_REPLY, &[]), ACK);
    spoken.ask(&option(SET_META_CONTEXT, &meta("disk", &["base:allocation"])));
    let (_, need) = spoken.say(&option(STARTTLS, &[]));
    assert_eq!(need, Need::StartTls);
    spoken.0.encrypted();
    let heard = spoken.ask(&option(GO, &info("disk", &[])));
    let export = [&[0, 0], &SIZE.to_be_bytes()[..], &WRITABLE.to_be_bytes()].concat();
    assert_eq!(Heard(&heard).option_reply(GO), (3, &export[..]), "without SEND_DF");
    // Bytes between STARTTLS and TLS may be an attacker's.
    let both = [option(STARTTLS, &[]), option(LIST, &[])].concat();
    let (_, ending) = greeted(TlsPolicy::Optional).last(&both);
    assert!(matches!(ending, Ending::Violation(_)), "{ending:?}");
}

#[test]
fn a_stopping_server_refuses_options() {
    let mut spoken = greeted(TlsPolicy::Off);
    spoken.0.stop();
    assert_eq!(answer(&mut spoken, LIST, &[]), ERR_SHUTDOWN);
    assert_eq!(answer(&mut spoken, GO, &info("disk", &[])), ERR_SHUTDOWN);
    let (_, ending) = spoken.last(&option(ABORT, &[]));
    assert_eq!(ending, Ending::Goodbye);
}

/// Exports with the longest names.
struct ManyExports;

const MANY: usize = 1100;

impl Exports for ManyExports {
    fn open(&self, _: &str) -> Option<Arc<dyn Export>> {
        None
    }

    fn names(&self) -> Vec<(String, String)> {
        let name = |i| format!("{i:0width$}", width = STRING_BYTES_MAX);
        (0..MANY).map(|i| (name(i), "d".repeat(STRING_BYTES_MAX))).collect()
    }
}

#[test]
fn replies_to_options_that_are_not_taken_hold_options_back() {
    let budget = Arc::new(Budget::new(LARGE_BUFFER_BYTES_MAX));
    let mut spoken = Spoken::with(Arc::new(ManyExports), TlsPolicy::Off, budget);
    spoken.ask(&flags(FIXED_NEWSTYLE | NO_ZEROES));
    let said = [option(LIST, &[]).repeat(3), option(99, &[])].concat();
    spoken.0.space()[..said.len()].copy_from_slice(&said);
    spoken.0.arrived(said.len());
    for _ in 0..3 {
        assert_eq!(spoken.0.advance(), Need::Room);
        let waiting = spoken.0.pending().len();
        let one = 20 + 4 + 2 * STRING_BYTES_MAX;
        assert!((1..HANDSHAKE_OUTPUT_BYTES_SOFT + one).contains(&waiting), "{waiting} bytes wait");
    }
    // Once they are taken, all is answered.
    let mut heard = spoken.hear();
    while spoken.0.advance() == Need::Room {
        heard.extend(spoken.hear());
    }
    heard.extend(spoken.hear());
    let mut heard = Heard(&heard);
    for _ in 0..3 {
        for i in 0..MANY {
            let (kind, data) = heard.option_reply(LIST);
            let name = &data[4..4 + STRING_BYTES_MAX];
            assert_eq!((kind, std::str::from_utf8(name).unwrap().parse()), (2, Ok(i)));
        }
        assert_eq!(heard.option_reply(LIST), (ACK, &[][..]));
    }
    assert_eq!(heard.option_reply(99).0, ERR_UNSUP);
    assert!(heard.0.is_empty());
}
