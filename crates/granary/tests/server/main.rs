//! `granary server`, asked over HTTP as curl, ClickHouse and its clients ask.

mod access;
mod clients;
mod dictionary;
mod requests;
mod served;
