//! The catalogue's folder: `metadata/<database>/<dictionary>.sql` and `named_collections/<name>.sql` hold CREATE
//! statements, passwords and all, so only the owner may read them. Each file is replaced in one step.
//!
//! Beside them lie `.sql.detached`, the statement of a dictionary that was detached for good, and [intents].

mod intents;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use granary_dialect::statement::{parse_collection, split};
use granary_dialect::{Error, FullName, Result};
use granary_dict::{Collection, Definition, UnpublishedFile, create_folders, parse_create};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::folder_lock::FolderLock;
use crate::limits::FILE_NAME_BYTES_MAX;
use intents::DROPPED;
pub use intents::{Intent, IntentKind};

/// Suffix of a file that is being written.
const UNFINISHED: &str = ".tmp";
/// The catalogue's folder, locked for this process.
pub struct StatementFolder {
    metadata: PathBuf,
    collections: PathBuf,
    /// Held for as long as the session lives.
    _lock: FolderLock,
}

/// What was found in the folder: a database, or a dictionary in one.
pub struct StoredStatement {
    pub database: String,
    pub dictionary: Option<String>,
    pub definition: Result<Definition>,
}

impl StatementFolder {
    /// Opens the folder that `lock` locks.
    pub fn open(folder: &Path, lock: FolderLock) -> Result<StatementFolder> {
        let metadata = folder.join("metadata");
        let collections = folder.join("named_collections");
        for path in [&metadata, &collections, &folder.join("user_files")] {
            create_folders(path).map_err(|e| failed("create folder", path, &e))?;
        }
        let store = StatementFolder { metadata, collections, _lock: lock };
        store.remove_unfinished()?;
        Ok(store)
    }

    /// Reads all statements. One that cannot be read is returned as an error in its place.
    pub fn load(&self) -> Result<Vec<StoredStatement>> {
        let mut found = Vec::new();
        for (folder, database) in self.folders()? {
            let nothing = Err(Error::logical_error("a database has no definition"));
            found.push(StoredStatement { database: database.clone(), dictionary: None, definition: nothing });
            for file in sorted(&folder)? {
                let Some(name) = name_of(&file, ".sql") else { continue };
                let definition = read_definition(&file, &database, &name);
                found.push(StoredStatement {
                    database: database.clone(),
                    dictionary: Some(name),
                    definition,
                });
            }
        }
        Ok(found)
    }

    /// Reads the statements of dictionaries that are not known: detached, for good or until the next start.
    pub fn detached(&self, is_known: impl Fn(&str, &str) -> bool) -> Result<Vec<(FullName, Definition)>> {
        let mut found = Vec::new();
        for (folder, database) in self.folders()? {
            for file in sorted(&folder)? {
                let attached = name_of(&file, ".sql").filter(|name| !is_known(&database, name));
                let Some(name) = attached.or_else(|| name_of(&file, ".sql.detached")) else { continue };
                if let Ok(definition) = read_definition(&file, &database, &name) {
                    found.push((FullName::new(&database, name), definition));
                }
            }
        }
        Ok(found)
    }

    /// The folders of the databases.
    fn folders(&self) -> Result<Vec<(PathBuf, String)>> {
        let named = |folder: PathBuf| name_of(&folder, "").map(|database| (folder, database));
        let folders = sorted(&self.metadata)?.into_iter().filter(|folder| folder.is_dir());
        Ok(folders.filter_map(named).collect())
    }

    /// Removes the partly written statements that a kill left.
    fn remove_unfinished(&self) -> Result<()> {
        let mut folders = vec![self.collections.clone()];
        folders.extend(sorted(&self.metadata)?.into_iter().filter(|folder| folder.is_dir()));
        for folder in folders {
            let files = sorted(&folder)?.into_iter();
            files
                .filter(|file| file.to_string_lossy().ends_with(UNFINISHED))
                .try_for_each(|file| remove(&file))?;
        }
        Ok(())
    }

    /// Writes a dictionary's statement.
    pub fn put(&self, database: &str, dictionary: &str, sql: &str) -> Result<()> {
        self.create_database(database)?;
        put(&self.path(database, dictionary), sql)
    }

    /// Moves a statement in one step: a kill leaves it in one of the two places.
    ///
    /// # Errors
    /// The statement stays where it is.
    pub fn rename(&self, from: &FullName, to: &FullName) -> Result<()> {
        let paths = [self.path(&from.database, &from.name), self.path(&to.database, &to.name)];
        if !paths[0].exists() {
            // A dictionary that a configuration file describes, and that could not be made.
            return Ok(());
        }
        self.create_database(&to.database)?;
        rename(&paths[0], &paths[1])
    }

