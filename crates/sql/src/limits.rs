//! Every bound of this crate, in one place.

/// Rows in one batch of a query. A dictionary answers a batch with one sorted pass over the device, so
/// batches are large; ClickHouse's own blocks have 65 409 rows.
pub const BATCH_ROWS: usize = 65_536;

/// `numbers(N)` is cut into pieces for several threads from this many rows on.
pub const NUMBERS_SPLIT_ROWS: u64 = BATCH_ROWS as u64;

/// Batches that a partition may be ahead of the one being read; bounds the memory of a large result.
pub const PARTITION_BATCHES_AHEAD: usize = 4;

/// Bytes that the binary formats gather before they hand them over: whoever reads them begins while the rest is made.
pub const BINARY_PIECE_BYTES: usize = 64 << 10;

/// Rows that a Pretty format shows before it stops, as ClickHouse's `output_format_pretty_max_rows`.
pub const PRETTY_ROWS_MAX: usize = 10_000;

/// Rows from which a Pretty table repeats its header at the bottom.
pub const PRETTY_FOOTER_ROWS: usize = 50;

/// Bytes of a text file read and decoded at once; the types of its columns are guessed from the first of them.
pub const TEXT_CHUNK_BYTES: usize = 1 << 20;

/// The longest row of a text file.
pub const TEXT_ROW_BYTES_MAX: usize = 256 << 20;

/// A text file is cut into pieces for several threads of at least this many bytes.
pub const TEXT_SPLIT_BYTES: u64 = 8 * TEXT_CHUNK_BYTES as u64;

/// How often aliases of one SELECT list are replaced by their expressions, which may double each time.
pub const ALIAS_EXPANSIONS_MAX: usize = 10_000;

/// How far up a hierarchy is followed, as in ClickHouse.
pub const HIERARCHY_DEPTH_MAX: usize = 1000;

/// The longest FixedString, as in ClickHouse.
pub const FIXED_STRING_BYTES_MAX: u64 = 0xff_ffff;

/// How deep views may be made of views.
pub const VIEWS_DEEP_MAX: usize = 32;

/// Expressions that are looked at to find out whether a text is the same in all rows.
pub const CONSTANT_STEPS_MAX: usize = 10_000;

/// Copies of DataFusion's state that are kept for the next queries, some hundred KiB each.
pub const SPARE_STATES: usize = 8;

/// The longest text of statements accepted at once, rows behind VALUES among them: each of its tokens takes some 100
/// bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// The longest statement but for rows behind VALUES, ClickHouse's `max_query_size`.
pub const QUERY_BYTES_MAX: usize = 262_144;

/// Expressions that one SELECT selects: twice as many take four times as long to plan, these 2 seconds.
pub const SELECT_COLUMNS_MAX: usize = 10_000;

/// Expressions that one ORDER BY sorts by: likewise, 1 second.
pub const SORT_COLUMNS_MAX: usize = 1000;

/// The longest file that `file()` reads as a text.
pub const FILE_BYTES_MAX: usize = 64 << 20;

const _: () = assert!(TEXT_ROW_BYTES_MAX > TEXT_CHUNK_BYTES);
const _: () = assert!(NUMBERS_SPLIT_ROWS as usize >= BATCH_ROWS);

/// How deep the tree of a statement is, as ClickHouse's `max_ast_depth` has it; `statement/depth.rs` says what counts.
pub const AST_DEPTH_MAX: usize = 1000;

/// Bytes of the stack of threads that plan and run queries, in address space: the deepest statement takes a third.
pub const STACK_BYTES: usize = 32 << 20;

/// How deep parentheses of a query are.
pub const PARENTHESES_DEEP_MAX: usize = 256;

/// Blocks of queries that `sleep` at once, each on a thread.
pub const SLEEPERS_MAX: usize = 50;
