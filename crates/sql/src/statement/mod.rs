//! Text into statements, and the statements that are not queries.

mod braces;
mod collection;
mod command;
mod data;
mod depth;
mod joins;
mod keys;
mod mend;
mod parameters;
mod show;
mod size;
mod spelled;
mod split;
mod table;
mod tuples;
mod view;
mod with;
mod words;

pub use braces::quote_maps;
pub use collection::CollectionChange;
pub use command::{Command, Dropped, Effect, parse, parse_collection};
pub use data::insert_with_data;
pub use depth::check_depth;
pub use mend::{Tail, data_type, mend, separate_values};
pub use parameters::{Parameters, fill};
pub use show::{Listed, ShowNames, Sought};
pub use size::check_lists;
pub use spelled::spelled;
pub use split::{Statement, split};
pub use table::{Column, CreateTable, Engine, Rows};
pub use view::{CreateMaterializedView, CreateView};
pub use with::take_named_expressions;
pub use words::{Name, quoted};
