//! Runs the study, part by part.

use super::codec::{self, CodecFigures};
use super::pages::{self, PageRun};
use super::rocksdb::Order;
use super::seed::{self, SeedFigures};
use super::values::{Values, drawn};
use std::io;
use std::path::{Path, PathBuf};

/// Kinds of real values, by their files' names.
const KINDS: [&str; 5] = ["mdn", "crates", "movies", "cities", "countries"];

/// The kinds that the seed's experiment and RocksDB's are repeated on, beside drawn values.
const SEED_KINDS: [&str; 2] = ["mdn", "crates"];

/// RocksDB runs 1/ROCKSDB_DIVISOR of the reads and writes: it is measured with more codecs and block sizes, once each.
const ROCKSDB_DIVISOR: u64 = 5;

/// Drawn values of the seed's experiment.
const DRAWN: usize = 20_000;

/// Input and scale of the study.
pub struct CompressionStudy<'a> {
    /// The folder of `*.values`, which `rivals/values/fetch.sh` writes.
    pub values: &'a Path,
    /// A folder on the device to measure, which is left empty.
    pub scratch: &'a Path,
    /// The folder of the rivals' drivers.
    pub rivals: &'a Path,
    /// Runs of each measurement; the median counts.
    pub rounds: usize,
    /// Reads and writes of a run of the seed's experiment.
    pub operations: u64,
}

/// A study that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The values cannot be read.
    #[error("{path}: {source}; rivals/values/fetch.sh fetches the values")]
    Values {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A cache cannot be opened.
    #[error(transparent)]
    Open(#[from] granary_cache::OpenError),
    /// The plot cannot be drawn.
    #[error(transparent)]
    Plot(#[from] crate::PlotError),
}

/// Results of the study.
pub struct CompressionFindings {
    pub(super) codecs: Vec<(Values, Vec<CodecFigures>)>,
    pub(super) seeds: Vec<(String, Vec<SeedFigures>)>,
    pub(super) pages: Vec<PageRun>,
}

impl CompressionStudy<'_> {
    /// Runs all parts; `say` gets a line before each, and its tables as soon as they are known.
    ///
    /// # Errors
    /// Missing values, or a cache that cannot be opened.
    pub fn run(&self, mut say: impl FnMut(&str)) -> Result<CompressionFindings, StudyError> {
        let mut codecs = Vec::new();
        for kind in KINDS.map(|kind| self.file(kind)).into_iter().filter(|path| path.exists()) {
            let load = Values::load(&kind);
            let values = load.map_err(|source| StudyError::Values { path: kind, source })?;
            say(&format!("codecs on {}", values.name));
            let figures = codec::measure(&values, self.rounds);
            codecs.push((values, figures));
        }
        if codecs.is_empty() {
            let source = io::Error::new(io::ErrorKind::NotFound, "no values are there");
            return Err(StudyError::Values { path: self.values.to_owned(), source });
        }
        let mut findings = CompressionFindings { codecs, seeds: Vec::new(), pages: Vec::new() };
        say(&findings.codec_tables());
        let mut kinds = vec![("drawn".to_owned(), drawn(DRAWN))];
        for (values, _) in findings.codecs.iter().filter(|(values, _)| SEED_KINDS.contains(&&values.name[..]))
        {
            kinds.push((values.name.clone(), [&values.train[..], &values.test[..]].concat()));
        }
        for (name, values) in &kinds {
            let mut figures: Vec<SeedFigures> = seed::CONTENDERS.map(|_| SeedFigures::default()).into();
            for round in 0..self.rounds {
                for (number, figures) in figures.iter_mut().enumerate() {
                    say(&format!("{name}, {}, run {}", seed::CONTENDERS[number], round + 1));
                    seed::run(self.scratch, number, values, self.operations, figures)?;
                    seed::remove(self.scratch);
                }
            }
            findings.seeds.push((name.clone(), figures));
        }
        say(&findings.seed_table());
        findings.pages = self.pages(&mut say)?;
        say(&findings.page_table());
        Ok(findings)
    }

    /// RocksDB on real values in both orders, and on drawn ones, which have no documents.
    fn pages(&self, mut say: impl FnMut(&str)) -> Result<Vec<PageRun>, StudyError> {
        let mut kinds = vec![("drawn", drawn(DRAWN), &[Order::Random][..])];
        for (kind, path) in SEED_KINDS.map(|kind| (kind, self.file(kind))) {
            if path.exists() {
                let values = pages::in_document_order(&path);
                let values = values.map_err(|source| StudyError::Values { path, source })?;
                kinds.push((kind, values, &[Order::Document, Order::Random]));
            }
        }
        let mut runs = Vec::new();
        for (kind, values, orders) in &kinds {
            for order in *orders {
                say(&format!("RocksDB on {kind}, {order:?}"));
                let operations = self.operations / ROCKSDB_DIVISOR;
                match pages::run(self.rivals, self.scratch, (kind, values), *order, operations) {
                    Ok(of_kind) => runs.extend(of_kind),
                    Err(error) => say(&format!("RocksDB is left out: {error}")),
                }
            }
        }
        Ok(runs)
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.values.join(kind).with_extension("values")
    }
}