    /// Swaps two statements in one step. If one name has no statement (a table in RAM), the other's statement moves
    /// there.
    ///
    /// # Errors
    /// Both statements stay where they are.
    pub fn exchange(&self, one: &FullName, other: &FullName) -> Result<()> {
        let paths = [self.path(&one.database, &one.name), self.path(&other.database, &other.name)];
        match [paths[0].exists(), paths[1].exists()] {
            [true, true] => {
                let exchange = |one: &Path, other: &Path| {
                    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
                };
                move_durably("exchange", [&paths[0], &paths[1]], exchange, sync_folders)
            }
            [true, false] => self.rename(one, other),
            [false, _] => self.rename(other, one),
        }
    }

    /// Reads the named collections.
    pub fn load_collections(&self) -> Result<Vec<(String, Collection)>> {
        let report = |error: Error| tracing::error!(%error, "a named collection is left out");
        let read = |file: PathBuf| {
            let sql = fs::read_to_string(&file).map_err(|e| failed("read", &file, &e))?;
            let statement = split(&sql)?.pop().ok_or_else(|| Error::syntax_error("It is empty"));
            statement.and_then(|statement| parse_collection(&statement)).map_err(|e| e.at(&file))
        };
        let files = sorted(&self.collections)?.into_iter();
        let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "sql"));
        Ok(files.filter_map(|file| read(file).map_err(report).ok()).collect())
    }

    /// Writes the statement of a named collection.
    pub fn put_collection(&self, name: &str, sql: &str) -> Result<()> {
        put(&self.collection_path(name), sql)
    }

    /// Forgets a named collection, if there is one.
    pub fn remove_collection(&self, name: &str) -> Result<()> {
        let path = self.collection_path(name);
        let before = Before::of(&path);
        remove(&path)?;
        // A power loss must not bring its passwords back, either.
        sync_folders([&path, &path]).inspect_err(|_| before.restore(&path))
    }

    /// Keeps a dictionary's statement from being read at the next start, except by [`reattach`](Self::reattach).
    ///
    /// # Errors
    /// The statement stays where it is, as in [`reattach`](Self::reattach).
    pub fn detach(&self, FullName { database, name }: &FullName) -> Result<()> {
        let path = self.path(database, name);
        if !path.exists() {
            // A dictionary that a configuration file describes, and that could not be made.
            return Ok(());
        }
        rename(&path, &aside(&path))
    }

    /// Whether there is a statement of a dictionary, set aside or not.
    pub fn has(&self, FullName { database, name }: &FullName) -> bool {
        let path = self.path(database, name);
        path.exists() || aside(&path).exists()
    }

    /// The definition of a detached dictionary; `None`: none has this name.
    pub fn read_detached(&self, FullName { database, name }: &FullName) -> Result<Option<Definition>> {
        let path = self.path(database, name);
        let found = [aside(&path), path].into_iter().find(|path| path.exists());
        found.map(|path| read_definition(&path, database, name)).transpose()
    }

    /// Undoes [`detach`](Self::detach): the next start reads the statement again.
    pub fn reattach(&self, FullName { database, name }: &FullName) -> Result<()> {
        let path = self.path(database, name);
        let aside = aside(&path);
        if !aside.exists() {
            return Ok(());
        }
        rename(&aside, &path)
    }

    /// Refuses a name that is too long for its files: the statement's, or the intent's when the dictionary is dropped.
    ///
    /// # Errors
    /// ARGUMENT_OUT_OF_BOUND.
    pub fn check_name(&self, FullName { database, name }: &FullName) -> Result<()> {
        let longest = format!("{}.sql{DROPPED}{UNFINISHED}", escape(name));
        check_length(&longest, || format!("dictionary {database}.{name}"))
    }

    /// Makes a database's folder.
    ///
    /// # Errors
    /// ARGUMENT_OUT_OF_BOUND for a name that is too long for the folder, or for the folder's name when it is dropped.
    pub fn create_database(&self, name: &str) -> Result<()> {
        let folder = self.folder(name);
        if folder.is_dir() {
            return Ok(());
        }
        check_length(&format!("{}{DROPPED}", escape(name)), || format!("database {name}"))?;
        create_folders(&folder).map_err(|e| failed("create folder", &folder, &e))?;
        sync_folders([&folder, &folder]).inspect_err(|_| drop(fs::remove_dir(&folder)))
    }

    fn collection_path(&self, name: &str) -> PathBuf {
        self.collections.join(format!("{}.sql", escape(name)))
    }

    fn folder(&self, database: &str) -> PathBuf {
        self.metadata.join(escape(database))
    }

    fn path(&self, database: &str, dictionary: &str) -> PathBuf {
        self.folder(database).join(format!("{}.sql", escape(dictionary)))
    }
}

