//! `granary server`, asked over HTTP as curl, ClickHouse and its clients ask.

mod access;
mod answers;
mod bodies;
mod clients;
mod configured;
mod dictionary;
mod figures;
mod flags;
mod formats;
mod killed;
mod logs;
mod packaging;
mod pages;
mod program;
mod replacing;
mod requests;
#[path = "../../../cache/tests/common/room.rs"]
mod room;
mod served;
mod sessions;
#[path = "../../../log/tests/common/skip.rs"]
mod skip;
mod unlocked;
mod waiting;
