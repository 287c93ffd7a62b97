//! Text into statements, and the statements that are not queries.

mod braces;
mod command;
mod data;
mod keys;
mod mend;
mod parameters;
mod split;
mod table;
mod tuples;
mod with;
mod words;

pub use braces::quote_maps;
pub use command::{Command, Effect, parse};
pub use data::insert_with_data;
pub use mend::{Tail, mend, separate_values};
pub use parameters::{Parameters, fill};
pub use split::{Statement, split};
pub use table::{Column, CreateTable, CreateView, Rows};
pub use with::take_named_expressions;
pub use words::Name;
