//! The formats of recorded traces, a module each: a function that turns a line or a record into requests.

pub(super) mod cache2k;
pub(super) mod cloud_physics;
pub(super) mod key_value;
pub(super) mod oracle_general;
pub(super) mod twitter;
pub(super) mod web;