fn check_length(file_name: &str, noun: impl Fn() -> String) -> Result<()> {
    match file_name.len() {
        length if length > FILE_NAME_BYTES_MAX => Err(Error::argument_out_of_bound(format!(
            "The name of {} is too long: a file of it would have a name of {length} bytes, of {FILE_NAME_BYTES_MAX} at \
             most, where all but letters of ASCII, digits and _ take three",
            noun()
        ))),
        _ => Ok(()),
    }
}

/// Writes a statement, which may contain a password, in one step.
fn put(path: &Path, sql: &str) -> Result<()> {
    let before = Before::of(path);
    write(path, format!("{sql}\n").as_bytes()).map_err(|e| {
        before.restore(path);
        failed("write", path, &e)
    })
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let write = |file: &mut File| file.write_all(content);
    UnpublishedFile::write(beside(path, UNFINISHED), 0o600, write)?.publish_as(path)
}

/// What a file held before a change that may fail when it is done but not synced. It is undone then: the next start has
/// to find what this process goes on with.
struct Before(io::Result<Option<Vec<u8>>>);

impl Before {
    fn of(path: &Path) -> Before {
        Before(match fs::read(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        })
    }

    fn restore(self, path: &Path) {
        let holds = |content: &Option<Vec<u8>>| matches!(&Before::of(path).0, Ok(now) if now == content);
        let restored = self.0.and_then(|before| {
            let undone = match &before {
                before if holds(before) => return Ok(()),
                Some(content) => write(path, content),
                None => fs::remove_file(path),
            };
            // Whether that could be synced does not matter: nor could the change.
            if holds(&before) { Ok(()) } else { undone }
        });
        if let Err(error) = restored {
            let file = path.display();
            tracing::error!(%file, %error, "a change that failed may be there after the next start");
        }
    }
}

/// Renames a file, durably.
///
/// # Errors
/// The file keeps its name.
fn rename(from: &Path, to: &Path) -> Result<()> {
    move_durably("rename", [from, to], |from, to| fs::rename(from, to), sync_folders)
}

/// Moves a file, or exchanges two, and moves them back if that cannot be synced: the next start has to find what this
/// process goes on with.
fn move_durably(
    what: &str,
    [from, to]: [&Path; 2],
    step: impl Fn(&Path, &Path) -> io::Result<()>,
    sync: impl FnOnce([&Path; 2]) -> Result<()>,
) -> Result<()> {
    step(from, to).map_err(|e| failed(what, from, &e))?;
    sync([from, to]).inspect_err(|_| {
        if let Err(error) = step(to, from) {
            let (from, to) = (from.display(), to.display());
            tracing::error!(%from, %to, %error, "a statement was moved, and cannot be moved back");
        }
    })
}

