//! Every bound on what comes from outside, in one place.

pub use granary_cache::limits::DEFAULT_MEMORY_FOLDER;

/// Key columns and attributes of one dictionary.
pub const COLUMNS_MAX: usize = 1000;
/// Bytes of one CREATE statement or XML document.
pub const STATEMENT_BYTES_MAX: usize = 1 << 20;
/// How deep parentheses or XML elements nest.
pub const NESTING_MAX: usize = 16;
/// Entries keep their expiry as 32-bit Unix seconds; ten years leave room until 2096.
pub const LIFETIME_SECONDS_MAX: u64 = 10 * 366 * 86_400;
/// How much later than LIFETIME from now an entry may expire before it counts as got while the clock was ahead: more
/// than a lookup lasts.
pub const CLOCK_STEP_SECONDS: u64 = 3600;
/// Keys in one request to a source; bigger batches are cut.
pub const KEYS_PER_REQUEST_MAX: usize = 1 << 16;
/// Keys written into one SQL statement; MySQL's optimizer gives up on ranges somewhere above.
pub const KEYS_PER_STATEMENT_MAX: usize = 1 << 14;
/// Bytes of keys in one SQL statement, unless a single one has more: ClickHouse takes 256 KiB in all.
pub const STATEMENT_KEYS_BYTES: usize = 192 << 10;
/// Keys of one MGET or HMGET, as in ClickHouse.
pub const REDIS_KEYS_MAX: usize = 8192;
/// Bytes of the answer to one MGET or HMGET, if no value is longer than those before it.
pub const REDIS_ANSWER_BYTES: usize = 64 << 20;
/// Keys of one find in MongoDB, written as a list.
pub const MONGODB_KEYS_MAX: usize = 1 << 14;
/// Keys of one find if they have several columns, where the server plans each key by itself.
pub const MONGODB_TUPLES_MAX: usize = 1 << 10;
/// Bytes of the keys of one find, after which no key is added: MongoDB takes 16 MiB in all.
pub const MONGODB_KEYS_BYTES: usize = 8 << 20;
/// How deep MongoDB's documents nest; MongoDB itself allows 100.
pub const BSON_NESTING_MAX: usize = 128;
/// Keys in one lookup; the callers' batches are a few thousand to a few million.
pub const KEYS_PER_LOOKUP_MAX: usize = 1 << 30;
/// Lookups that wait for sources at once, of all dictionaries of an environment; each holds threads.
pub const LOOKUPS_WAITING_MAX: usize = 200;
/// Lookups of one dictionary that wait at once: a silent source leaves half of the places to others.
pub const LOOKUPS_WAITING_OF_ONE_MAX: usize = LOOKUPS_WAITING_MAX / 2;
/// Rows of one batch of `Dictionary::resident`, which one step of the cache or of a source may exceed.
pub const RESIDENT_BATCH_ROWS: usize = 1 << 13;
/// Bytes of a batch's values after which it takes no further step.
pub const RESIDENT_BATCH_BYTES: usize = 4 << 20;
/// Bytes read at once of an answer that is read while it comes.
pub const ANSWER_PIECE_BYTES: u64 = 1 << 16;
/// Most requests into which one that fails for what it asks is divided.
pub const PARTS_MAX: usize = 64;
/// Requests in a row that fail for what they ask before that counts as an outage of the source.
pub const REFUSALS_MAX: u32 = 16;
/// Keys of a dictionary that are remembered because requests for them failed.
pub const KEYS_REFUSED_MAX: usize = 4096;
/// Longest wait between two tries of a failing source, in seconds.
pub const BACKOFF_SECONDS_MAX: u64 = 600;
/// Changed rows that one look at UPDATE_FIELD takes in; with more, all entries are forgotten.
pub const CHANGES_MAX: usize = 1 << 20;
/// Seconds by which the first watermark of UPDATE_FIELD is earlier than UPDATE_LAG says.
pub const FIRST_WATERMARK_SECONDS: u64 = 1;
/// Bytes of a child process's standard error kept for the error message.
pub const STDERR_TAIL_BYTES: usize = 4096;
/// Maximum bytes of one row that a child process writes.
pub const ROW_BYTES_MAX: usize = 64 << 20;
/// Maximum bytes of one answer of a source that is read whole.
pub const ANSWER_BYTES_MAX: u64 = 2 << 30;
/// Bytes of a file that is read for each request.
pub const SOURCE_FILE_BYTES_MAX: u64 = 256 << 20;
/// Processes of one EXECUTABLE_POOL.
pub const PROCESSES_MAX: u64 = 1 << 16;
/// Regular expressions of one REGEXP_TREE.
pub const REGEXPS_MAX: usize = 1 << 17;
/// Bytes of the text of one regular expression.
pub const REGEXP_TEXT_BYTES_MAX: usize = 64 << 10;
/// Bytes that one compiled regular expression takes.
pub const REGEXP_BYTES_MAX: usize = 8 << 20;
/// Bytes that all compiled regular expressions take.
pub const REGEXPS_BYTES_MAX: usize = 1 << 30;
/// Bytes of a thread's search cache for one regular expression,
pub const REGEXP_CACHE_BYTES: usize = 256 << 10;
/// and for all of them.
pub const REGEXP_CACHES_BYTES: usize = 256 << 20;
/// Bytes of all needed texts of the expressions; expressions beyond are tried each time.
pub const REGEXP_NEEDED_BYTES_MAX: usize = 4 << 20;
/// How deep a YAML file nests.
pub const YAML_NESTING_MAX: usize = 128;
/// Rows of an answer that are decoded into all their columns before the next ones, so that they stay in the processor's
/// nearest cache meanwhile.
pub const DECODED_ROWS: usize = 256;
/// Length from which a row of RowBinary, or the text of an array, a map or a tuple, is checked for the memory that it
/// will take.
pub const LONG_ROW_BYTES: usize = 64 << 10;
/// Members or items of one row of JSON.
pub const JSON_MEMBERS_MAX: usize = 1 << 16;
/// Values of one array in Arrow for which no byte of its own has come: those of the type Null, and runs.
pub const ARROW_VALUES_MAX: usize = 1 << 20;
/// Bytes of the names and types of columns in the head of a block, or of a stream.
pub const HEAD_BYTES_MAX: usize = 4 << 20;
/// Smallest and largest BLOCK_SIZE, in bytes.
pub const BLOCK_BYTES_MIN: u64 = 512;
/// See `BLOCK_BYTES_MIN`.
pub const BLOCK_BYTES_MAX: u64 = 1 << 20;
/// Largest data file, in bytes: a block number has 32 bits.
pub const FILE_BYTES_MAX: u64 = 1 << 44;
/// Largest SIZE_IN_CELLS and MAX_STORED_KEYS.
pub const CELLS_MAX: u64 = 1 << 36;
/// Threads that ask one dictionary's source.
pub const SOURCE_THREADS_MAX: u64 = 256;
/// Longest of the timeouts, in milliseconds: a day.
pub const TIMEOUT_MS_MAX: u64 = 86_400_000;
/// Largest MAX_REQUESTS_PER_SECOND: the moment of each is remembered for a second.
pub const REQUESTS_PER_SECOND_MAX: u64 = 10_000;
/// Requests waiting for a source thread.
pub const QUEUE_MAX: u64 = 10_000_000;
/// Keys of the queued requests of one dictionary, after which no request is added.
pub const QUEUE_KEYS_MAX: usize = 1 << 25;

