//! Text into statements, and the statements that are not queries.

mod command;
mod split;
mod words;

pub use command::{Command, parse};
pub use split::{Statement, split};
pub use words::Name;
