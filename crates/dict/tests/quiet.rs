//! Senseless input from outside is an error, and nothing is printed about it. A program of its own: it looks at every
//! panic.

#[path = "../../log/tests/common/mutations.rs"]
mod mutations;

use granary_dict::fuzzing;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

static REPORTED: AtomicU64 = AtomicU64::new(0);

#[test]
fn streams_that_make_no_sense_report_no_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        REPORTED.fetch_add(1, Ordering::SeqCst);
        usual(panic);
    }));
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/keys");
    mutations::smoke(&corpus, 20_000, fuzzing::keys);
    assert_eq!(REPORTED.load(Ordering::SeqCst), 0);
    // None of the mutated streams need make the library panic.
    assert_eq!(granary_dict::caught_quietly(|| 7), Some(7));
    assert_eq!(granary_dict::caught_quietly(|| panic!("on purpose")), None::<()>);
    assert_eq!(REPORTED.load(Ordering::SeqCst), 0);
    std::panic::catch_unwind(|| panic!("on purpose")).unwrap_err();
    assert_eq!(REPORTED.load(Ordering::SeqCst), 1, "other panics are reported as before");
}
