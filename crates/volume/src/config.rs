//! The size and shape of a volume, in a small text file.

use crate::framing::blocks_in_segment;
use crate::limits::{
    BLOCK_SIZES, RESERVED_SEGMENTS, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SEGMENTS_SPARE,
    UTILISATION_PERCENT_MAX,
};
use crate::map::{MapKind, Place};
use granary_log::device::{OpenDeviceError, Space};
use granary_log::{CrashPolicy, Geometry, OpenError, Options, SlotOrder, UnpublishedFile};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The shape of a volume.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The bytes that clients see: a multiple of `block_size`.
    pub size: u64,
    /// The bytes of a logical block: one of [`BLOCK_SIZES`].
    pub block_size: u64,
    /// The bytes of a segment of the log.
    pub segment_bytes: u64,
    /// The kind of the map in memory.
    pub map: MapKind,
    /// The raw device that holds the log; `None`: a file beside this one, which takes space as it is written.
    pub device: Option<PathBuf>,
    /// Whether the log has a segment and the map a checkpoint, without which the volume is not opened. `false` while
    /// the volume is being created, and for volumes older than this field.
    #[serde(default)]
    pub formatted: bool,
}

/// The reason why a volume could not be made, found or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option that makes no sense.
    #[error("{option}: {reason}")]
    Invalid {
        /// Its name.
        option: &'static str,
        /// The fault, and what to give instead.
        reason: String,
    },
    /// There is no volume of this name.
    #[error("there is no volume {name} in {}", folder.display())]
    NotFound {
        /// The name.
        name: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// There is a volume of this name already.
    #[error("there is a volume {name} already: delete it first, or choose another name")]
    Exists {
        /// The name.
        name: String,
    },
    /// A file of a new volume's name exists, and belongs to no volume.
    #[error("{path} is there already, and belongs to no volume: move it away, or choose another name", path = path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
    },
    /// A file of the volume is missing.
    #[error("{path} is missing: put it back, or delete the volume", path = path.display())]
    Missing {
        /// The file, or the raw device.
        path: PathBuf,
    },
    /// A file of the volume is damaged.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault, and what can be done.
        reason: String,
    },
    /// Another process has it open.
    #[error("{path} is open in another process: stop the server, or the command, that has it", path = path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The log could not be opened.
    #[error(transparent)]
    Log(OpenError),
    /// The map cannot be made.
    #[error(transparent)]
    Map(#[from] crate::map::MapError),
    /// The checkpoint of the map cannot be read. The text has its path.
    #[error("cannot read {0}")]
    Checkpoint(io::Error),
    /// The operating system refused.
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::InUse { path } | OpenError::Device(OpenDeviceError::InUse { path }) => {
                Self::InUse { path }
            }
            OpenError::Device(OpenDeviceError::TooSmall { path, has, wants }) => Self::Invalid {
                option: "size",
                reason: format!("it takes {wants} bytes of {}, which has {has}", path.display()),
            },
            OpenError::Older { path } => Self::Damaged {
                path,
                reason: "it and the log are copies from before the map was written down: put the last ones of both back, \
                         or all three of one copy"
                    .to_owned(),
            },
            error => Self::Log(error),
        }
    }
}

impl Error {
    pub(crate) fn not_found(files: &Files) -> Self {
        Self::NotFound { name: files.name.clone(), folder: files.folder.clone() }
    }

    /// The error of opening the log of a volume that is there: its files are the volume's, whatever is in them.
    pub(crate) fn of_existing(error: OpenError) -> Self {
        let (path, what) = match error {
            OpenError::Foreign { path } => (path, "it is no state file"),
            OpenError::Damaged { path } => (path, "it is no state file, or that of a volume of another size"),
            error => return error.into(),
        };
        let reason = format!("{what}: put the last copy of it back, or delete the volume");
        Self::Damaged { path, reason }
    }

    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }
}

/// Checks that a device of `has` bytes has room for the log of a volume; `resized` has the volume's shape at another
/// size.
///
/// # Errors
/// It has not. The error says which size it has room for.
pub(crate) fn check_room(
    device: &Path,
    has: u64,
    config: &Config,
    resized: impl Fn(u64) -> Config,
) -> Result<(), Error> {
    let wants = config.geometry()?.file_bytes();
    if has >= wants {
        return Ok(());
    }
    let block = config.block_size;
    let is_room_for = |blocks: u64| resized(blocks * block).geometry().map(|log| log.file_bytes() <= has);
    // It has room for the first number of blocks, or that is 0, and none for the second.
    let (mut fits, mut too_many) = (0, config.blocks());
    while too_many - fits > 1 {
        let blocks = fits.midpoint(too_many);
        if is_room_for(blocks)? {
            fits = blocks;
        } else {
            too_many = blocks;
        }
    }
    let most = match fits {
        0 => format!("no volume fits there: the smallest takes {}", resized(block).geometry()?.file_bytes()),
        blocks => format!("{} is the largest that fits there", blocks * block),
    };
    let reason =
        format!("{} takes {wants} bytes of {}, which has {has}; {most}", config.size, device.display());
    Err(Error::Invalid { option: "size", reason })
}

