//! Intents of dictionaries that are being made or dropped: their files belong to nobody unless a statement owns them.
//!
//! An intent lies beside the statements from before the first file is made, or removed, until after the last one. The
//! next start finds the intents that a kill left, and removes the files that they name.

use std::fs;
use std::path::{Path, PathBuf};

use granary_dialect::{Error, FullName, Result};
use granary_dict::{Definition, parse_create};

use super::{StatementFolder, UNFINISHED, beside, failed, put, remove, rename, sorted};
use crate::catalogue::DEFAULT_DATABASE;

/// Suffix of the folder of a dropped database: all files in it are intents.
pub(super) const DROPPED: &str = ".dropped";

/// Why a dictionary's files may belong to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentKind {
    /// It is being made.
    Create,
    /// It was dropped, or is being replaced.
    Remove,
}

/// An intent: the definition of a dictionary that was being made or dropped.
pub struct Intent {
    file: PathBuf,
    pub definition: Result<Definition>,
}

impl IntentKind {
    const ALL: [IntentKind; 2] = [IntentKind::Create, IntentKind::Remove];

    fn suffix(self) -> &'static str {
        match self {
            IntentKind::Create => ".making",
            IntentKind::Remove => DROPPED,
        }
    }
}

impl StatementFolder {
    /// Writes an intent.
    pub fn record_intent(
        &self,
        FullName { database, name }: &FullName,
        kind: IntentKind,
        sql: &str,
    ) -> Result<()> {
        self.create_database(database)?;
        put(&beside(&self.path(database, name), kind.suffix()), sql)
    }

    /// Makes a dictionary's statement an intent, in one step: it is dropped.
    ///
    /// # Errors
    /// The dictionary stays.
    pub fn drop_dictionary(&self, FullName { database, name }: &FullName) -> Result<()> {
        let path = self.path(database, name);
        if !path.exists() {
            return Ok(());
        }
        rename(&path, &beside(&path, DROPPED))
    }

    /// Makes the statements of a database intents, in one step: it is dropped.
    ///
    /// # Errors
    /// The database stays; files in its folder that are not Granary's are one such error.
    pub fn drop_database(&self, name: &str) -> Result<()> {
        let folder = self.folder(name);
        if !folder.exists() {
            return Ok(());
        }
        if let Some(other) = sorted(&folder)?.iter().find(|file| !is_ours(file)) {
            return Err(Error::cannot_unlink(format!(
                "Cannot remove {}: {} is no statement",
                folder.display(),
                other.display()
            )));
        }
        rename(&folder, &beside(&folder, DROPPED))
    }

    /// The intents of a dictionary.
    pub fn intents_of(&self, FullName { database, name }: &FullName) -> Vec<Intent> {
        let path = self.path(database, name);
        let files = IntentKind::ALL.map(|kind| beside(&path, kind.suffix()));
        files.into_iter().filter(|file| file.exists()).map(Intent::read).collect()
    }

    /// The intents of a database that was dropped.
    pub fn intents_of_dropped(&self, database: &str) -> Result<Vec<Intent>> {
        intents_in(&beside(&self.folder(database), DROPPED))
    }

    /// All intents.
    pub fn intents(&self) -> Result<Vec<Intent>> {
        let mut intents = Vec::new();
        for folder in sorted(&self.metadata)?.into_iter().filter(|folder| folder.is_dir()) {
            intents.extend(intents_in(&folder)?);
        }
        Ok(intents)
    }

    /// Forgets an intent once its files are removed, or owned by another dictionary.
    pub fn forget(&self, intent: &Intent) -> Result<()> {
        remove(&intent.file)?;
        if let Some(folder) = intent.file.parent().filter(|folder| is_dropped(folder)) {
            // Fails while other intents are in it.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }
}

impl Intent {
    fn read(file: PathBuf) -> Intent {
        let read = || -> Result<Definition> {
            let sql = fs::read_to_string(&file).map_err(|e| failed("read", &file, &e))?;
            let mut definition = parse_create(&sql)?.definition;
            let database = definition.database.clone();
            definition.set_default_database(database.as_deref().unwrap_or(DEFAULT_DATABASE));
            Ok(definition)
        };
        let definition = read().map_err(|error| error.at(&file));
        Intent { file, definition }
    }
}

fn intents_in(folder: &Path) -> Result<Vec<Intent>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let is_intent = |file: &PathBuf| {
        let ends_so = |kind: IntentKind| file.to_string_lossy().ends_with(&format!(".sql{}", kind.suffix()));
        is_dropped(folder) || IntentKind::ALL.into_iter().any(ends_so)
    };
    let intents = sorted(folder)?.into_iter().filter(is_intent).map(Intent::read).collect();
    if is_dropped(folder) {
        // If no intent is left.
        let _ = fs::remove_dir(folder);
    }
    Ok(intents)
}

fn is_dropped(folder: &Path) -> bool {
    folder.to_string_lossy().ends_with(DROPPED)
}

/// Whether a file in a database's folder is one that Granary makes there.
fn is_ours(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    [".sql", ".sql.detached", ".sql.making", ".sql.dropped", UNFINISHED].iter().any(|end| name.ends_with(end))
}
