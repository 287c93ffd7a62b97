//! The parts that the tests of this crate share.

#![allow(dead_code, reason = "each test uses its part")]

pub mod bytes;
pub mod fuse;
#[path = "../../../log/tests/common/gated.rs"]
pub mod gated;
#[path = "../../../log/tests/common/golden.rs"]
pub mod golden;
pub mod late;
pub mod logged;
pub mod programs;
#[path = "../../../log/tests/common/random.rs"]
pub mod random;
pub mod serving;
#[path = "../../../log/tests/common/skip.rs"]
pub mod skip;
pub mod spoken;