/// Whether there is a file at a path.
///
/// # Errors
/// The operating system does not let it be seen.
pub(crate) fn is_there(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(Error::io("look at", path))
}

/// The names of a volume's files.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
    name: String,
}

impl Files {
    /// The files of the volume `name` in a folder.
    ///
    /// # Errors
    /// The name is no valid file name.
    pub fn new(folder: &Path, name: &str) -> Result<Self, Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_part = granary_log::is_name_of_partition(Path::new(name));
        if name.is_empty()
            || name.len() > 200
            || name.starts_with(['.', '-'])
            || !name.chars().all(plain)
            || is_part
        {
            let reason = format!(
                "{name:?} is none for a volume: it has 1 to 200 letters, digits, dots, dashes and underscores, begins with \
                 neither a dot nor a dash, and does not end in .partition.N"
            );
            return Err(Error::Invalid { option: "name", reason });
        }
        Ok(Self { folder: folder.to_owned(), name: name.to_owned() })
    }

    fn with(&self, suffix: &str) -> PathBuf {
        self.folder.join(format!("{}{suffix}", self.name))
    }

    /// The volume's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of the shape.
    pub fn config(&self) -> PathBuf {
        self.with(".volume")
    }

    /// The temporary file of the shape, while it is written.
    pub fn new_config(&self) -> PathBuf {
        self.with(".volume.new")
    }

    /// The configuration of a volume whose creation or deletion is not finished.
    pub fn unfinished_delete(&self) -> PathBuf {
        self.with(".volume.deleted")
    }

    /// The configuration of a volume whose resizing is not finished.
    pub fn unfinished_resize(&self) -> PathBuf {
        self.with(".volume.resized")
    }

    /// The file that a process has locked while it works on the volume.
    pub fn lock_path(&self) -> PathBuf {
        self.with(".lock")
    }

    /// The log, where no raw device holds it.
    pub fn data(&self) -> PathBuf {
        self.with(".log")
    }

    /// The last checkpoint of the map.
    pub fn checkpoint(&self) -> PathBuf {
        self.with(".map")
    }

    /// The temporary file of a checkpoint, while it is written.
    pub fn new_checkpoint(&self) -> PathBuf {
        self.with(".map.new")
    }

    /// The state of the log.
    pub fn state_file(&self) -> PathBuf {
        self.with(".state")
    }

    /// The prefix of the log's state and journal files.
    pub fn log_prefix(&self) -> PathBuf {
        self.with("")
    }

    /// The volumes of a folder that have a shape, by name.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn list(folder: &Path) -> Result<Vec<Self>, Error> {
        Self::list_of(folder, ".volume")
    }

    /// The volumes of a folder whose creation or deletion is under way, or was interrupted, by name.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn list_deleted(folder: &Path) -> Result<Vec<Self>, Error> {
        Self::list_of(folder, ".volume.deleted")
    }

    /// The names in a folder for which a file with this suffix exists.
    fn list_of(folder: &Path, suffix: &str) -> Result<Vec<Self>, Error> {
        let entries = std::fs::read_dir(folder).map_err(Error::io("read the folder", folder))?;
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(Error::io("read the folder", folder))?.path();
            let name =
                path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(suffix));
            found.extend(name.and_then(|name| Self::new(folder, name).ok()));
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}

