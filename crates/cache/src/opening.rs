//! The files of a cache on flash, and the order in which they are opened: dictionaries and RAM tiers before the log,
//! whose state file then tells which of their content is valid.

use crate::codec::{self, Compression, OwnCodecs};
use crate::framing::Records;
use crate::memory::shared::Claims;
use crate::options::Options;
use granary_log::{OpenError, Opened};
use std::io;
use std::path::PathBuf;

/// The files that a log's options mention, opened before the log.
pub(crate) struct Opening<'a> {
    options: &'a Options,
    log_options: granary_log::Options,
    dictionaries: PathBuf,
    /// The file of dictionaries was not there before, nor was any state that could name it.
    made_dictionaries: bool,
    claims: Claims,
}

impl<'a> Opening<'a> {
    /// Makes the file of dictionaries, if there is to be one, and claims the files of RAM tiers.
    ///
    /// # Errors
    /// Sizes that do not fit together, another's file under a name of the cache's, or errors of the operating system.
    pub fn new(options: &'a Options) -> Result<Self, OpenError> {
        let flash = options.flash.as_ref().expect("a cache on flash");
        let mut log_options = flash.log_options()?;
        let dictionaries = codec::path_of(&log_options.state_path);
        let error = |source| OpenError::State { path: dictionaries.clone(), source };
        let compresses = options.compression != Compression::None;
        if compresses && codec::is_foreign(&dictionaries).map_err(error)? {
            return Err(OpenError::Foreign { path: dictionaries });
        }
        let (number, is_made) = codec::file_number(&dictionaries, options.compression).map_err(error)?;
        // A failed open may have started some of the partitions, whose states name the file by then.
        let mut states = granary_log::state_files(&log_options.state_path, flash.partitions).into_iter();
        let made_dictionaries = is_made && states.all(|file| std::fs::symlink_metadata(file).is_err());
        log_options.depends_on = number;
        let claims = options.claims(&log_options)?;
        log_options.shared_memory = claims.shared_memory();
        Ok(Self { options, log_options, dictionaries, made_dictionaries, claims })
    }

    /// Opens the logs by `open`, and with their lock held the dictionaries.
    ///
    /// # Errors
    /// The errors of `open`; the dictionaries cannot be read.
    pub fn open_logs(
        self,
        open: impl FnOnce(&granary_log::Options) -> Result<Vec<Opened<Records>>, OpenError>,
    ) -> Result<(Vec<Opened<Records>>, Claims, OwnCodecs), OpenError> {
        let logs = match open(&self.log_options) {
            Ok(logs) => logs,
            Err(error) => {
                self.abandon(&error);
                return Err(error);
            }
        };
        let codecs = self.open_dictionaries();
        let codecs = codecs.map_err(|source| OpenError::State { path: self.dictionaries, source })?;
        Ok((logs, self.claims, codecs))
    }

    fn open_dictionaries(&self) -> io::Result<OwnCodecs> {
        let Options { compression, applications, .. } = self.options;
        OwnCodecs::open(*compression, applications, &self.dictionaries, self.log_options.depends_on)
    }

    /// Leaves the files as they were, as the log was not opened.
    fn abandon(self, error: &OpenError) {
        self.claims.abandon();
        // A process that has the cache open may have taken the file for its own.
        if self.made_dictionaries && !matches!(error, OpenError::InUse { .. }) {
            let _ = std::fs::remove_file(&self.dictionaries);
        }
    }
}
