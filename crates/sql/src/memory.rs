//! The memory that all queries of a process may take together. Caches live in the same process, which one query must
//! not bring down.
//!
//! Two figures are used. What DataFusion's operators reserve is added up as they reserve it. What they do not report
//! (values that functions make, answers in buffers) shows in the allocator: allocated bytes that no cache has count as
//! the queries', sampled now and then.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation};

use crate::catalogue::Catalogue;

type Bytes = dyn Fn() -> u64 + Send + Sync;

/// The process's memory, and its bounds.
#[derive(Clone)]
pub struct MemoryOptions {
    /// Bytes of RAM that the process may use: the machine's, or its control group's.
    pub ram: u64,
    /// Bytes that all queries may take together; `None`: half of what the caches leave of the RAM.
    pub queries: Option<u64>,
    /// Bytes that the process has allocated.
    pub allocated: fn() -> u64,
    /// Bytes of caches that belong to no dictionary.
    pub other_caches: Arc<Bytes>,
}

impl fmt::Debug for MemoryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryOptions")
            .field("ram", &self.ram)
            .field("queries", &self.queries)
            .finish_non_exhaustive()
    }
}

/// Maximum age of the samples: of the allocator, and of the caches, which take longer to sample.
const ALLOCATED_AGE: Duration = Duration::from_millis(5);
const CACHES_AGE: Duration = Duration::from_secs(1);

/// The memory that all queries take, and may take.
pub struct QueryMemory {
    /// `None`: there is no bound.
    options: Option<MemoryOptions>,
    catalogue: OnceLock<Weak<Catalogue>>,
    /// Bytes that operators have reserved.
    reserved: AtomicUsize,
    since: Instant,
    allocated: Sampled,
    caches: Sampled,
}

/// A figure, and when it was sampled.
#[derive(Default)]
struct Sampled {
    bytes: AtomicU64,
    /// Microseconds since the beginning, 0: never.
    at: AtomicU64,
}

impl Sampled {
    /// The figure, sampled anew if it is too old. Several threads may do so at once, harmlessly.
    fn bytes(&self, since: Instant, age: Duration, look: impl FnOnce() -> u64) -> u64 {
        let now = since.elapsed().as_micros() as u64 + 1;
        let at = self.at.load(Ordering::Relaxed);
        if at == 0 || now.saturating_sub(at) > age.as_micros() as u64 {
            self.at.store(now, Ordering::Relaxed);
            self.bytes.store(look(), Ordering::Relaxed);
        }
        self.bytes.load(Ordering::Relaxed)
    }
}

impl QueryMemory {
    pub fn new(options: Option<MemoryOptions>) -> Arc<QueryMemory> {
        Arc::new(QueryMemory {
            options,
            catalogue: OnceLock::new(),
            reserved: AtomicUsize::new(0),
            since: Instant::now(),
            allocated: Sampled::default(),
            caches: Sampled::default(),
        })
    }

    /// Sets the catalogue whose dictionaries are caches.
    pub fn set_catalogue(&self, catalogue: &Arc<Catalogue>) {
        let _ = self.catalogue.set(Arc::downgrade(catalogue));
    }

    /// Bytes of all caches. Layouts that hold all rows are not sampled: a load takes much in little time.
    fn caches(&self, options: &MemoryOptions) -> u64 {
        let catalogue = self.catalogue.get().and_then(Weak::upgrade);
        let look = || (options.other_caches)() + catalogue.as_ref().map_or(0, |known| known.cache_bytes());
        let sampled = self.caches.bytes(self.since, CACHES_AGE, look);
        sampled + catalogue.as_ref().map_or(0, |known| known.full_load_bytes())
    }

    /// Bytes that all queries may take together; `None`: unbounded.
    pub fn limit(&self) -> Option<u64> {
        let options = self.options.as_ref()?;
        Some(options.queries.unwrap_or_else(|| options.ram.saturating_sub(self.caches(options)) / 2))
    }

    /// A reservation of no bytes yet.
    pub fn reservation(self: &Arc<Self>) -> Reservation {
        Reservation { memory: Arc::clone(self), bytes: 0 }
    }

