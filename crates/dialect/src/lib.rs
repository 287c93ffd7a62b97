//! ClickHouse's dialect of SQL over DataFusion: statements and queries are read and rewritten, functions answer and plans
//! mean what ClickHouse means by them.
//!
//! The dialect knows no session, no catalogue and no dictionary. What a text cannot tell (which database it is in, what
//! a name stands for) it asks of a [`rewrite::Scope`]; functions and rules over dictionaries are registered beside its
//! own by whoever has some. A statement goes through it in this order:
//!
//! 1. [`statement::split`] cuts a text, [`statement::parse`] recognises what is no query, and
//!    [`statement::parse_query`] reads the syntax tree of what is one.
//! 2. [`rewrite::rewrite`] makes of the tree what DataFusion can plan, and says what it names.
//! 3. A state made by [`plan::planning`], with the functions of [`functions::register`], plans it;
//!    [`plan::optimise`] gives the plan ClickHouse's meaning.
//! 4. [`text`] spells the values of an answer, [`types`] names their types, and [`Error`] is what went wrong.

#![forbid(unsafe_code)]

#[cfg(test)]
mod alone_tests;
mod error;
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
pub use similar::similar;
