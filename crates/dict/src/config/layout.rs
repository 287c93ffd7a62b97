//! LAYOUT(..): where entries live and how they are refreshed.

use super::full_load::FullLoadLayout;
use super::node::{Node, Settings, Value};
use super::update::{EXPIRY_PARAMETERS, SOURCE_PARAMETERS, UpdateSettings};
use crate::error::{Code, DictError, built_without, only_in_clickhouse};
use crate::limits;
use crate::types::DataType;
use granary_cache::Compression;

/// A layout and its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Simple or complex: as written, or as the key requires (`Layout::fit_key`).
    pub key_form: KeyForm,
    /// Where entries live.
    pub kind: LayoutKind,
    /// How they are refreshed.
    pub update: UpdateSettings,
}

/// Which of the two spellings of a layout was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// `SSD_CACHE`, `CACHE`, `DIRECT`: one number.
    Simple,
    /// `COMPLEX_KEY_..`: a tuple.
    Complex,
}

/// Where entries live.
#[derive(Clone, Debug, PartialEq)]
pub enum LayoutKind {
    /// A file on SSD, an index and a small hot tier in RAM.
    Ssd(SsdSettings),
    /// RAM only; `cells` entries, rounded up to a power of two.
    Memory {
        /// SIZE_IN_CELLS.
        cells: u64,
        /// COMPRESSION (our own setting).
        compression: Compression,
    },
    /// Nowhere: every lookup asks the source.
    Direct,
    /// RAM, all rows of the source.
    FullLoad(FullLoadLayout),
}

/// Settings of SSD_CACHE. Sizes are bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct SsdSettings {
    /// PATH, as written; `Environment::resolve` resolves it.
    pub path: String,
    /// BLOCK_SIZE: the smallest unit read.
    pub block_size: u64,
    /// FILE_SIZE: a multiple of `write_buffer_size`.
    pub file_size: u64,
    /// WRITE_BUFFER_SIZE: the unit written, a multiple of `block_size`.
    pub write_buffer_size: u64,
    /// Accepted for compatibility; here reads are as long as the neighbouring blocks wanted.
    pub read_buffer_size: u64,
    /// The data file is `file_size * max_partitions_count` long. ClickHouse's default is 16, ours 1.
    pub max_partitions_count: u64,
    /// MAX_STORED_KEYS: the index never holds more; `None`: as many as fit.
    pub max_stored_keys: Option<u64>,
    /// Budget of the hot tier in RAM (our own setting).
    pub memory_cache_size: u64,
    /// COMPRESSION: how rows are compressed (our own setting).
    pub compression: Compression,
}

const DEFAULT_FILE_SIZE: u64 = 4 << 30;
const DEFAULT_BLOCK_SIZE: u64 = 4096;
const DEFAULT_MEMORY_CACHE_SIZE: u64 = 16 << 20;
const ALLOWED: &str = "SSD_CACHE, CACHE, DIRECT, HASHED, SPARSE_HASHED, HASHED_ARRAY, RANGE_HASHED, each also behind COMPLEX_KEY_, FLAT, IP_TRIE, POLYGON, POLYGON_SIMPLE, POLYGON_INDEX_EACH, POLYGON_INDEX_CELL and REGEXP_TREE";
/// ClickHouse's layouts that hold a trained model.
const ONLY_IN_CLICKHOUSE: [&str; 2] = ["NAIVE_BAYES", "XGBOOST"];

const SSD_PARAMETERS: &[&str] = &[
    "BLOCK_SIZE",
    "FILE_SIZE",
    "READ_BUFFER_SIZE",
    "WRITE_BUFFER_SIZE",
    "PATH",
    "MAX_PARTITIONS_COUNT",
    "MAX_STORED_KEYS",
    "MEMORY_CACHE_SIZE",
    "COMPRESSION",
];
const CACHE_PARAMETERS: &[&str] = &["SIZE_IN_CELLS", "COMPRESSION"];

