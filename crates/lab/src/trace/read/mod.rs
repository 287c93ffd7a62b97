//! The formats of recorded traces, one a file: a function that makes requests of a line or a record.

pub(super) mod cache2k;
pub(super) mod cloud_physics;
pub(super) mod key_value;
pub(super) mod oracle_general;
pub(super) mod twitter;
pub(super) mod web;
