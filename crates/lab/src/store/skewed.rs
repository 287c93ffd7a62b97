//! Skewed point reads: Granary against RocksDB with every split of its RAM, with equal RAM of the processes, and with
//! several keys known at once.

use super::contender::{Contender, Engine, GRANARY, LEVELDB, LEVELDB_READ, ROCKSDB};
use super::error::StoreError;
use super::page::{add_runs, number, reached};
use super::run::{Job, Runner, Runs, median, samples};
use super::study::{Size, VALUE_BYTES, job};
use crate::Report;

const BLOCK_BYTES: u64 = 4096;
const WORKLOAD: &str = "zipf";

/// Percent of RocksDB's RAM for rows.
pub(super) const ROW_PERCENTS: [u64; 5] = [0, 25, 50, 75, 100];

/// Keys that are looked up together.
const KEYS_AT_ONCE: u64 = 32;

/// Maximum number of times that RocksDB's caches are raised until its process has as much RAM as Granary's,
const RAISES: usize = 2;

/// which it has if at most this part is missing.
const MISSING_PART: f64 = 0.03;

/// Jobs and their results.
#[derive(Default)]
struct Rows {
    jobs: Vec<Job>,
    runs: Vec<Runs>,
}

impl Rows {
    fn measure(runner: &Runner<'_>, jobs: Vec<Job>) -> Result<Self, StoreError> {
        let runs = runner.measure(&jobs)?;
        Ok(Self { jobs, runs })
    }

    fn mean_us(&self, place: usize) -> f64 {
        median(&self.runs[place], 0, |phase| phase.mean_us)
    }

    /// RAM of the process.
    fn memory_bytes(&self, place: usize) -> f64 {
        let runs = self.runs[place].as_ref();
        runs.map_or(f64::NAN, |runs| samples(runs, |measured| measured.memory_bytes as f64).median())
    }

    /// The fastest peer (Granary is the first job); the first peer if none was measured.
    fn fastest_peer(&self) -> usize {
        let measured = (1..self.jobs.len()).filter(|place| self.mean_us(*place).is_finite());
        measured.min_by(|one, other| self.mean_us(*one).total_cmp(&self.mean_us(*other))).unwrap_or(1)
    }

    fn add(&self, report: &mut Report) {
        for place in 0..self.jobs.len() {
            let figure = |figure: fn(&super::measurement::Phase) -> f64| median(&self.runs[place], 0, figure);
            report.row([
                name(&self.jobs[place]),
                number(self.mean_us(place), 2),
                number(figure(|phase| phase.p50_us.unwrap_or(f64::NAN)), 2),
                number(figure(|phase| phase.p99_us.unwrap_or(f64::NAN)), 1),
                number(figure(|phase| phase.reads_per_operation()), 3),
                number(self.memory_bytes(place) / 1e6, 0),
            ]);
        }
    }
}

/// Figures of Granary, and of its peers.
pub struct SkewedReads {
    /// Granary, and RocksDB's splits of the same size of caches.
    splits: Rows,
    /// Granary, and RocksDB with caches so large that its process has about the same RAM.
    same_memory: Rows,
    /// Granary first. Contenders that can are asked for several keys at once.
    at_once: Rows,
}

impl SkewedReads {
    /// Loads the stores and reads them.
    pub fn run(runner: &Runner<'_>, size: &Size) -> Result<Self, StoreError> {
        let contents = |engine| runner.contents(engine, size.medium_keys, VALUE_BYTES, BLOCK_BYTES, false);
        let of = |contender: &Contender, caches| {
            job(contender, contents(contender.engine), WORKLOAD, caches, size.medium_operations)
        };
        let engines = [Engine::Granary, Engine::LevelDb, Engine::RocksDb];
        for engine in engines {
            runner.load(engine, &contents(engine))?;
        }
        let granary = of(&GRANARY, [size.medium_cache, 0]);
        let mut jobs = vec![granary.clone()];
        jobs.extend(ROW_PERCENTS.map(|percent| {
            let rows = size.medium_cache * percent / 100;
            of(&ROCKSDB, [size.medium_cache - rows, rows])
        }));
        let splits = Rows::measure(runner, jobs)?;

        let fastest = splits.fastest_peer();
        let caches_of = |job: &Job| -> [u64; 2] { [job.reading.cache_bytes, job.reading.row_cache_bytes] };
        let mut caches = caches_of(&splits.jobs[fastest]);
        let mut missing = splits.memory_bytes(0) - splits.memory_bytes(fastest);
        let mut same_memory = Rows::default();
        for _ in 0..RAISES {
            // NaN: RocksDB is missing.
            if missing.is_nan() || missing <= MISSING_PART * splits.memory_bytes(0) {
                break;
            }
            caches = raised(caches, missing as u64);
            same_memory = Rows::measure(runner, vec![granary.clone(), of(&ROCKSDB, caches)])?;
            missing = same_memory.memory_bytes(0) - same_memory.memory_bytes(1);
        }

        let with_keys_at_once = |mut job: Job| {
            job.reading.keys_at_once = KEYS_AT_ONCE;
            job
        };
        let jobs = vec![
            with_keys_at_once(granary.clone()),
            of(&LEVELDB, [size.medium_cache, 0]),
            of(&LEVELDB_READ, [size.medium_cache, 0]),
            with_keys_at_once(of(&ROCKSDB, caches_of(&splits.jobs[fastest]))),
        ];
        let at_once = Rows::measure(runner, jobs)?;
        runner.remove(&engines);
        Ok(Self { splits, same_memory, at_once })
    }