impl Layout {
    /// Reads the one element inside LAYOUT(..) or `<layout>`.
    pub(crate) fn from_node(node: &Node) -> Result<Layout, DictError> {
        let (mut key_form, name) = match node.name.strip_prefix("COMPLEX_KEY_") {
            Some(name) => (KeyForm::Complex, name),
            None => (KeyForm::Simple, node.name.as_str()),
        };
        let parameters = node.settings("LAYOUT")?;
        let settings =
            |allowed: &[&[&'static str]]| Settings::new("LAYOUT", &node.name, parameters, allowed.concat());
        let (kind, settings) = match name {
            "SSD_CACHE" => {
                let settings = settings(&[SSD_PARAMETERS, EXPIRY_PARAMETERS, SOURCE_PARAMETERS])?;
                (LayoutKind::Ssd(SsdSettings::take(&settings)?), settings)
            }
            "CACHE" => {
                let settings = settings(&[CACHE_PARAMETERS, EXPIRY_PARAMETERS, SOURCE_PARAMETERS])?;
                let cells = settings
                    .number("SIZE_IN_CELLS", 1, limits::CELLS_MAX)?
                    .ok_or_else(|| settings.error("SIZE_IN_CELLS", "is required"))?;
                (LayoutKind::Memory { cells, compression: compression(&settings)? }, settings)
            }
            "DIRECT" => (LayoutKind::Direct, settings(&[SOURCE_PARAMETERS])?),
            _ => {
                let (form, settings) = FullLoadLayout::from_node(node, name, key_form, parameters)?
                    .ok_or_else(|| unknown(&node.name))?;
                if !cfg!(feature = "full-load") {
                    return Err(built_without("LAYOUT", &node.name, "full-load"));
                }
                key_form = form.key_form(key_form);
                (LayoutKind::FullLoad(form), settings)
            }
        };
        Ok(Layout { key_form, kind, update: UpdateSettings::take(&settings)? })
    }

    /// Makes a simple layout complex if its key is not a single number, as ClickHouse does for DDL. FLAT has no complex
    /// form.
    pub(crate) fn fit_key(&mut self, types: &[&DataType]) {
        let is_number = matches!(types, [only] if only.is_number());
        if !is_number && self.kind != LayoutKind::FullLoad(FullLoadLayout::Flat) {
            self.key_form = KeyForm::Complex;
        }
    }

    /// The layout as DDL names it, such as `COMPLEX_KEY_SSD_CACHE`.
    pub fn name(&self) -> &'static str {
        match (self.key_form, &self.kind) {
            (KeyForm::Simple, LayoutKind::Ssd(_)) => "SSD_CACHE",
            (KeyForm::Simple, LayoutKind::Memory { .. }) => "CACHE",
            (KeyForm::Simple, LayoutKind::Direct) => "DIRECT",
            (KeyForm::Complex, LayoutKind::Ssd(_)) => "COMPLEX_KEY_SSD_CACHE",
            (KeyForm::Complex, LayoutKind::Memory { .. }) => "COMPLEX_KEY_CACHE",
            (KeyForm::Complex, LayoutKind::Direct) => "COMPLEX_KEY_DIRECT",
            (key_form, LayoutKind::FullLoad(form)) => form.name(key_form),
        }
    }

    /// The name of the layout with a tuple for its key. FLAT has none: HASHED is the nearest that has.
    pub(crate) fn complex_name(&self) -> &'static str {
        match self.kind {
            LayoutKind::FullLoad(FullLoadLayout::Flat) => "COMPLEX_KEY_HASHED",
            _ => Layout { key_form: KeyForm::Complex, ..self.clone() }.name(),
        }
    }

    /// The settings that differ from their defaults, and those without a default.
    pub(crate) fn to_node(&self) -> Node {
        let mut nodes = Vec::new();
        let mut put = |name: &str, value: Option<String>| {
            nodes.extend(value.map(|value| Node::text(name, value)));
        };
        let unless = |value: u64, default: u64| (value != default).then(|| value.to_string());
        let unless_default = |compression: Compression| {
            (compression != Compression::default()).then(|| compression.to_string())
        };
        match &self.kind {
            LayoutKind::Ssd(ssd) => {
                put("BLOCK_SIZE", unless(ssd.block_size, DEFAULT_BLOCK_SIZE));
                put("FILE_SIZE", Some(ssd.file_size.to_string()));
                put("READ_BUFFER_SIZE", unless(ssd.read_buffer_size, 16 * ssd.block_size));
                put("WRITE_BUFFER_SIZE", Some(ssd.write_buffer_size.to_string()));
                put("PATH", Some(ssd.path.clone()));
                put("MAX_PARTITIONS_COUNT", unless(ssd.max_partitions_count, 1));
                put("MAX_STORED_KEYS", ssd.max_stored_keys.map(|keys| keys.to_string()));
                put("MEMORY_CACHE_SIZE", unless(ssd.memory_cache_size, DEFAULT_MEMORY_CACHE_SIZE));
                put("COMPRESSION", unless_default(ssd.compression));
            }
            LayoutKind::Memory { cells, compression } => {
                put("SIZE_IN_CELLS", Some(cells.to_string()));
                put("COMPRESSION", unless_default(*compression));
            }
            LayoutKind::Direct => {}
            LayoutKind::FullLoad(form) => form.put(&mut nodes),
        }
        self.update.put(&mut nodes);
        Node { name: self.name().to_string(), value: Value::Group(nodes) }
    }

