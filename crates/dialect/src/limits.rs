//! Every bound of this crate, in one place.

/// Rows in one batch of a query. A dictionary answers a batch with one sorted pass over the device, so
/// batches are large; ClickHouse's own blocks have 65 409 rows.
pub const BATCH_ROWS: usize = 65_536;

/// Maximum number of replacements of one SELECT list's aliases, which may double with each step.
pub(crate) const ALIAS_EXPANSIONS_MAX: usize = 10_000;

/// Maximum nesting of aliases in each other's expressions: planning takes the third power of it.
pub(crate) const ALIASES_DEEP_MAX: usize = 100;

/// Maximum length of a chain of queries in a WITH, each selecting from the one before.
pub(crate) const WITH_DEEP_MAX: usize = 250;

/// Maximum number of queries of a WITH that are planned: each is, as often as others select from it.
pub(crate) const WITH_EXPANSIONS_MAX: usize = 10_000;

/// Maximum bytes of a constant written out for each row of a batch, and of texts and arrays that a function makes for a
/// batch.
pub(crate) const BATCH_BYTES_MAX: usize = 1 << 30;

/// Bytes of a query's constant written out for each row of a batch: batches have fewer rows if it would take more.
pub(crate) const CONSTANT_BYTES_WANTED: usize = 64 << 20;

/// Maximum length of a FixedString, as in ClickHouse.
pub(crate) const FIXED_STRING_BYTES_MAX: u64 = 0xff_ffff;

/// Expressions searched to find out whether a text is the same in all rows.
pub(crate) const CONSTANT_STEPS_MAX: usize = 10_000;

/// Maximum bytes of a text of statements, including rows after VALUES: each of its tokens takes some 100 bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;

/// Maximum bytes that a token of a statement takes until the statement has run: in rows after VALUES it becomes an
/// expression and part of a plan.
pub(crate) const TOKEN_BYTES: usize = 640;

/// Bytes of a blank token, which is dropped when the text is tokenized: two copies of it with its location, for a
/// moment.
pub(crate) const BLANK_BYTES: usize = 192;

/// Maximum length of a statement without rows after VALUES, ClickHouse's `max_query_size`.
pub(crate) const QUERY_BYTES_MAX: usize = 262_144;

/// Maximum number of expressions in a SELECT: planning takes the square of their number, 2 seconds for these.
pub(crate) const SELECT_COLUMNS_MAX: usize = 10_000;

/// Maximum number of expressions in an ORDER BY: likewise, 1 second.
pub(crate) const SORT_COLUMNS_MAX: usize = 1000;

/// Items of a query parameter that are cast individually, in a list or an array; beyond that they are cast together.
pub(crate) const LISTED_ITEMS_MAX: usize = 1000;

/// Maximum depth of a statement's tree, like ClickHouse's `max_ast_depth`; `statement/depth.rs` defines it.
pub(crate) const AST_DEPTH_MAX: usize = 1000;

/// Maximum nesting of parentheses in a query.
pub(crate) const PARENTHESES_DEEP_MAX: usize = 256;

/// Blocks of queries that `sleep` at once, each on a thread.
pub const SLEEPERS_MAX: usize = 50;
