//! Every bound of this crate, in one place, except those of statements and queries, which are the dialect's.

pub use granary_dialect::limits::{BATCH_ROWS, SLEEPERS_MAX};
pub use granary_dict::limits::DEFAULT_MEMORY_FOLDER;

/// Maximum threads of a query per core, whatever `max_threads` says.
pub const THREADS_OF_CORE_MAX: usize = 8;

/// Maximum rows of a block, whatever `max_block_size` says.
pub const BLOCK_ROWS_MAX: u64 = 2 * BATCH_ROWS as u64;

/// `numbers(N)` is split among threads from this many rows on.
pub const NUMBERS_SPLIT_ROWS: u64 = BATCH_ROWS as u64;

/// Batches that a partition may be ahead of the one being read; bounds the memory of a large result.
pub const PARTITION_BATCHES_AHEAD: usize = 4;

/// Bytes that the binary formats gather before they write them: the reader can begin while the rest is made.
pub const BINARY_PIECE_BYTES: usize = 64 << 10;

/// Rows that a Pretty format shows before it stops, as ClickHouse's `output_format_pretty_max_rows`.
pub const PRETTY_ROWS_MAX: usize = 10_000;

/// Rows from which a Pretty table repeats its header at the bottom.
pub const PRETTY_FOOTER_ROWS: usize = 50;

/// Bytes of a text file read and decoded at once; the types of its columns are guessed from the first of them.
pub const TEXT_CHUNK_BYTES: usize = 1 << 20;

/// The longest row of a text file.
pub const TEXT_ROW_BYTES_MAX: usize = 256 << 20;

/// A text file is split among threads into pieces of at least this many bytes.
pub const TEXT_SPLIT_BYTES: u64 = 8 * TEXT_CHUNK_BYTES as u64;

/// How far up a hierarchy is followed, as in ClickHouse.
pub const HIERARCHY_DEPTH_MAX: usize = 1000;

/// Keys that are passed on the way down a hierarchy for one block: those before the level that is asked for are no part
/// of the answer, whose bytes are bounded.
pub const HIERARCHY_STEPS_MAX: usize = 1 << 25;

/// Query parameters that SET gives one session,
pub const SESSION_PARAMETERS_MAX: usize = 1000;
/// and bytes of these and of its settings, names included: each statement copies them.
pub const SESSION_SETTINGS_BYTES_MAX: usize = 1 << 20;

/// Maximum nesting of views in views.
pub const VIEWS_DEEP_MAX: usize = 32;

/// Copies of DataFusion's state that are kept for the next queries, some hundred KiB each.
pub const SPARE_STATES: usize = 8;

/// The longest file that `file()` reads as a text.
pub const FILE_BYTES_MAX: usize = 64 << 20;

const _: () = assert!(TEXT_ROW_BYTES_MAX > TEXT_CHUNK_BYTES);
const _: () = assert!(NUMBERS_SPLIT_ROWS as usize >= BATCH_ROWS);

/// Bytes of the stack of threads that plan and run queries, in address space: the deepest statement takes a third.
pub const STACK_BYTES: usize = 32 << 20;

/// Bytes that a statement may take before its memory is checked: some 2 KiB of text.
pub(crate) const STATEMENT_BYTES_FREE: usize = 1 << 20;

/// Maximum length of a file name, as in Linux.
pub(crate) const FILE_NAME_BYTES_MAX: usize = 255;