/// Syncs the folders of these files, so that their names survive a power loss.
fn sync_folders(files: [&Path; 2]) -> Result<()> {
    let folders: BTreeSet<&Path> = files.into_iter().filter_map(Path::parent).collect();
    let sync = |folder: &Path| File::open(folder)?.sync_all();
    folders.into_iter().try_for_each(|folder| sync(folder).map_err(|e| failed("sync folder", folder, &e)))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::cannot_unlink(format!("Cannot remove {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

fn aside(path: &Path) -> PathBuf {
    beside(path, ".detached")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The name whose statement this file holds; escaped names contain no dot.
fn name_of(file: &Path, suffix: &str) -> Option<String> {
    let name = file.file_name()?.to_str()?.strip_suffix(suffix)?;
    (!name.contains('.')).then(|| unescape(name))?
}

pub(super) fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::cannot_open_file(format!("Cannot {what} {}: {error}", path.display()))
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|e| failed("read folder", folder, &e))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    Ok(paths)
}

fn read_definition(file: &Path, database: &str, name: &str) -> Result<Definition> {
    let sql = fs::read_to_string(file).map_err(|e| failed("read", file, &e))?;
    let mut definition = parse_create(&sql)?.definition;
    // The file's place decides the name, as it does for lookups.
    definition.database = Some(database.to_owned());
    definition.name = name.to_owned();
    definition.set_default_database(database);
    Ok(definition)
}

/// A name as a file's name, in ClickHouse's way: letters, digits and `_` stay, other bytes become `%XX`.
fn escape(name: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_');
    utf8_percent_encode(name, ESCAPED).to_string()
}

fn unescape(file_name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(file_name.len());
    let mut rest = file_name.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_file_system() {
        for name in ["plain_1", "../../etc/passwd", "имя", "a.b", "%41", ""] {
            let escaped = escape(name);
            assert!(!escaped.contains(['/', '.']), "{escaped}");
            assert_eq!(unescape(&escaped).as_deref(), Some(name));
        }
    }

    fn open(folder: &Path) -> StatementFolder {
        StatementFolder::open(folder, FolderLock::take(folder).unwrap()).unwrap()
    }

    #[test]
    fn statements_are_private_and_come_back() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        store.put("default", "broken", "no statement").unwrap();
        let path = folder.path().join("metadata/default/broken.sql");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let kept = store.load().unwrap();
        assert_eq!(kept.len(), 2);
        assert_eq!(kept[1].dictionary.as_deref(), Some("broken"));
        assert!(kept[1].definition.is_err());
    }

    #[test]
    fn what_can_be_made_can_be_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        // The longest file names, and names that are refused.
        for (database, name) in [("d".repeat(247), "n".repeat(239)), ("é".repeat(41), "é".repeat(39))] {
            let full_name = FullName::new(&database, &name);
            store.check_name(&full_name).unwrap();
            store.put(&database, &name, "x").unwrap();
            store.record_intent(&full_name, IntentKind::Create, "x").unwrap();
            store.record_intent(&full_name, IntentKind::Remove, "x").unwrap();
            store.detach(&full_name).unwrap();
            store.reattach(&full_name).unwrap();
            store.drop_dictionary(&full_name).unwrap();
            store.drop_database(&database).unwrap();
            let (database, name) = (database + "dd", name + "nnnnnn");
            assert_eq!(store.put(&database, "n", "x").unwrap_err().code, 69);
            assert_eq!(store.check_name(&FullName::new("d", name)).unwrap_err().code, 69);
            assert!(!store.folder(&database).exists());
        }
    }

    #[test]
    fn what_cannot_be_synced_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        let fails = |_: [&Path; 2]| Err(Error::cannot_open_file("Cannot sync"));
        fs::write(&one, "1").unwrap();
        move_durably("rename", [&one, &other], |from, to| fs::rename(from, to), fails).unwrap_err();
        assert_eq!(fs::read_to_string(&one).unwrap(), "1");
        assert!(!other.exists());
        fs::write(&other, "2").unwrap();
        let exchange =
            |one: &Path, other: &Path| Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?);
        move_durably("exchange", [&one, &other], exchange, fails).unwrap_err();
        assert_eq!([&one, &other].map(|file| fs::read_to_string(file).unwrap()), ["1", "2"]);
        // Of a file that was replaced, made or removed.
        let before = Before::of(&one);
        write(&one, b"3").unwrap();
        before.restore(&one);
        assert_eq!(fs::read_to_string(&one).unwrap(), "1");
        let before = Before::of(&one);
        fs::remove_file(&one).unwrap();
        before.restore(&one);
        assert_eq!(fs::read_to_string(&one).unwrap(), "1");
        let made = folder.path().join("made");
        let before = Before::of(&made);
        write(&made, b"x").unwrap();
        before.restore(&made);
        assert!(!made.exists());
        // Nothing had changed.
        Before::of(&made).restore(&made);
        Before::of(&one).restore(&one);
        assert_eq!(fs::read_to_string(&one).unwrap(), "1");
    }

    /// Whether a kill comes before or after the step, the number of statements is the same, and each is whole.
    #[test]
    fn statements_change_places_in_one_step() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let text =
            |FullName { database, name }: &FullName| fs::read_to_string(store.path(database, name)).ok();
        let (one, other, nothing) =
            (FullName::new("a", "one"), FullName::new("b", "other"), FullName::new("c", "nothing"));
        store.put("a", "one", "1").unwrap();
        store.put("b", "other", "2").unwrap();
        store.exchange(&one, &other).unwrap();
        assert_eq!([text(&one), text(&other)], [Some("2\n".into()), Some("1\n".into())]);
        // A table in RAM has no file, nor has its database a folder.
        store.exchange(&nothing, &other).unwrap();
        assert_eq!([text(&nothing), text(&other)], [Some("1\n".into()), None]);
        store.exchange(&nothing, &other).unwrap();
        assert_eq!([text(&nothing), text(&other)], [None, Some("1\n".into())]);
        store.rename(&other, &nothing).unwrap();
        assert_eq!([text(&nothing), text(&other)], [Some("1\n".into()), None]);
        // An exchange that fails leaves both in place.
        fs::remove_dir(folder.path().join("metadata/b")).unwrap();
        fs::write(folder.path().join("metadata/b"), "").unwrap();
        store.rename(&nothing, &other).unwrap_err();
        assert_eq!(text(&nothing), Some("1\n".into()));
    }
}
