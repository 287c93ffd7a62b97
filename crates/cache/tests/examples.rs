//! The examples run, those that measure with small arguments.

#[path = "../../log/tests/common/skip.rs"]
mod skip;

use granary_cache::limits::DEFAULT_MEMORY_FOLDER;
use std::path::Path;

macro_rules! examples {
    ($($(#[$cfg:meta])* $name:ident: $path:literal;)*) => {$(
        $(#[$cfg])*
        #[path = $path]
        mod $name;

        $(#[$cfg])*
        #[test]
        fn $name() {
            $name::main().unwrap();
        }
    )*};
}

macro_rules! measurements {
    ($($name:ident: $path:literal, $arguments:literal;)*) => {$(
        #[path = $path]
        #[allow(dead_code, reason = "the tests give the arguments")]
        mod $name;

        #[test]
        fn $name() {
            // Linux may be built without the former.
            if !Path::new("/proc/thread-self/schedstat").exists() || !Path::new(DEFAULT_MEMORY_FOLDER).exists() {
                return skip::skipped("the processor time of a thread, or a tmpfs");
            }
            $arguments.lines().for_each(|arguments| {
                $name::run(&arguments.split(' ').map(str::to_owned).collect::<Vec<String>>());
            });
        }
    )*};
}

examples! {
    memo: "../examples/memo.rs";
    batches: "../examples/batches.rs";
    #[cfg(feature = "serde")]
    typed: "../examples/typed.rs";
    #[cfg(feature = "async")]
    asynchronous: "../examples/asynchronous.rs";
}

measurements! {
    hits: "../examples/hits.rs", "1000 1000 100 2\n1000 1000 1 1";
    killed: "../examples/killed.rs", "10000 8 1 20000";
    reopens: "../examples/reopens.rs", "2000 4 16 1 all close 2 again\n2000 4 16 1 reuse kill 2 fill\n2000 4 16 1 all kill 1 look";
}
