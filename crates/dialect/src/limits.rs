//! Every bound of this crate, in one place.

/// Rows in one batch of a query. A dictionary answers a batch with one sorted pass over the device, so
/// batches are large; ClickHouse's own blocks have 65 409 rows.
pub const BATCH_ROWS: usize = 65_536;

/// How often aliases of one SELECT list are replaced by their expressions, which may double each time.
pub(crate) const ALIAS_EXPANSIONS_MAX: usize = 10_000;

/// How many aliases are within each other, each in the expression of the next: planning takes the third power of it.
pub(crate) const ALIASES_DEEP_MAX: usize = 100;

/// How many queries of a WITH stand within each other where each selects from the one before.
pub(crate) const WITH_DEEP_MAX: usize = 250;

/// How many queries of a WITH are planned, each as often as others select from it.
pub(crate) const WITH_EXPANSIONS_MAX: usize = 10_000;

/// The most bytes that a constant takes when it is written out for each row of a batch, and texts and arrays that a function
/// makes for a batch.
pub(crate) const BATCH_BYTES_MAX: usize = 1 << 30;

/// The bytes that a constant of the query takes when it is written out for each row of a batch: batches have fewer rows where
/// it would take more.
pub(crate) const CONSTANT_BYTES_WANTED: usize = 64 << 20;

/// The longest FixedString, as in ClickHouse.
pub(crate) const FIXED_STRING_BYTES_MAX: u64 = 0xff_ffff;

/// Expressions that are looked at to find out whether a text is the same in all rows.
pub(crate) const CONSTANT_STEPS_MAX: usize = 10_000;

/// The longest text of statements accepted at once, rows behind VALUES among them: each of its tokens takes some 100
/// bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;

/// What a token of a statement takes until that has run, at most: of rows behind VALUES it becomes an expression and part of
/// a plan.
pub(crate) const TOKEN_BYTES: usize = 640;

/// What one that is blank takes, which is left out when the text is cut: two copies of it with its place, for a moment.
pub(crate) const BLANK_BYTES: usize = 192;

/// The longest statement but for rows behind VALUES, ClickHouse's `max_query_size`.
pub(crate) const QUERY_BYTES_MAX: usize = 262_144;

/// Expressions that one SELECT selects: twice as many take four times as long to plan, these 2 seconds.
pub(crate) const SELECT_COLUMNS_MAX: usize = 10_000;

/// Expressions that one ORDER BY sorts by: likewise, 1 second.
pub(crate) const SORT_COLUMNS_MAX: usize = 1000;

/// Items of a query parameter that are cast one by one, as a list or an array; more of them are cast together.
pub(crate) const LISTED_ITEMS_MAX: usize = 1000;

/// How deep the tree of a statement is, as ClickHouse's `max_ast_depth` has it; `statement/depth.rs` says what counts.
pub(crate) const AST_DEPTH_MAX: usize = 1000;

/// How deep parentheses of a query are.
pub(crate) const PARENTHESES_DEEP_MAX: usize = 256;

/// Blocks of queries that `sleep` at once, each on a thread.
pub const SLEEPERS_MAX: usize = 50;
