//! The cost of keys in another process: the time of a query whose dictionary is DIRECT on Granary, minus that of the
//! same query with all keys in ClickHouse's own RAM.

use std::path::Path;
use std::time::Instant;

use granary_lab::{ClickHouse, Report, Samples};

use super::contender::{ATTRIBUTES, create, granary_ssd_cache, over_http};
use super::size::ProxyStudySize;
use super::stream::{Batch, Stream};
use crate::failure::{Failure, Result};
use crate::study::figure::count;
use crate::study::postgres::Postgres;
use crate::study::process::free_port;
use crate::study::served::Served;

/// Formats of keys and rows on the wire.
pub const FORMATS: [&str; 3] = ["Native", "RowBinary", "TabSeparated"];
/// Maximum milliseconds of a hop: with one key, and with a block of them.
const WANTED_MS: [f64; 2] = [1.5, 20.0];

/// Milliseconds for one number of keys.
#[derive(Default)]
pub struct HopLine {
    pub keys: usize,
    /// ClickHouse's CACHE, with all keys resident.
    pub in_ram: Samples,
    /// DIRECT on Granary, which has all keys, by format.
    pub direct: [Samples; FORMATS.len()],
    /// The requests alone, without ClickHouse, by format.
    pub requests: [Samples; FORMATS.len()],
}

impl HopLine {
    /// Milliseconds that the hop adds, by format.
    pub fn hops(&self) -> [f64; FORMATS.len()] {
        [0, 1, 2].map(|format: usize| self.direct[format].median() - self.in_ram.median())
    }
}

/// One key, and a block of keys.
pub struct Hop {
    pub lines: [HopLine; 2],
}

/// Runs the measurements.
pub fn run(
    size: &ProxyStudySize,
    scratch: &Path,
    rivals: &Path,
    postgres: &Postgres,
    stream: &Stream,
    has_clickhouse: bool,
) -> Result<Hop> {
    let folder = scratch.join("hop");
    let served = Served::start(&folder.join("granary"), free_port()?)?;
    let source = postgres.source("users");
    served.ask(&create("users", &source, &granary_ssd_cache(size)))?;
    let batch = &stream.batches[0];
    let rows = served.post("/dictionary/users", &batch.bytes())?;
    batch.check(size, &rows)?;

    let mut clickhouse = None;
    if has_clickhouse {
        stream.write(&folder.join("clickhouse"))?;
        let mut started = ClickHouse::start(rivals, &folder.join("clickhouse"))?;
        started.run(&create("ram", &source, &format!("CACHE(SIZE_IN_CELLS {})", size.cells)))?;
        for format in FORMATS {
            started.run(&create(format, &over_http(&served.url, format), "DIRECT()"))?;
        }
        clickhouse = Some(started);
    }
    let mut lines = <[HopLine; 2]>::default();
    lines[0].keys = 1;
    lines[1].keys = batch.keys.len();
    for i in 0..size.single_queries {
        let key = batch.keys[i * batch.keys.len() / size.single_queries];
        let one = Batch { file: String::new(), keys: vec![key], checksum: String::new() };
        let query =
            |dictionary: &str| format!("SELECT dictGet('{dictionary}', {ATTRIBUTES}, toUInt64({key}))");
        measure(&mut lines[0], clickhouse.as_mut(), &served, &one, query)?;
    }
    for _ in 0..size.batch_queries {
        measure(&mut lines[1], clickhouse.as_mut(), &served, batch, |dictionary| batch.query(dictionary))?;
    }
    drop(clickhouse);
    served.stop()?;
    Ok(Hop { lines })
}

/// One round: all are asked the same.
fn measure(
    line: &mut HopLine,
    clickhouse: Option<&mut ClickHouse>,
    served: &Served,
    batch: &Batch,
    query: impl Fn(&str) -> String,
) -> Result<()> {
    if let Some(clickhouse) = clickhouse {
        // This first query brings the keys into RAM.
        let right = clickhouse.run(&query("ram"))?.1;
        let mut ask = |dictionary: &str, samples: &mut Samples| {
            let (seconds, answer) = clickhouse.run(&query(dictionary))?;
            samples.push(seconds * 1e3);
            match answer == right {
                true => Ok(()),
                false => Err(Failure::Answer(answer)),
            }
        };
        ask("ram", &mut line.in_ram)?;
        for (format, samples) in FORMATS.into_iter().zip(&mut line.direct) {
            ask(format, samples)?;
        }
    }
    for (format, samples) in FORMATS.into_iter().zip(&mut line.requests) {
        let path = format!("/dictionary/users?format={format}");
        let body = match format {
            "RowBinary" => batch.bytes(),
            "Native" => native(&batch.keys),
            _ => batch.keys.iter().map(|key| format!("{key}\n")).collect::<String>().into_bytes(),
        };
        let start = Instant::now();
        served.post(&path, &body)?;
        samples.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

/// A Native block with one column.
fn native(keys: &[u64]) -> Vec<u8> {
    let mut block = vec![1];
    let mut length = keys.len();
    while length > 127 {
        block.push(length as u8 & 127 | 128);
        length >>= 7;
    }
    block.push(length as u8);
    block.extend_from_slice(b"\x02id\x06UInt64");
    keys.iter().for_each(|key| block.extend_from_slice(&key.to_le_bytes()));
    block
}

impl Hop {
    /// A line for each number of keys and format.
    pub fn report(&self) -> Report {
        let mut report = Report::new(&[
            "keys",
            "format",
            "ClickHouse's CACHE, ms",
            "DIRECT on Granary, ms",
            "the hop, ms",
            "wanted",
            "reached",
            "the request alone, ms",
        ]);
        let ms = |value: f64| if value.is_nan() { "-".to_owned() } else { format!("{value:.2}") };
        for (line, wanted) in self.lines.iter().zip(WANTED_MS) {
            for (i, hop) in line.hops().into_iter().enumerate() {
                report.row([
                    count(line.keys as u64),
                    FORMATS[i].to_owned(),
                    ms(line.in_ram.median()),
                    ms(line.direct[i].median()),
                    ms(hop),
                    format!("{wanted} at most"),
                    if hop.is_nan() {
                        "-"
                    } else if hop <= wanted {
                        "yes"
                    } else {
                        "no"
                    }
                    .to_owned(),
                    ms(line.requests[i].median()),
                ]);
            }
        }
        report
    }
}
