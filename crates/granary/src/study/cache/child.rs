//! The process of one measurement.

use clap::Args;
use granary_lab::store;

use crate::failure::Result;

/// Arguments of `granary study store-process`.
#[derive(Args)]
pub struct StoreProcess {
    /// What to load or to read, in JSON
    request: String,
}

impl StoreProcess {
    /// Carries out the request, and prints a line of JSON.
    pub fn run(&self) -> Result<()> {
        // As the server does.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
        say!("{}", store::serve(&self.request)?);
        Ok(())
    }
}
