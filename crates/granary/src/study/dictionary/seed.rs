//! The seed's experiment: fill and read, ClickHouse and Granary taking turns.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use granary_lab::{ClickHouse, Report, Samples};

use super::INSTALL;
use super::contender::{Engine, Granary, check_query, create, fill_query, read_query};
use super::size::DictionaryStudySize;
use crate::failure::{Failure, Result, at};
use crate::study::figure::{bytes, count, ratio, reached, seconds, times};

/// The contenders of a line.
pub const CONTENDERS: [&str; 3] = ["ClickHouse", "Granary, RAM tier off", "Granary, defaults"];

const MAX_STORED_KEYS: u64 = 2_097_152;
const BLOCK_SIZE: u64 = 4096;
/// The value with which ClickHouse can read any record back: the square of BLOCK_SIZE (its issue 117991).
const READ_BUFFER_SIZE: u64 = BLOCK_SIZE * BLOCK_SIZE;

/// A read's time is the best of this many, as in the experiment that introduced these dictionaries.
const READS_BEST_OF: usize = 3;

/// One line of the table.
pub struct SeedLine {
    pub layout: String,
    pub measure: String,
    /// Seconds, by contender.
    pub samples: [Samples; 3],
    /// Wanted speed of Granary as a multiple of ClickHouse's: with the RAM tier off, and with defaults.
    pub targets: [Option<f64>; 2],
}

/// All lines.
pub struct Seed {
    pub lines: Vec<SeedLine>,
}

#[derive(Clone, Copy)]
enum Measure {
    Fill,
    Read(u64),
    OneKey,
}

/// The program that both engines use as source: the one installed with ClickHouse, or one compiled here.
pub fn source_program(rivals: &Path, scratch: &Path) -> Result<PathBuf> {
    let there = rivals.join("clickhouse/source");
    if there.exists() {
        return Ok(there);
    }
    let made = scratch.join("source");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compiled = Command::new(&compiler)
        .args(["-O2", "-o"])
        .args([&made, &rivals.join("clickhouse/source.c")])
        .status()
        .is_ok_and(|status| status.success());
    match compiled {
        true => Ok(made),
        false => {
            Err(Failure::Argument(format!("{} is not there, nor a C compiler: {INSTALL}", there.display())))
        }
    }
}

/// The source without an engine: start, keys in, rows out.
pub fn source_alone(source: &Path, size: &DictionaryStudySize) -> Result<Samples> {
    let keys: Vec<u8> = (0..size.keys).flat_map(u64::to_le_bytes).collect();
    let mut samples = Samples::default();
    for _ in 0..size.repetitions {
        let start = Instant::now();
        let mut child =
            Command::new(source).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(at(source))?;
        let (mut requests, mut answers) =
            (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let written = requests.write_all(&keys);
                drop(requests);
                written
            });
            let mut rows = Vec::new();
            let read = answers.read_to_end(&mut rows);
            writer.join().expect("it does not panic").and(read.map(|_| ()))
        })
        .map_err(at(source))?;
        child.wait().map_err(at(source))?;
        samples.push(start.elapsed().as_secs_f64());
    }
    Ok(samples)
}

fn clickhouse_layout(size: &DictionaryStudySize, write_buffer: Option<u64>) -> String {
    match write_buffer {
        None => format!("CACHE(SIZE_IN_CELLS {MAX_STORED_KEYS})"),
        Some(write_buffer) => format!(
            "SSD_CACHE(BLOCK_SIZE {BLOCK_SIZE} WRITE_BUFFER_SIZE {write_buffer} FILE_SIZE {} \
             READ_BUFFER_SIZE {READ_BUFFER_SIZE} MAX_STORED_KEYS {MAX_STORED_KEYS} PATH './seed')",
            size.file_size
        ),
    }
}

fn granary_layout(size: &DictionaryStudySize, write_buffer: Option<u64>, contender: usize) -> String {
    let layout = clickhouse_layout(size, write_buffer);
    match contender {
        1 if write_buffer.is_some() => layout.replace(" PATH", " MEMORY_CACHE_SIZE 0 PATH"),
        _ => layout,
    }
}

/// The measures of a layout, with the wanted ratios.
fn measures(size: &DictionaryStudySize, write_buffer: Option<u64>) -> Vec<(Measure, [Option<f64>; 2])> {
    let [short, middle, long] = size.reads;
    let [small, .., one_mib, all] = size.write_buffers;
    let fill = match write_buffer {
        Some(buffer) if buffer == small => Some(50.0),
        Some(buffer) if buffer == one_mib => Some(3.0),
        _ => None,
    };
    let on_disk = write_buffer.is_some_and(|buffer| buffer != all);
    let read = if on_disk { [Some(6.0), Some(10.0)] } else { [None; 2] };
    let million = if write_buffer.is_none() { [None, Some(2.0)] } else { [None; 2] };
    let mut measures = vec![(Measure::Fill, [fill; 2])];
    if on_disk {
        // Before the reads: with a RAM tier they would bring the keys there.
        measures.push((Measure::OneKey, [Some(50.0); 2]));
    }
    measures.extend([
        (Measure::Read(short), read),
        (Measure::Read(middle), read),
        (Measure::Read(long), million),
    ]);
    measures
}