    /// Checks the sizes against each other.
    pub fn validate(&self) -> Result<(), DictError> {
        let LayoutKind::Ssd(ssd) = &self.kind else { return Ok(()) };
        let check = |holds: bool, what: String| {
            holds
                .then_some(())
                .ok_or_else(|| DictError::bad_arguments(format!("LAYOUT({}): {what}", self.name())))
        };
        let blocks = limits::BLOCK_BYTES_MIN..=limits::BLOCK_BYTES_MAX;
        check(
            blocks.contains(&ssd.block_size) && ssd.block_size.is_multiple_of(512),
            format!(
                "BLOCK_SIZE must be a multiple of 512 from {} to {}, not {}",
                blocks.start(),
                blocks.end(),
                ssd.block_size
            ),
        )?;
        let multiple = |name: &str, value: u64, of_name: &str, of: u64| {
            check(
                value > 0 && value.is_multiple_of(of),
                format!("{name} must be a multiple of {of_name} ({of}), not {value}"),
            )
        };
        multiple("WRITE_BUFFER_SIZE", ssd.write_buffer_size, "BLOCK_SIZE", ssd.block_size)?;
        multiple("READ_BUFFER_SIZE", ssd.read_buffer_size, "BLOCK_SIZE", ssd.block_size)?;
        multiple("FILE_SIZE", ssd.file_size, "WRITE_BUFFER_SIZE", ssd.write_buffer_size)?;
        check(ssd.max_partitions_count > 0, "MAX_PARTITIONS_COUNT must be positive".into())?;
        let total = ssd.file_size.checked_mul(ssd.max_partitions_count);
        check(
            total.is_some_and(|total| total <= limits::FILE_BYTES_MAX),
            format!("FILE_SIZE * MAX_PARTITIONS_COUNT must be at most {}", limits::FILE_BYTES_MAX),
        )?;
        check(!ssd.path.is_empty(), "PATH is required".into())
    }
}

fn unknown(name: &str) -> DictError {
    match ONLY_IN_CLICKHOUSE.contains(&name) {
        true => only_in_clickhouse("LAYOUT", name, ALLOWED),
        false => DictError::new(
            Code::UnknownElementInConfig,
            format!("LAYOUT: unknown dictionary layout type {name}; allowed are {ALLOWED}"),
        ),
    }
}

/// COMPRESSION.
fn compression(settings: &Settings<'_>) -> Result<Compression, DictError> {
    let Some(said) = settings.text("COMPRESSION")? else { return Ok(Compression::default()) };
    said.parse()
        .map_err(|_| settings.error("COMPRESSION", &format!("must be 'zstd', 'lz4' or 'none', not '{said}'")))
}

impl SsdSettings {
    fn take(settings: &Settings<'_>) -> Result<Self, DictError> {
        let size = |name: &str, default: u64| -> Result<u64, DictError> {
            Ok(settings.number(name, 1, limits::FILE_BYTES_MAX)?.unwrap_or(default))
        };
        let block_size = size("BLOCK_SIZE", DEFAULT_BLOCK_SIZE)?;
        Ok(SsdSettings {
            path: settings.required("PATH")?.to_string(),
            block_size,
            file_size: size("FILE_SIZE", DEFAULT_FILE_SIZE)?,
            // ClickHouse's default is 4096, which is one block.
            write_buffer_size: size("WRITE_BUFFER_SIZE", block_size)?,
            read_buffer_size: size("READ_BUFFER_SIZE", block_size.saturating_mul(16))?,
            max_partitions_count: settings.number("MAX_PARTITIONS_COUNT", 1, limits::CELLS_MAX)?.unwrap_or(1),
            max_stored_keys: settings.number("MAX_STORED_KEYS", 1, limits::CELLS_MAX)?,
            memory_cache_size: settings
                .number("MEMORY_CACHE_SIZE", 0, limits::FILE_BYTES_MAX)?
                .unwrap_or(DEFAULT_MEMORY_CACHE_SIZE),
            compression: compression(settings)?,
        })
    }

    /// Length of the data file in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.file_size.saturating_mul(self.max_partitions_count)
    }
}
