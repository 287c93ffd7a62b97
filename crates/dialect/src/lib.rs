//! ClickHouse's dialect of SQL over DataFusion: statements and queries are parsed and rewritten, and functions and
//! plans mean what they mean in ClickHouse.
//!
//! The dialect knows no session, no catalogue and no dictionary. What a text cannot tell (its current database, what a
//! name stands for) it asks of a [`rewrite::Scope`]; functions and rules over dictionaries are registered beside its
//! own by crates that have them. A statement passes through it in this order:
//!
//! 1. [`statement::split`] splits a text, [`statement::parse`] recognises statements that are no queries, and
//!    [`statement::parse_query`] parses queries into syntax trees.
//! 2. [`rewrite::rewrite`] turns the tree into one that DataFusion can plan, and lists the names in it.
//! 3. A state made by [`plan::planning`], with the functions of [`functions::register`], plans it; [`plan::optimise`]
//!    gives the plan ClickHouse's meaning.
//! 4. [`text`] formats the values of an answer, [`types`] names their types, and [`Error`] reports what went wrong.

#![forbid(unsafe_code)]

#[cfg(test)]
mod alone_tests;
mod error;
mod full_name;
pub mod functions;
pub mod limits;
pub mod plan;
mod reword;
pub mod rewrite;
mod similar;
pub mod statement;
pub mod text;
pub mod types;

pub use error::{Error, Result};
pub use full_name::FullName;
pub use similar::similar;
