//! The examples run.

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

examples! {
    memo: "../examples/memo.rs";
    batches: "../examples/batches.rs";
    #[cfg(feature = "serde")]
    typed: "../examples/typed.rs";
    #[cfg(feature = "async")]
    asynchronous: "../examples/asynchronous.rs";
}
