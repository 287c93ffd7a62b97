//! docs/studies/compression.md, its figures as CSV, and its plot.

use super::codec::CODECS;
use super::pages::VALUE_CODECS;
use super::rocksdb::{Order, PageFigures};
use super::seed::CONTENDERS;
use super::study::{CompressionFindings, StudyError};
use super::verdicts::{DECODE_US_WANTED, ENCODE_US_WANTED};
use crate::{Report, Samples, bars};
use std::path::Path;

/// Places of Snappy and of zstd with a dictionary in [`CODECS`].
const SNAPPY: usize = 0;
pub(super) const TRAINED: usize = 2;

/// How many times smaller than Snappy's the stored bytes should be.
const WANTED: [(&str, f64); 3] = [("mdn", 4.0), ("crates", 2.0), ("movies", 3.5)];

const INTRODUCTION: &str = include_str!("introduction.md");
const SEED: &str = include_str!("seed.md");
const PAGES: &str = include_str!("pages.md");
const CHOICE: &str = include_str!("choice.md");

fn reached(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

fn range(samples: &Samples, digits: usize) -> String {
    let [median, low, high] = [samples.median(), samples.min(), samples.max()];
    if low == high {
        format!("{median:.digits$}")
    } else {
        format!("{median:.digits$} ({low:.digits$}..{high:.digits$})")
    }
}

impl CompressionFindings {
    fn sizes(&self) -> Report {
        let mut report = Report::new(&[
            "values",
            "train",
            "measured",
            "mean bytes",
            "Snappy",
            "zstd",
            "zstd, trained",
            "LZ4, trained",
            "Snappy / zstd, trained",
            "wanted",
            "reached",
        ]);
        for (values, figures) in &self.codecs {
            let raw = super::bytes(&values.test) as f64;
            let times = figures[SNAPPY].stored_bytes as f64 / figures[TRAINED].stored_bytes as f64;
            let wanted = WANTED.iter().find(|(name, _)| *name == values.name).map(|(_, wanted)| *wanted);
            let sizes = [values.train.len(), values.test.len(), raw as usize / values.test.len().max(1)];
            let mut cells = vec![values.name.clone()];
            cells.extend(sizes.map(|size| size.to_string()));
            cells.extend(figures.iter().map(|codec| format!("{:.2}x", raw / codec.stored_bytes as f64)));
            cells.push(format!("{times:.2}x"));
            cells.push(wanted.map_or("-".to_owned(), |wanted| format!("{wanted:.1}x")));
            cells.push(wanted.map_or("-".to_owned(), |wanted| reached(times >= wanted)));
            report.row(cells);
        }
        report
    }

    fn times(&self) -> Report {
        let mut report = Report::new(&[
            "values",
            "codec",
            "encode, us/KiB",
            "2.5 reached",
            "us a value",
            "decode, us/KiB",
            "0.8 reached",
            "us a value",
            "RAM, KiB",
        ]);
        for (values, figures) in &self.codecs {
            let kib = super::bytes(&values.test) as f64 / 1024.0 / values.test.len().max(1) as f64;
            for (name, codec) in CODECS.iter().zip(figures) {
                report.row([
                    values.name.clone(),
                    (*name).to_owned(),
                    range(&codec.encode_us, 2),
                    reached(codec.encode_us.median() <= ENCODE_US_WANTED),
                    format!("{:.2}", codec.encode_us.median() * kib),
                    range(&codec.decode_us, 2),
                    reached(codec.decode_us.median() <= DECODE_US_WANTED),
                    format!("{:.2}", codec.decode_us.median() * kib),
                    format!("{}", codec.ram_bytes >> 10),
                ]);
            }
        }
        report
    }

    fn seed(&self) -> Report {
        let mut report = Report::new(&[
            "values",
            "compression",
            "RAM an entry",
            "of none",
            "flash an entry",
            "of none",
            "written a write",
            "found in RAM",
            "read, us",
            "of these from flash, us",
            "write, us",
        ]);
        for (name, figures) in &self.seeds {
            let none = &figures[0];
            for (contender, seed) in CONTENDERS.iter().zip(figures) {
                report.row([
                    name.clone(),
                    (*contender).to_owned(),
                    format!("{:.0}", seed.ram_bytes),
                    format!("{:.2}", seed.ram_bytes / none.ram_bytes),
                    format!("{:.0}", seed.flash_bytes),
                    format!("{:.2}", seed.flash_bytes / none.flash_bytes),
                    format!("{:.0}", seed.written_bytes),
                    format!("{:.0} %", seed.ram_hit_ratio * 100.0),
                    range(&seed.read_us, 1),
                    range(&seed.flash_read_us, 1),
                    range(&seed.write_us, 1),
                ]);
            }
        }
        report
    }

    fn pages(&self) -> Report {
        let mut report = Report::new(&[
            "values",
            "keys",
            "values compressed with",
            "blocks compressed with",
            "disk an entry, blocks of 4 / 8 / 16 KiB",
            "written a write",
            "read, us",
            "write, us",
        ]);
        for run in &self.pages {
            let (_, block_codecs) =
                VALUE_CODECS.iter().find(|(codec, _)| *codec == run.value_codec).expect("it is one");
            for codec in *block_codecs {
                let all = |figure: fn(&PageFigures) -> f64| {
                    let by_size = run.of(codec).map(|figures| format!("{:.0}", figure(figures)));
                    by_size.collect::<Vec<_>>().join(" / ")
                };
                report.row([
                    run.values.clone(),
                    if run.order == Order::Document { "in document order" } else { "as hashes" }.to_owned(),
                    run.value_codec.to_owned(),
                    (*codec).to_owned(),
                    all(|figures| figures.disk_bytes),
                    all(|figures| figures.written_bytes),
                    all(|figures| figures.read_us),
                    all(|figures| figures.write_us),
                ]);
            }
        }
        report
    }

    /// The tables of codecs, for a terminal.
    pub(super) fn codec_tables(&self) -> String {
        [self.sizes(), self.times()].map(|table| table.text()).join("\n\n")
    }

    /// The table of the seed's experiment, for a terminal.
    pub(super) fn seed_table(&self) -> String {
        self.seed().text()
    }

    /// The table of page compression, for a terminal.
    pub(super) fn page_table(&self) -> String {
        self.pages().text()
    }

    /// The page; `notes` describe the machine.
    pub fn text(&self, notes: &[String], is_quick: bool) -> String {
        let warning = match is_quick {
            true => "\n**Made with `--quick`: the runs are too short for the figures to mean anything.**\n",
            false => "",
        };
        let notes: Vec<String> = notes.iter().map(|note| format!("- {note}")).collect();
        let pages = match self.pages.is_empty() {
            true => "RocksDB was not there: `rivals/rocksdb/setup.sh` installs it.".to_owned(),
            false => format!("{}\n\n{}", self.page_verdict(), self.pages().markdown()),
        };
        let (notes, sizes, times) = (notes.join("\n"), self.sizes().markdown(), self.times().markdown());
        format!(
            "<!-- Written by `granary study compression`. Change the program, not this page. -->\n\n\
             # Compression of values: bytes, time, and what it is worth\n{warning}\n{CHOICE}\n{INTRODUCTION}\n{notes}\n\n\
             ## Codecs on real values\n\nBytes of values over bytes stored:\n\n{sizes}\n\n\
             ![Bytes stored](compression.svg)\n\nTime of a core:\n\n{times}\n\n{verdict} {SEED}\n{seed}\n\n{seed_verdict}\n\n{PAGES}\n{pages}\n",
            verdict = self.codec_verdict(),
            seed = self.seed().markdown(),
            seed_verdict = self.seed_verdict(),
        )
    }

    /// A line for each figure: part, values, contender, figure, median, least, most.
    pub fn csv(&self) -> String {
        let mut report = Report::new(&["part", "values", "contender", "figure", "median", "min", "max"]);
        let mut add = |part: &str, values: &str, who: &str, figure: &str, samples: &Samples| {
            let numbers = [samples.median(), samples.min(), samples.max()].map(|number| number.to_string());
            report.row([part, values, who, figure].map(str::to_owned).into_iter().chain(numbers));
        };
        let one = |number: f64| {
            let mut samples = Samples::default();
            samples.push(number);
            samples
        };
        for (values, figures) in &self.codecs {
            add("codecs", &values.name, "none", "bytes", &one(super::bytes(&values.test) as f64));
            for (who, codec) in CODECS.iter().zip(figures) {
                add("codecs", &values.name, who, "bytes", &one(codec.stored_bytes as f64));
                add("codecs", &values.name, who, "encode us/KiB", &codec.encode_us);
                add("codecs", &values.name, who, "decode us/KiB", &codec.decode_us);
            }
        }
        for (name, figures) in &self.seeds {
            for (who, seed) in CONTENDERS.iter().zip(figures) {
                add("seed", name, who, "RAM bytes an entry", &one(seed.ram_bytes));
                add("seed", name, who, "flash bytes an entry", &one(seed.flash_bytes));
                add("seed", name, who, "bytes written a write", &one(seed.written_bytes));
                add("seed", name, who, "found in RAM", &one(seed.ram_hit_ratio));
                add("seed", name, who, "read us", &seed.read_us);
                add("seed", name, who, "read from flash us", &seed.flash_read_us);
                add("seed", name, who, "write us", &seed.write_us);
            }
        }
        for run in &self.pages {
            for page in &run.figures {
                let (order, codec, block) = (run.order, &page.codec, page.block_bytes);
                let who =
                    format!("RocksDB, values {}, blocks {codec}, {block} B, {order:?}", run.value_codec);
                add("pages", &run.values, &who, "disk bytes an entry", &one(page.disk_bytes));
                add("pages", &run.values, &who, "bytes written a write", &one(page.written_bytes));
                add("pages", &run.values, &who, "read us", &one(page.read_us));
                add("pages", &run.values, &who, "write us", &one(page.write_us));
            }
        }
        report.csv()
    }

    /// Draws stored bytes for each KiB of values.
    ///
    /// # Errors
    /// The plot cannot be drawn or written.
    pub fn plot(&self, path: &Path) -> Result<(), StudyError> {
        let groups: Vec<(String, Vec<f64>)> = self
            .codecs
            .iter()
            .map(|(values, figures)| {
                let raw = super::bytes(&values.test) as f64;
                let stored = figures.iter().map(|codec| codec.stored_bytes as f64 / raw * 1024.0);
                (values.name.clone(), stored.collect())
            })
            .collect();
        bars(path, "Bytes stored for a KiB of values", "bytes", &CODECS, &groups)?;
        Ok(())
    }
}
