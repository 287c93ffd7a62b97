//! What one thread keeps between requests.

/// The ring of a thread, and room for the items it changes.
#[derive(Default)]
pub struct Lane {
    pub(super) io: granary_cache::Io,
    pub(super) old: Vec<u8>,
    pub(super) new: Vec<u8>,
    pub(super) value: Vec<u8>,
}