    /// The tables, as Markdown.
    pub fn text(&self) -> String {
        let headings = ["who", "mean, us", "median, us", "p99, us", "reads an operation", "MB of RAM"];
        let mut report = Report::new(&headings);
        self.splits.add(&mut report);
        let fastest = self.splits.fastest_peer();
        let verdict = verdict(&self.splits, fastest, "with as large caches");
        let mut text = format!("{}\n\n{verdict}", report.markdown());
        if self.same_memory.jobs.len() > 1 {
            let mut report = Report::new(&headings);
            self.same_memory.add(&mut report);
            text += &format!(
                "\nThe fastest split with caches of {} MB, so that the process has about as much RAM:\n\n{}\n\n",
                number(cache_bytes(&self.same_memory.jobs[1]) as f64 / 1e6, 0),
                report.markdown()
            );
            text += &self::verdict(&self.same_memory, 1, "with about as much RAM");
        }
        let mut report = Report::new(&headings);
        self.at_once.add(&mut report);
        text + &format!(
            "\n### {KEYS_AT_ONCE} keys known at once\n\n{KEYS_AT_ONCE} keys are asked for together by one thread: \
             `Cache::get_many` in Granary, `MultiGet` in RocksDB, with the fastest split of above. LevelDB has no \
             such call and is asked for one key after the other, as above, so that its device has one read to do at \
             a time. Debian's RocksDB is built without io_uring, so that `MultiGet` reads its blocks one after the \
             other, too. Times are of a key: those of a call divided by its keys.\n\n{}\n",
            report.markdown()
        )
    }

    /// Adds the part's lines to the CSV.
    pub fn csv(&self, report: &mut Report) {
        for rows in [&self.splits, &self.same_memory, &self.at_once] {
            for (job, runs) in rows.jobs.iter().zip(&rows.runs) {
                add_runs(report, "skewed", &name(job), job, runs);
            }
        }
    }
}

fn cache_bytes(job: &Job) -> u64 {
    job.reading.cache_bytes + job.reading.row_cache_bytes
}

fn name(job: &Job) -> String {
    let name = match job.contender.engine {
        Engine::Granary => "Granary, divides itself".to_owned(),
        Engine::LevelDb => job.contender.name.to_owned(),
        Engine::RocksDb => format!("RocksDB, {} % rows", row_percent(job)),
    };
    match job.reading.keys_at_once {
        1 => name,
        keys => format!("{name}, {keys} at once"),
    }
}

/// Whether the first row is as fast as the peer's, and the RAM of both.
fn verdict(rows: &Rows, peer: usize, how: &str) -> String {
    let (ours, theirs) = (rows.mean_us(0), rows.mean_us(peer));
    format!(
        "At or below RocksDB's best split {how} ({} us, {} MB of RAM; Granary: {} us, {} MB): {}.\n",
        number(theirs, 2),
        number(rows.memory_bytes(peer) / 1e6, 0),
        number(ours, 2),
        number(rows.memory_bytes(0) / 1e6, 0),
        reached(theirs - ours, ours <= theirs)
    )
}

/// Caches with `more` bytes added, in the same ratio.
fn raised([blocks, rows]: [u64; 2], more: u64) -> [u64; 2] {
    let to_rows = (u128::from(more) * u128::from(rows) / u128::from((blocks + rows).max(1))) as u64;
    [blocks + more - to_rows, rows + to_rows]
}

/// Percent of a job's RAM for rows.
pub(super) fn row_percent(job: &Job) -> u64 {
    (job.reading.row_cache_bytes * 100 + cache_bytes(job) / 2) / cache_bytes(job).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::measurement::{Contents, Measured, Phase};
    use super::*;

    #[test]
    fn caches_are_raised_in_the_same_parts() {
        assert_eq!(raised([100, 0], 50), [150, 0]);
        assert_eq!(raised([25, 75], 100), [50, 150]);
        assert_eq!(raised([0, 32 << 20], 7), [0, (32 << 20) + 7]);
    }

    fn rows(of: &[Option<(f64, u64)>]) -> Rows {
        let contents = Contents {
            folder: "store".into(),
            keys: 10_000,
            value_bytes: 100,
            in_key_order: false,
            block_bytes: 4096,
        };
        let measured = |(mean_us, memory_bytes)| {
            let name = WORKLOAD.to_owned();
            let (p50_us, p99_us, reads, windows) = (None, None, None, Vec::new());
            let (operations, hits, read_bytes) = (1, 1, 0);
            let phase = Phase { name, operations, mean_us, p50_us, p99_us, hits, reads, read_bytes, windows };
            vec![Measured { phases: vec![phase], memory_bytes, device_us: None, block_bytes: Vec::new() }]
        };
        let one = job(&ROCKSDB, contents, WORKLOAD, [1 << 20, 0], 1);
        Rows { jobs: vec![one; of.len()], runs: of.iter().map(|of| of.map(measured)).collect() }
    }

    #[test]
    fn verdicts_name_the_fastest_peer_and_its_memory() {
        let all = rows(&[Some((20.0, 89_000_000)), Some((35.0, 56_000_000)), None, Some((24.5, 62_000_000))]);
        assert_eq!(all.fastest_peer(), 3);
        let said = verdict(&all, 3, "here");
        assert!(said.contains("here (24.50 us, 62 MB of RAM; Granary: 20.00 us, 89 MB): yes."), "{said}");
        let slower = rows(&[Some((20.0, 1)), Some((19.9, 1))]);
        assert!(verdict(&slower, 1, "").ends_with(": no.\n"));
        let alone = rows(&[Some((20.0, 1)), None]);
        assert!(verdict(&alone, alone.fastest_peer(), "").ends_with(": -.\n"));
    }
}