    /// Checks that queries may take `more` bytes.
    ///
    /// # Errors
    /// `ResourcesExhausted`, which is `MEMORY_LIMIT_EXCEEDED`.
    pub fn check(&self, more: usize) -> Result<(), DataFusionError> {
        let (Some(options), Some(limit)) = (&self.options, self.limit()) else { return Ok(()) };
        let reserved = self.reserved.load(Ordering::Relaxed) as u64;
        let taken = |age: Duration| {
            let allocated = self.allocated.bytes(self.since, age, options.allocated);
            reserved.max(allocated.saturating_sub(self.caches(options)))
        };
        let fits = |taken: u64| taken.saturating_add(more as u64) <= limit;
        if fits(taken(ALLOCATED_AGE)) {
            return Ok(());
        }
        // Rows of a dictionary may have been freed since that was sampled: its bytes are no cache's any more.
        let taken = taken(Duration::ZERO);
        match fits(taken) {
            true => Ok(()),
            false => Err(exceeded("total", taken, more, limit)),
        }
    }
}

/// Bytes taken by something that no operator reports, until this is dropped.
pub struct Reservation {
    memory: Arc<QueryMemory>,
    bytes: usize,
}

impl Reservation {
    /// Reserves `bytes` in place of the bytes before.
    ///
    /// # Errors
    /// `ResourcesExhausted`; then nothing is reserved.
    pub fn resize(&mut self, bytes: usize) -> Result<(), DataFusionError> {
        self.memory.reserved.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
        self.memory.check(bytes)?;
        self.memory.reserved.fetch_add(bytes, Ordering::Relaxed);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The error, as ClickHouse words it.
fn exceeded(whose: &str, taken: u64, more: usize, limit: u64) -> DataFusionError {
    let would = taken.saturating_add(more as u64);
    let remedy = match whose {
        "total" => {
            "all queries together take no more, for the caches have the rest; ask for less at a time, or start the server with a larger --query-memory"
        }
        _ => "ask for less at a time, or raise max_memory_usage",
    };
    DataFusionError::ResourcesExhausted(format!(
        "Memory limit ({whose}) exceeded: would use {} (attempt to allocate chunk of {more} bytes), maximum: {}: {remedy}",
        size(would),
        size(limit)
    ))
}

/// `1.50 GiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(UNITS.len() as u32 - 1);
    format!("{:.2} {}", bytes as f64 / (1u64 << (10 * unit)) as f64, UNITS[unit as usize])
}

/// The memory that the operators of one query reserve.
#[derive(Debug)]
pub struct QueryPool {
    reserved: AtomicUsize,
    /// max_memory_usage; `None`: the limit of all queries.
    limit: Option<u64>,
    all: Arc<QueryMemory>,
    /// Why a reservation was last refused. Operators that would spill to disk report instead that they cannot.
    refusal: Mutex<Option<String>>,
}

impl fmt::Debug for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryMemory").field("reserved", &self.reserved).finish_non_exhaustive()
    }
}

impl QueryPool {
    /// `limit` is the query's own; 0: none.
    pub fn new(limit: u64, all: Arc<QueryMemory>) -> QueryPool {
        let limit = Some(limit).filter(|limit| *limit > 0);
        QueryPool { reserved: AtomicUsize::new(0), limit, all, refusal: Mutex::default() }
    }

    /// Replaces the error of an operator that failed for memory by the reason its reservation was refused.
    pub fn explain(&self, error: DataFusionError) -> DataFusionError {
        let DataFusionError::ResourcesExhausted(text) = error.find_root() else { return error };
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match refusal {
            Some(refusal) if !text.contains("Memory limit (") => DataFusionError::ResourcesExhausted(refusal),
            _ => error,
        }
    }

    fn check(&self, more: usize) -> Result<(), DataFusionError> {
        let taken = self.reserved.load(Ordering::Relaxed) as u64;
        match self.limit {
            Some(limit) if taken.saturating_add(more as u64) > limit => {
                Err(exceeded("for query", taken, more, limit))
            }
            _ => self.all.check(more),
        }
    }
}

