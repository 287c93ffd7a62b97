//! Work that may wait (for a source, the device, a slow hash) has threads of its own: those that serve connections
//! never wait.

use granary_sql::Error;

/// Does it there. A panic is an error like any other.
pub async fn may_wait<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| Err(Error::logical_error(panic.to_string())))
}
