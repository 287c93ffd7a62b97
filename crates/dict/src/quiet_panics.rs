//! Expected panics of libraries on senseless input: nothing is printed.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Calls `call`; `None`: it panicked, without a call of the program's panic hook.
pub fn caught_quietly<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_QUIET.try_with(Cell::get).unwrap_or_default() {
                usual(panic);
            }
        }));
    });
    let was_quiet = IS_QUIET.replace(true);
    let called = catch_unwind(AssertUnwindSafe(call));
    IS_QUIET.set(was_quiet);
    called.ok()
}
