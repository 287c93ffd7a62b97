//! Notes of dictionaries that are being made or dropped: their files belong to nobody unless a statement owns them.
//!
//! A note lies beside the statements from before the first file is made, or removed, until after the last one. The next
//! start finds the notes that a kill left, and removes the files that they name.

use std::fs;
use std::path::{Path, PathBuf};

use granary_dialect::{Error, FullName, Result};
use granary_dict::{Definition, parse_create};

use super::{StatementFolder, UNFINISHED, beside, failed, put, remove, rename, sorted};
use crate::catalogue::DEFAULT_DATABASE;

/// Suffix of the folder of a dropped database: all files in it are notes.
pub(super) const DROPPED: &str = ".dropped";

/// Why a dictionary's files may belong to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is being made.
    Making,
    /// It was dropped, or is being replaced.
    Leaving,
}

/// A note: the definition of a dictionary that was being made or dropped.
pub struct Note {
    file: PathBuf,
    pub definition: Result<Definition>,
}

impl Step {
    const ALL: [Step; 2] = [Step::Making, Step::Leaving];

    fn suffix(self) -> &'static str {
        match self {
            Step::Making => ".making",
            Step::Leaving => DROPPED,
        }
    }
}

impl StatementFolder {
    /// Writes a note.
    pub fn note(&self, FullName { database, name }: &FullName, step: Step, sql: &str) -> Result<()> {
        self.create_database(database)?;
        put(&beside(&self.path(database, name), step.suffix()), sql)
    }

    /// Makes a dictionary's statement a note, in one step: it is dropped.
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

    /// Makes the statements of a database notes, in one step: it is dropped.
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

    /// The notes of a dictionary.
    pub fn notes_of(&self, FullName { database, name }: &FullName) -> Vec<Note> {
        let path = self.path(database, name);
        let files = Step::ALL.map(|step| beside(&path, step.suffix()));
        files.into_iter().filter(|file| file.exists()).map(Note::read).collect()
    }

    /// The notes of a database that was dropped.
    pub fn notes_of_dropped(&self, database: &str) -> Result<Vec<Note>> {
        notes_in(&beside(&self.folder(database), DROPPED))
    }

    /// All notes.
    pub fn notes(&self) -> Result<Vec<Note>> {
        let mut notes = Vec::new();
        for folder in sorted(&self.metadata)?.into_iter().filter(|folder| folder.is_dir()) {
            notes.extend(notes_in(&folder)?);
        }
        Ok(notes)
    }

    /// Forgets a note once its files are removed, or owned by another dictionary.
    pub fn forget(&self, note: &Note) -> Result<()> {
        remove(&note.file)?;
        if let Some(folder) = note.file.parent().filter(|folder| is_dropped(folder)) {
            // Fails while other notes are in it.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }
}

impl Note {
    fn read(file: PathBuf) -> Note {
        let read = || -> Result<Definition> {
            let sql = fs::read_to_string(&file).map_err(|e| failed("read", &file, &e))?;
            let mut definition = parse_create(&sql)?.definition;
            let database = definition.database.clone();
            definition.settle(database.as_deref().unwrap_or(DEFAULT_DATABASE));
            Ok(definition)
        };
        let definition = read().map_err(|error| error.at(&file));
        Note { file, definition }
    }
}

fn notes_in(folder: &Path) -> Result<Vec<Note>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let is_note = |file: &PathBuf| {
        let ends_so = |step: Step| file.to_string_lossy().ends_with(&format!(".sql{}", step.suffix()));
        is_dropped(folder) || Step::ALL.into_iter().any(ends_so)
    };
    let notes = sorted(folder)?.into_iter().filter(is_note).map(Note::read).collect();
    if is_dropped(folder) {
        // If no note is left.
        let _ = fs::remove_dir(folder);
    }
    Ok(notes)
}

fn is_dropped(folder: &Path) -> bool {
    folder.to_string_lossy().ends_with(DROPPED)
}

/// Whether a file in a database's folder is one that Granary makes there.
fn is_ours(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    [".sql", ".sql.detached", ".sql.making", ".sql.dropped", UNFINISHED].iter().any(|end| name.ends_with(end))
}