const _: () = assert!(REGEXP_BYTES_MAX < REGEXPS_BYTES_MAX);
const _: () = assert!(STDERR_TAIL_BYTES < ROW_BYTES_MAX);
const _: () = assert!(KEYS_PER_REQUEST_MAX < KEYS_PER_LOOKUP_MAX);
const _: () = assert!(KEYS_PER_STATEMENT_MAX <= KEYS_PER_REQUEST_MAX);
const _: () = assert!(MONGODB_TUPLES_MAX <= MONGODB_KEYS_MAX && MONGODB_KEYS_MAX <= KEYS_PER_REQUEST_MAX);
const _: () = assert!(LOOKUPS_WAITING_OF_ONE_MAX < LOOKUPS_WAITING_MAX);
const _: () = assert!(KEYS_PER_REQUEST_MAX < QUEUE_KEYS_MAX);
const _: () = assert!(LIFETIME_SECONDS_MAX < (u32::MAX / 2) as u64);

/// Blocks of a partition of an SSD_CACHE: 16 GiB of 4 KiB each.
pub const PARTITION_BLOCKS_MAX: u64 = 1 << 22;

/// Bytes of WRITE_BUFFER_SIZE that all partitions of an SSD_CACHE have together.
pub const PARTITION_BUFFERS_BYTES_MAX: u64 = 64 << 20;
