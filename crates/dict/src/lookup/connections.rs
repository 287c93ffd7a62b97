//! How connections to the source are made, which SYSTEM RELOAD DICTIONARY renews.

use crate::error::DictError;
use crate::source::{Source, SourceFactory};
use std::sync::{PoisonError, RwLock};

/// Makes a factory, with all that connections share: the processes of a pool, a client of several servers.
pub(crate) type Remake = Box<dyn Fn() -> Result<SourceFactory, DictError> + Send + Sync>;

/// Makes connections.
pub(crate) struct Connections {
    factory: RwLock<SourceFactory>,
    /// `None`: the user supplied the factory.
    remake: Option<Remake>,
}

impl Connections {
    pub fn new(factory: SourceFactory, remake: Option<Remake>) -> Connections {
        Connections { factory: RwLock::new(factory), remake }
    }

    /// A new connection.
    ///
    /// # Errors
    /// Why no connection could be made.
    pub fn connect(&self) -> Result<Box<dyn Source>, DictError> {
        // Cloned, so that others connect meanwhile.
        let factory = self.factory.read().unwrap_or_else(PoisonError::into_inner).clone();
        factory()
    }

    /// Later connections share nothing with the existing ones.
    ///
    /// # Errors
    /// What the environment no longer allows; nothing has changed then.
    pub fn renew(&self) -> Result<(), DictError> {
        let Some(remake) = &self.remake else { return Ok(()) };
        let factory = remake()?;
        let before =
            std::mem::replace(&mut *self.factory.write().unwrap_or_else(PoisonError::into_inner), factory);
        // Dropped without the lock, as this may end what the old connections shared.
        drop(before);
        Ok(())
    }
}
