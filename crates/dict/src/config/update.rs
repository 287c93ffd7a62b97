//! How entries are refreshed and the source is asked: settings that layouts share.

use super::node::{Node, Settings};
use crate::error::DictError;
use crate::limits;

/// How entries are refreshed from the source.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateSettings {
    /// How long an expired entry may still be shown; `None`: LIFETIME's MAX.
    pub strict_max_lifetime_seconds: Option<u64>,
    /// ALLOW_READ_EXPIRED_KEYS.
    pub expired: Expired,
    /// Requests that may wait for a source thread.
    pub max_update_queue_size: u64,
    /// How long a lookup waits for room in that queue.
    pub update_queue_push_timeout_ms: u64,
    /// How long a lookup waits for the source.
    pub query_wait_timeout_ms: u64,
    /// Source threads, each with a connection.
    pub max_threads_for_updates: u64,
    /// Keys in one request to the source (our own setting).
    pub max_keys_per_request: u64,
    /// Requests to the source that may begin within any one second; `None`: no limit (our own setting).
    pub max_requests_per_second: Option<u64>,
}

/// What a lookup does with expired entries (ALLOW_READ_EXPIRED_KEYS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// Waits for the source.
    Refetch,
    /// Shows them and refreshes them in the background.
    Read,
}

/// The parameters of layouts that keep entries.
pub(super) const EXPIRY_PARAMETERS: &[&str] = &["STRICT_MAX_LIFETIME_SECONDS", "ALLOW_READ_EXPIRED_KEYS"];
/// The parameters of every layout: how the source is asked.
pub(super) const SOURCE_PARAMETERS: &[&str] = &[
    "MAX_UPDATE_QUEUE_SIZE",
    "UPDATE_QUEUE_PUSH_TIMEOUT_MILLISECONDS",
    "QUERY_WAIT_TIMEOUT_MILLISECONDS",
    "MAX_THREADS_FOR_UPDATES",
    "MAX_KEYS_PER_REQUEST",
    "MAX_REQUESTS_PER_SECOND",
];

impl UpdateSettings {
    /// Reads the settings that the layout has; the others keep their defaults.
    pub(super) fn take(settings: &Settings<'_>) -> Result<Self, DictError> {
        let default = Self::default();
        let number = |name: &str, low: u64, high: u64, default: u64| -> Result<u64, DictError> {
            Ok(settings.number(name, low, high)?.unwrap_or(default))
        };
        let (expired, strict_max_lifetime_seconds) = match settings.allows(EXPIRY_PARAMETERS[0]) {
            false => (default.expired, default.strict_max_lifetime_seconds),
            true => (
                if settings.flag("ALLOW_READ_EXPIRED_KEYS")? { Expired::Read } else { Expired::Refetch },
                settings.number("STRICT_MAX_LIFETIME_SECONDS", 0, limits::LIFETIME_SECONDS_MAX)?,
            ),
        };
        Ok(Self {
            strict_max_lifetime_seconds,
            expired,
            max_update_queue_size: number(
                "MAX_UPDATE_QUEUE_SIZE",
                1,
                limits::QUEUE_MAX,
                default.max_update_queue_size,
            )?,
            update_queue_push_timeout_ms: number(
                "UPDATE_QUEUE_PUSH_TIMEOUT_MILLISECONDS",
                10,
                limits::TIMEOUT_MS_MAX,
                default.update_queue_push_timeout_ms,
            )?,
            query_wait_timeout_ms: number(
                "QUERY_WAIT_TIMEOUT_MILLISECONDS",
                1,
                limits::TIMEOUT_MS_MAX,
                default.query_wait_timeout_ms,
            )?,
            max_threads_for_updates: number(
                "MAX_THREADS_FOR_UPDATES",
                1,
                limits::SOURCE_THREADS_MAX,
                default.max_threads_for_updates,
            )?,
            max_keys_per_request: number(
                "MAX_KEYS_PER_REQUEST",
                1,
                limits::KEYS_PER_REQUEST_MAX as u64,
                default.max_keys_per_request,
            )?,
            max_requests_per_second: settings.number(
                "MAX_REQUESTS_PER_SECOND",
                1,
                limits::REQUESTS_PER_SECOND_MAX,
            )?,
        })
    }

    /// Adds the settings that differ from their defaults to `nodes`.
    pub(super) fn put(&self, nodes: &mut Vec<Node>) {
        let default = Self::default();
        let mut put = |name: &str, value: Option<u64>| {
            nodes.extend(value.map(|value| Node::text(name, value.to_string())));
        };
        let unless = |value: u64, default: u64| (value != default).then_some(value);
        put("STRICT_MAX_LIFETIME_SECONDS", self.strict_max_lifetime_seconds);
        put("ALLOW_READ_EXPIRED_KEYS", (self.expired == Expired::Read).then_some(1));
        put("MAX_UPDATE_QUEUE_SIZE", unless(self.max_update_queue_size, default.max_update_queue_size));
        put(
            "UPDATE_QUEUE_PUSH_TIMEOUT_MILLISECONDS",
            unless(self.update_queue_push_timeout_ms, default.update_queue_push_timeout_ms),
        );
        put(
            "QUERY_WAIT_TIMEOUT_MILLISECONDS",
            unless(self.query_wait_timeout_ms, default.query_wait_timeout_ms),
        );
        put("MAX_THREADS_FOR_UPDATES", unless(self.max_threads_for_updates, default.max_threads_for_updates));
        put("MAX_KEYS_PER_REQUEST", unless(self.max_keys_per_request, default.max_keys_per_request));
        put("MAX_REQUESTS_PER_SECOND", self.max_requests_per_second);
    }
}

impl Default for UpdateSettings {
    fn default() -> Self {
        Self {
            strict_max_lifetime_seconds: None,
            expired: Expired::Refetch,
            max_update_queue_size: 100_000,
            update_queue_push_timeout_ms: 10,
            query_wait_timeout_ms: 60_000,
            max_threads_for_updates: 4,
            max_keys_per_request: limits::KEYS_PER_REQUEST_MAX as u64,
            max_requests_per_second: None,
        }
    }
}
