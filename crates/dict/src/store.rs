//! A dictionary's cache: where it is, whose it is, what was in it before.

use crate::config::{SsdSettings, Storage};
use crate::definition::Definition;
use crate::environment::Environment;
use crate::error::{Code, DictError};
use granary_cache::{Cache, FlashOptions, Io, Key, Options, Outcome};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

/// What the engine and this crate put beside the data file.
const SIDE_FILES: [&str; 4] = ["structure", "state", "journal.0", "journal.1"];

/// Data files in use by this process.
static IN_USE: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

thread_local! {
    /// Rings and buffers belong to the calling thread.
    static IO: RefCell<Io> = RefCell::new(Io::new());
}

/// An open cache. Fields are dropped in order: the cache writes its end, then files go (if the dictionary was
/// removed), then the place is free again.
pub(crate) struct Store {
    cache: Cache,
    place: Option<Place>,
}

/// A data file that is ours.
struct Place {
    path: PathBuf,
    removed: AtomicBool,
    /// Holds the structure's fingerprint, and a lock against other processes.
    structure: File,
}

impl Store {
    /// Opens what LAYOUT(..) says; `None` for DIRECT.
    pub fn open(definition: &Definition, environment: &Environment) -> Result<Option<Store>, DictError> {
        match &definition.layout.storage {
            Storage::Direct => Ok(None),
            Storage::Memory { cells } => {
                // A cell is an entry, whatever its size.
                let options = Options { flash: None, memory_bytes: u64::MAX, memory_entries: Some(*cells) };
                let cache = Cache::open(options).map_err(|e| cannot_open("The cache in RAM", &e))?;
                Ok(Some(Store { cache, place: None }))
            }
            Storage::Ssd(ssd) => Store::open_ssd(ssd, definition, environment).map(Some),
        }
    }

    fn open_ssd(
        ssd: &SsdSettings,
        definition: &Definition,
        environment: &Environment,
    ) -> Result<Store, DictError> {
        let wanted = environment.resolve(&ssd.path)?;
        let mut place = Place::take(&wanted)?;
        let context = format!("PATH '{}'", place.path.display());
        let identity = definition.identity();
        let same = place.read_identity().map_err(|e| cannot_open(&context, &e))? == identity;
        let existed = place.path.exists();
        let options = Options {
            flash: Some(FlashOptions {
                path: place.path.clone(),
                file_size: ssd.total_bytes(),
                block_size: ssd.block_size,
                write_buffer_size: ssd.write_buffer_size,
                max_stored_keys: ssd.max_stored_keys,
            }),
            memory_bytes: ssd.memory_cache_size,
            memory_entries: None,
        };
        let cache = Cache::open(options).map_err(|e| cannot_open(&context, &e))?;
        if !same {
            // Rows of another structure, or of another source, must not be read as ours. Only once they are
            // gone for good does the file say whose it is now.
            if existed {
                cache.clear();
            }
            place.write_identity(&identity).map_err(|e| cannot_open(&context, &e))?;
        }
        Ok(Store { cache, place: Some(place) })
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Looks up a batch with this thread's rings.
    pub fn get_many(&self, keys: &[Key<'_>], now: u32, sink: impl FnMut(usize, Outcome<'_>)) {
        IO.with_borrow_mut(|io| self.cache.get_many(io, keys, now, sink));
    }

    /// Visits every resident entry.
    pub fn scan(&self, visit: impl FnMut(&[u8], Option<&[u8]>, u32)) {
        IO.with_borrow_mut(|io| self.cache.scan(io, visit));
    }

    /// Lets the files go when the store is dropped.
    pub fn remove(&self) {
        if let Some(place) = &self.place {
            place.removed.store(true, Ordering::Release);
        }
    }
}

fn cannot_open(what: &str, error: &std::io::Error) -> DictError {
    DictError::new(Code::CannotOpenFile, format!("{what}: {error}"))
}

impl Place {
    /// # Errors
    /// `BAD_ARGUMENTS` if another dictionary, of this process or another, has this data file.
    fn take(wanted: &Path) -> Result<Place, DictError> {
        let context = format!("PATH '{}'", wanted.display());
        let failed = |e: std::io::Error| cannot_open(&context, &e);
        let taken = || {
            DictError::bad_arguments(format!(
                "{context} is in use by another dictionary; each needs a file of its own"
            ))
        };
        let name =
            wanted.file_name().ok_or_else(|| DictError::bad_arguments(format!("{context} names no file")))?;
        let folder = wanted.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut path = folder.canonicalize().map_err(failed)?.join(name);
        if let Ok(real) = path.canonicalize() {
            path = real;
        }
        if path.is_dir() {
            return Err(DictError::bad_arguments(format!("{context} is a folder; it must name a file")));
        }
        if !IN_USE.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone()) {
            return Err(taken());
        }
        let open = || -> Result<File, DictError> {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let structure = options.open(beside(&path, "structure")).map_err(failed)?;
            match structure.try_lock() {
                Ok(()) => Ok(structure),
                Err(TryLockError::WouldBlock) => Err(taken()),
                Err(TryLockError::Error(e)) => Err(failed(e)),
            }
        };
        match open() {
            Ok(structure) => Ok(Place { path, removed: AtomicBool::new(false), structure }),
            Err(error) => {
                IN_USE.lock().unwrap_or_else(PoisonError::into_inner).remove(&path);
                Err(error)
            }
        }
    }

    fn read_identity(&mut self) -> std::io::Result<String> {
        let mut identity = Vec::new();
        self.structure.seek(SeekFrom::Start(0))?;
        Read::by_ref(&mut self.structure).take(1024).read_to_end(&mut identity)?;
        Ok(String::from_utf8_lossy(&identity).into_owned())
    }

    /// In place: what a crash leaves half written is no identity, and the cache is cleared once more.
    fn write_identity(&mut self, identity: &str) -> std::io::Result<()> {
        self.structure.set_len(0)?;
        self.structure.seek(SeekFrom::Start(0))?;
        self.structure.write_all(identity.as_bytes())?;
        self.structure.sync_all()
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.removed.load(Ordering::Acquire) {
            // A raw device is not a file of ours. What cannot be deleted is cleared by whoever opens it next.
            if std::fs::symlink_metadata(&self.path).is_ok_and(|m| m.is_file()) {
                let _ = std::fs::remove_file(&self.path);
            }
            for suffix in SIDE_FILES {
                let _ = std::fs::remove_file(beside(&self.path, suffix));
            }
        }
        IN_USE.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
    }
}
