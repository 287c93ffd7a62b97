//! For tests of this crate and of those that build on it: no part of the API.

use crate::cache::Cache;

/// Stops the cache as a kill would: write buffers are lost, nothing is marked as clean.
pub fn abandon(cache: Cache) {
    cache.abandon();
}

/// Checks every structure against itself. Other threads must be at rest.
pub fn validate(cache: &Cache) {
    cache.validate();
}