impl fmt::Display for QueryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("granary")
    }
}

impl MemoryPool for QueryPool {
    fn name(&self) -> &str {
        "granary"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.reserved.fetch_add(additional, Ordering::Relaxed);
        self.all.reserved.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.reserved.fetch_sub(shrink, Ordering::Relaxed);
        self.all.reserved.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        self.check(additional).inspect_err(|error| {
            if let DataFusionError::ResourcesExhausted(text) = error {
                *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.clone());
            }
        })?;
        self.grow(reservation, additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::MemoryConsumer;

    fn memory(queries: Option<u64>, ram: u64) -> Arc<QueryMemory> {
        QueryMemory::new(Some(MemoryOptions {
            ram,
            queries,
            allocated: || 0,
            other_caches: Arc::new(|| 400),
        }))
    }

    #[test]
    fn queries_share_what_there_is_and_give_it_back() {
        let all = memory(Some(1000), 0);
        let [first, second] = [0, 300]
            .map(|limit| -> Arc<dyn MemoryPool> { Arc::new(QueryPool::new(limit, Arc::clone(&all))) });
        let one = MemoryConsumer::new("one").register(&first);
        let two = MemoryConsumer::new("two").register(&second);
        one.try_grow(800).unwrap();
        let refused = two.try_grow(201).unwrap_err().to_string();
        assert!(refused.contains("Memory limit (total) exceeded: would use 1001.00 B"), "{refused}");
        two.try_grow(200).unwrap();
        drop(one);
        let refused = two.try_grow(101).unwrap_err().to_string();
        assert!(refused.contains("Memory limit (for query) exceeded: would use 301.00 B"), "{refused}");
        two.try_grow(100).unwrap();
        drop(two);
        assert_eq!(all.reserved.load(Ordering::Relaxed), 0);
    }

    /// An operator that cannot spill to disk reports that, and not why it wanted to.
    #[test]
    fn the_reason_is_the_limit_and_not_that_nothing_is_written_to_disk() {
        let query = Arc::new(QueryPool::new(300, memory(Some(1000), 0)));
        let spilled = || DataFusionError::ResourcesExhausted("Memory Exhausted while Spilling".to_owned());
        let other = query.explain(DataFusionError::Plan("x".to_owned())).to_string();
        assert!(other.contains('x'), "{other}");
        assert!(query.explain(spilled()).to_string().contains("Spilling"), "nothing was refused");
        let pool: Arc<dyn MemoryPool> = Arc::clone(&query) as _;
        MemoryConsumer::new("one").register(&pool).try_grow(301).unwrap_err();
        let explained = query.explain(spilled().context("of an operator")).to_string();
        assert!(explained.contains("Memory limit (for query) exceeded: would use 301.00 B"), "{explained}");
    }

    #[test]
    fn what_no_operator_tells_of_is_reserved_too() {
        let all = memory(Some(1000), 0);
        let [mut one, mut other] = [all.reservation(), all.reservation()];
        one.resize(900).unwrap();
        other.resize(101).unwrap_err();
        one.resize(1000).unwrap();
        one.resize(1001).unwrap_err();
        other.resize(1000).unwrap();
        drop(other);
        assert_eq!(all.reserved.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn half_of_what_caches_leave_is_for_queries() {
        assert_eq!(memory(None, 2400).limit(), Some(1000));
        assert_eq!(memory(None, 300).limit(), Some(0));
        assert_eq!(QueryMemory::new(None).limit(), None);
    }

    #[test]
    fn what_the_allocator_shows_counts() {
        let options =
            MemoryOptions { ram: 0, queries: Some(1000), allocated: || 1300, other_caches: Arc::new(|| 400) };
        let all = QueryMemory::new(Some(options));
        all.check(100).unwrap();
        assert!(all.check(101).is_err(), "900 bytes are no cache's");
    }

    #[test]
    fn sizes_have_units() {
        let sizes = [0, 1023, 1024, 3 << 29, 5 << 40].map(size);
        assert_eq!(sizes, ["0.00 B", "1023.00 B", "1.00 KiB", "1.50 GiB", "5.00 TiB"]);
    }
}
