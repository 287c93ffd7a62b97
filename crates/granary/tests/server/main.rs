//! `granary server`, asked over HTTP as curl, ClickHouse and its clients ask.

mod access;
mod answers;
mod bodies;
mod clients;
mod configured;
mod dictionary;
mod flags;
mod formats;
mod killed;
mod logs;
mod packaging;
mod pages;
mod replacing;
mod requests;
mod served;
mod sessions;
mod unlocked;
mod waiting;
