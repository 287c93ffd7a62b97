//! Space use of a segment and reads of flash, by sizes of blocks and objects: measured on the cache itself, on a disk.

use std::path::Path;

use granary_lab::{OBJECT_SIZES, Report, SpaceUse, space_use};

use crate::failure::Result;
use crate::progress::bar;
use crate::scratch::Scratch;

/// Bytes of a block.
const BLOCKS: [u64; 4] = [4 << 10, 8 << 10, 16 << 10, 64 << 10];

/// Bytes of a run's file, and of a quick run's.
const FILE_BYTES: u64 = 64 << 20;
const QUICK_FILE_BYTES: u64 = 32 << 20;

/// The paper's figure, and the wanted one.
const PAPER: f64 = 0.99;
const WANTED: f64 = 0.97;

/// By [`OBJECT_SIZES`] and, within, by [`BLOCKS`].
pub struct SegmentSpace {
    file_bytes: u64,
    runs: Vec<[SpaceUse; BLOCKS.len()]>,
}

impl SegmentSpace {
    /// Runs all measurements, in a new folder inside `folder`.
    pub fn measure(folder: &Path, quick: bool) -> Result<Self> {
        let scratch = Scratch::new(folder)?;
        let file_bytes = if quick { QUICK_FILE_BYTES } else { FILE_BYTES };
        let bar = bar((OBJECT_SIZES.len() * BLOCKS.len()) as u64);
        let mut runs = Vec::new();
        for (name, size) in OBJECT_SIZES {
            bar.set_message(name);
            let mut of_size = Vec::new();
            for block in BLOCKS {
                let path = scratch.path.join("space");
                of_size.push(space_use(&path, file_bytes, block, size)?);
                // It cannot be reopened with another block size; removing it keeps the folder small.
                for suffix in ["bin", "state", "journal.0", "journal.1"] {
                    let _ = std::fs::remove_file(path.with_extension(suffix));
                }
                bar.inc(1);
            }
            runs.push(of_size.try_into().expect("one for each"));
        }
        bar.finish_and_clear();
        Ok(Self { file_bytes, runs })
    }

    /// A line for each size of objects, a column for each size of blocks.
    fn table(&self, figure: impl Fn(&SpaceUse) -> String) -> Report {
        let columns = BLOCKS.map(|block| format!("{} KiB", block >> 10));
        let headings: Vec<&str> = ["objects"].into_iter().chain(columns.iter().map(String::as_str)).collect();
        let mut report = Report::new(&headings);
        for ((name, _), runs) in OBJECT_SIZES.iter().zip(&self.runs) {
            report.row([(*name).to_owned()].into_iter().chain(runs.iter().map(&figure)));
        }
        report
    }

    /// The section of the page.
    pub fn text(&self) -> String {
        let percent = |share: f64| match share >= WANTED {
            true => format!("{:.1} %", share * 100.0),
            false => format!("{:.1} % (no)", share * 100.0),
        };
        let paper = self.runs[0];
        let mut beside = Report::new(&["", "paper", "wanted", "here, 257 bytes each, blocks of 4 KiB"]);
        for (name, theirs, wanted, ours) in [
            ("segment filled", format!("{:.0} %", PAPER * 100.0), "97 %", percent(paper[0].records_share())),
            ("reads of flash a hit", "1.03".to_owned(), "1.03", format!("{:.3}", paper[0].reads_per_hit)),
            (
                "reads of flash a miss",
                "0.01 a filter".to_owned(),
                "0.02",
                format!("{:.3}", paper[0].reads_per_miss),
            ),
            (
                "RAM of the index an object",
                "under 4 bytes".to_owned(),
                "4 bytes",
                format!("{:.2} bytes", paper[0].index_bytes_per_object()),
            ),
        ] {
            beside.row([name.to_owned(), theirs, wanted.to_owned(), ours]);
        }
        format!(
            "\
The paper finds a place for an object inside its segment by one of 16 hash functions, which fills {paper:.0} % of it. \
Granary has no such functions: records lie one after the other in blocks, the index knows the block, and the key finds \
its own inside. What decides instead is how large blocks are. Measured on the cache itself, in a file of {file} MiB \
with segments of 4 MiB; records with their headers and their entries in the segment's summary, of all bytes written; \
*no*: less than the {wanted:.0} % that we want.

{beside}

Segment filled, by the size of blocks:

{records}

A record that does not fit the rest of a block begins another one; shorter ones that come soon fill the gap. One that \
is longer than a block leaves the rest of its last block. So objects much smaller than a block, or of many sizes, fill \
segments; those that are all of about half a block, or just over one, waste up to half. Larger blocks waste less of \
that and read more. Keys and values alone:

{objects}

First reads of flash a hit, each key by itself. What an object has beyond its first block takes a second read, which \
is not counted here:

{hits}

Reads of flash a miss. A quarter of the file or more is empty; when it is full, more strangers look like a key: \
[0.018 a miss](../index.md). The fewer blocks, the fewer bits their numbers take, and the longer the tags may be by \
which keys are told apart:

{misses}

RAM of the index, bytes an object. The fewer objects, the less of the table is full:

{index}
",
            paper = PAPER * 100.0,
            wanted = WANTED * 100.0,
            file = self.file_bytes >> 20,
            beside = beside.markdown(),
            records = self.table(|run| percent(run.records_share())).markdown(),
            objects = self.table(|run| format!("{:.1} %", run.objects_share() * 100.0)).markdown(),
            hits = self.table(|run| format!("{:.3}", run.reads_per_hit)).markdown(),
            misses = self.table(|run| format!("{:.3}", run.reads_per_miss)).markdown(),
            index = self.table(|run| format!("{:.2}", run.index_bytes_per_object())).markdown(),
        )
    }
}
