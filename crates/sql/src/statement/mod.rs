//! Text into statements, and the statements that are not queries.

mod command;
mod mend;
mod split;
mod tuples;
mod with;
mod words;

pub use command::{Command, parse};
pub use mend::{Tail, mend};
pub use split::{Statement, split};
pub use with::take_named_expressions;
pub use words::Name;