fn run_one(
    engine: &mut dyn Engine,
    size: &DictionaryStudySize,
    measure: Measure,
    round: usize,
) -> Result<f64> {
    match measure {
        Measure::Fill => Ok(engine.run(&fill_query(size.keys))?.0),
        Measure::Read(lookups) => {
            let query = read_query(size.keys, lookups);
            let mut best = f64::INFINITY;
            for _ in 0..READS_BEST_OF {
                best = best.min(engine.run(&query)?.0);
            }
            Ok(best)
        }
        Measure::OneKey => {
            // Keys of the half written first, which have left the write buffer; other ones each round.
            let step = (size.keys / 2 / size.single_keys).max(1);
            let mut samples = Samples::default();
            for i in 0..size.single_keys {
                let key = (i * step + round as u64) % size.keys;
                samples.push(engine.run(&format!("SELECT dictGetString('dict','str',toUInt64({key}))"))?.0);
            }
            Ok(samples.median())
        }
    }
}

fn name(measure: Measure, size: &DictionaryStudySize) -> String {
    match measure {
        Measure::Fill => format!("fill {}", count(size.keys)),
        Measure::Read(lookups) => format!("read {}", count(lookups)),
        Measure::OneKey => "read 1 key".to_owned(),
    }
}

/// Runs the experiment.
pub fn run(
    size: &DictionaryStudySize,
    granary: &mut Granary,
    mut clickhouse: Option<&mut ClickHouse>,
    source: &Path,
) -> Result<Seed> {
    let source = source.display().to_string();
    let mut lines = Vec::new();
    let layouts = std::iter::once(None).chain(size.write_buffers.map(Some));
    for write_buffer in layouts {
        let measures = measures(size, write_buffer);
        let mut table = vec![<[Samples; 3]>::default(); measures.len()];
        for round in 0..size.repetitions {
            for contender in 0..CONTENDERS.len() {
                let engine: &mut dyn Engine = match (contender, &mut clickhouse) {
                    (0, Some(clickhouse)) if round < size.clickhouse_runs(write_buffer) => *clickhouse,
                    (0, _) => continue,
                    // CACHE is RAM only: there is no tier to switch off.
                    (1, _) if write_buffer.is_none() => continue,
                    _ => granary,
                };
                let layout = match contender {
                    0 => clickhouse_layout(size, write_buffer),
                    _ => granary_layout(size, write_buffer, contender),
                };
                create(engine, &layout, &source)?;
                for (line, (measure, _)) in table.iter_mut().zip(&measures) {
                    line[contender].push(run_one(engine, size, *measure, round)?);
                }
                check(engine, size, &format!("{}, {layout}", CONTENDERS[contender]))?;
                engine.run("DROP DICTIONARY dict")?;
            }
        }
        let layout = match write_buffer {
            None => "CACHE".to_owned(),
            Some(buffer) if buffer == size.write_buffers[3] => {
                format!("SSD_CACHE, {} (everything)", bytes(buffer))
            }
            Some(buffer) => format!("SSD_CACHE, {}", bytes(buffer)),
        };
        eprintln!("{layout}: done");
        for (samples, (measure, targets)) in table.into_iter().zip(measures) {
            lines.push(SeedLine { layout: layout.clone(), measure: name(measure, size), samples, targets });
        }
    }
    Ok(Seed { lines })
}

/// Checks the values: a fast engine with wrong ones is worthless.
fn check(engine: &mut dyn Engine, size: &DictionaryStudySize, who: &str) -> Result<()> {
    let (_, right) = engine.run(&check_query(size.keys))?;
    if right.trim() == size.keys.to_string() {
        return Ok(());
    }
    Err(Failure::Answer(format!("{who}: {} of {} values are right", right.trim(), size.keys)))
}

impl Seed {
    /// The table.
    pub fn report(&self) -> Report {
        let mut report = Report::new(&[
            "layout, write buffer",
            "measure",
            "ClickHouse, s",
            "Granary, RAM tier off, s",
            "faster",
            "wanted",
            "reached",
            "Granary, defaults, s",
            "faster",
            "wanted",
            "reached",
        ]);
        for line in &self.lines {
            let [theirs, off, defaults] = &line.samples;
            let mut cells = vec![line.layout.clone(), line.measure.clone(), seconds(theirs)];
            for (ours, target) in [off, defaults].into_iter().zip(line.targets) {
                let ratio = ratio(theirs, ours);
                let wanted = target.map_or("-".to_owned(), |target| times(Some(target)));
                cells.extend([seconds(ours), times(ratio), wanted, reached(ratio, target)]);
            }
            report.row(cells);
        }
        report
    }

    /// For the plot: a group for each fill and each of the middle reads, a bar for each contender.
    pub fn bars(&self, size: &DictionaryStudySize) -> (Vec<&'static str>, Vec<(String, Vec<f64>)>) {
        let shown = [name(Measure::Fill, size), name(Measure::Read(size.reads[1]), size)];
        let groups = self.lines.iter().filter(|line| shown.contains(&line.measure)).map(|line| {
            // Ten names must fit side by side under the axis.
            let layout = line.layout.trim_start_matches("SSD_CACHE, ").trim_end_matches(" (everything)");
            let measure = line.measure.split(' ').next().unwrap_or_default();
            // A contender without runs has no bar.
            let medians = line.samples.iter().map(Samples::median);
            (format!("{layout}: {measure}"), medians.map(|m| if m.is_nan() { 0.0 } else { m }).collect())
        });
        (CONTENDERS.to_vec(), groups.collect())
    }
}
