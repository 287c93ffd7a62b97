//! Text into statements, and the statements that are not queries.

mod command;
mod mend;
mod split;
mod tuples;
mod words;

pub use command::{Command, parse};
pub use mend::{Tail, mend};
pub use split::{Statement, split};
pub use words::Name;