impl Config {
    /// The default shape of a volume of `size` bytes.
    pub fn new(size: u64) -> Self {
        let segment_bytes = (size / 1024).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX).next_power_of_two();
        Self {
            size,
            block_size: 4096,
            segment_bytes,
            map: MapKind::default(),
            device: None,
            formatted: false,
        }
    }

    /// The logical blocks.
    pub fn blocks(&self) -> u64 {
        self.size / self.block_size
    }

    /// The least number of logical blocks in a full segment of the log.
    ///
    /// # Errors
    /// The errors of [`geometry`](Self::geometry).
    pub fn blocks_per_segment(&self) -> Result<u64, Error> {
        Ok(blocks_in_segment(&self.geometry()?))
    }

    /// Checks the sizes, and returns the shape of the log: at most nine tenths of it are live when the volume is full,
    /// and the map has a [`Place`] for each of its blocks.
    ///
    /// # Errors
    /// The sizes are invalid; the error names the option to change.
    pub fn geometry(&self) -> Result<Geometry, Error> {
        let invalid = |option, reason: String| Err(Error::Invalid { option, reason });
        if !BLOCK_SIZES.contains(&self.block_size) {
            return invalid(
                "block-size",
                format!("{} bytes: a block has 4KiB, 8KiB or 16KiB", self.block_size),
            );
        }
        if self.size == 0 || !self.size.is_multiple_of(self.block_size) {
            let next = self.size.max(1).checked_next_multiple_of(self.block_size);
            let reason = format!(
                "{} must be a multiple of the block size, {}, and not 0: {} is",
                self.size,
                self.block_size,
                next.unwrap_or(self.size - self.size % self.block_size)
            );
            return invalid("size", reason);
        }
        let geometry = |segments: u64| {
            Geometry::new(segments * self.segment_bytes, self.segment_bytes, self.block_size)
                .or_else(|error| invalid("segment_bytes", error.to_string()))
        };
        let one = geometry(1)?;
        let per_segment = blocks_in_segment(&one);
        if per_segment == 0 {
            return invalid("segment_bytes", format!("{} is too small", self.segment_bytes));
        }
        let full = (self.blocks() * 100).div_ceil(per_segment * UTILISATION_PERCENT_MAX);
        let beside = RESERVED_SEGMENTS + SEGMENTS_SPARE;
        let segments_max = Place::BLOCKS_MAX / u64::from(one.blocks_per_segment());
        if full + beside > segments_max {
            let blocks = segments_max.saturating_sub(beside) * per_segment * UTILISATION_PERCENT_MAX / 100;
            let reason = format!(
                "{} bytes are too many: in blocks of {} a volume has {} at most",
                self.size,
                self.block_size,
                blocks * self.block_size
            );
            return invalid("size", reason);
        }
        geometry(full + beside)
    }

    /// The raw device or the file that holds the log.
    pub(crate) fn log_path(&self, files: &Files) -> PathBuf {
        self.device.clone().unwrap_or_else(|| files.data())
    }

    /// The options to open the log with.
    pub(crate) fn log_options(&self, files: &Files, crash_policy: CrashPolicy) -> Result<Options, Error> {
        Ok(Options {
            path: self.log_path(files),
            state_path: files.log_prefix(),
            geometry: self.geometry()?,
            fingerprint: u64::from_le_bytes(*b"volume 1"),
            salt: None,
            shared_memory: Vec::new(),
            slots: SlotOrder::Table { reserved: RESERVED_SEGMENTS },
            space: Space::Thin,
            depends_on: 0,
            crash_policy,
        })
    }

    /// Reads the shape of a volume.
    ///
    /// # Errors
    /// There is none, or its file is damaged.
    pub fn read(files: &Files) -> Result<Self, Error> {
        Self::read_from(files.config())?.ok_or_else(|| Error::not_found(files))
    }

    /// Reads the shape in a file; `None`: it is missing or damaged.
    ///
    /// # Errors
    /// The operating system refused.
    pub(crate) fn read_damaged(path: PathBuf) -> Result<Option<Self>, Error> {
        match Self::read_from(path) {
            Err(Error::Damaged { .. }) => Ok(None),
            read => read,
        }
    }

    /// Reads the shape in a file; `None`: there is no such file.
    pub(crate) fn read_from(path: PathBuf) -> Result<Option<Self>, Error> {
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(Error::io("read", &path))?,
        };
        toml::from_slice(&bytes).map(Some).map_err(|error| {
            let reason = format!("{}: put the last copy of it back, or delete the volume", error.message());
            Error::Damaged { path, reason }
        })
    }

    /// Writes the shape of a volume to one of its files, atomically.
    ///
    /// # Errors
    /// The operating system refused.
    pub(crate) fn write(&self, files: &Files, path: &Path) -> Result<(), Error> {
        let text = toml::to_string(self).expect("numbers and names are TOML");
        UnpublishedFile::write(files.new_config(), 0o666, |file| file.write_all(text.as_bytes()))
            .and_then(|written| written.publish_as(path))
            .map_err(Error::io("write", path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size that an error says fits does fit, and a block more does not.
    #[test]
    fn the_size_that_is_said_to_fit_a_device_is_the_largest() {
        let segments_of_one_mib = |size| Config { segment_bytes: 1 << 20, ..Config::new(size) };
        let shapes: [&dyn Fn(u64) -> Config; 2] = [&Config::new, &segments_of_one_mib];
        for resized in shapes {
            for has in [16 << 20, 64 << 20, (64 << 20) + 77, 5 << 30] {
                let check = |size| check_room(Path::new("disk"), has, &resized(size), resized);
                let error = check(8 << 30).unwrap_err().to_string();
                let words: Vec<&str> = error.split(' ').collect();
                let at = words.iter().position(|word| *word == "is").unwrap_or_else(|| panic!("{error}"));
                let size: u64 = words[at - 1].parse().unwrap();
                assert!(size > has / 8 && size < has, "{error}");
                check(size).unwrap();
                check(size + 4096).unwrap_err();
            }
            let error = check_room(Path::new("disk"), 1 << 20, &resized(1 << 30), resized).unwrap_err();
            assert!(error.to_string().contains("no volume fits there: the smallest takes "), "{error}");
        }
    }

    #[test]
    fn a_size_of_no_whole_blocks_is_told_with_one_that_is() {
        for (size, next) in [(0, "4096"), (1, "4096"), (10_000, "12288"), (u64::MAX, "18446744073709547520")]
        {
            let error = Config { size, ..Config::new(1 << 20) }.geometry().unwrap_err().to_string();
            assert!(error.ends_with(&format!("and not 0: {next} is")), "{error}");
        }
    }
}
