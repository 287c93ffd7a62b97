//! Streams as CacheLib's CacheBench draws them, from `config.json` (operations), `pop.json` (popularity) and
//! `sizes.json` (sizes of values) in a folder.

use super::Scale;
use super::popularity::Popularity;
use crate::trace::sizes::fraction;
use crate::trace::{Label, Operation, Request, Trace, TraceError};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use std::path::Path;

/// Requests a second: the statistics have no times.
const RATE: u64 = 1000;

/// Largest file of statistics that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Keys from here on are requested once only.
const LONE_KEYS: u64 = 1 << 62;

/// Sizes and their probabilities, as CacheBench reads them: as many as sizes, or one fewer if they belong to the ranges
/// between the sizes.
struct Sizes {
    bounds: Vec<f64>,
    up_to: Vec<f64>,
    ranges: bool,
}

impl Sizes {
    fn new(bounds: Vec<f64>, shares: &[f64]) -> Option<Self> {
        let ranges = bounds.len() == shares.len() + 1;
        let sane = |number: &f64| number.is_finite() && *number >= 0.0 && *number <= f64::from(u32::MAX);
        if shares.is_empty() || !ranges && bounds.len() != shares.len() || !bounds.iter().all(sane) {
            return None;
        }
        let mut sum = 0.0;
        let up_to: Vec<f64> = shares.iter().map(|share| (sum += share, sum).1).collect();
        (shares.iter().all(|share| *share >= 0.0) && sum > 0.0 && sum.is_finite()).then_some(Self {
            bounds,
            up_to,
            ranges,
        })
    }

    fn of(&self, key: u64, purpose: u64) -> u32 {
        let place = fraction(key, purpose) * self.up_to.last().expect("not empty");
        let at = self.up_to.partition_point(|sum| *sum <= place).min(self.up_to.len() - 1);
        let from = self.bounds[at];
        let bytes =
            if self.ranges { from + fraction(key, purpose + 1) * (self.bounds[at + 1] - from) } else { from };
        bytes.max(1.0) as u32
    }
}

/// Draws from the statistics in a folder.
pub fn open(folder: &Path, scale: Scale) -> Result<Trace, TraceError> {
    let config = Json::read(folder, "config.json")?;
    let test = &config.value["test_config"];
    let name = |key: &str, default: &str| test[key].as_str().unwrap_or(default).to_owned();
    let popularity_file = Json::read(folder, &name("popDistFile", "pop.json"))?;
    let sizes_file = Json::read(folder, &name("valSizeDistFile", "sizes.json"))?;
    let name = folder.file_name().map_or("CacheLib".into(), |name| name.to_string_lossy().into_owned());
    draw(name, &config, &popularity_file, &sizes_file, scale)
}

/// Draws from the statistics of three files.
pub(in crate::trace) fn draw(
    name: String,
    config: &Json,
    popularity_file: &Json,
    sizes_file: &Json,
    scale: Scale,
) -> Result<Trace, TraceError> {
    let test = &config.value["test_config"];
    let objects =
        popularity_file.numbers(&popularity_file.value["popularityBuckets"], "popularityBuckets")?;
    let weights =
        popularity_file.numbers(&popularity_file.value["popularityWeights"], "popularityWeights")?;
    if objects.len() != weights.len() {
        return Err(popularity_file.wrong("there are not as many buckets as weights"));
    }
    let (all_objects, all_weights) = (objects.iter().sum::<f64>(), weights.iter().sum::<f64>());
    let keys = scale.keys(all_weights / all_objects);
    let buckets: Vec<(f64, f64)> = objects.into_iter().zip(weights).collect();
    let popularity =
        Popularity::new(&buckets, keys).ok_or_else(|| popularity_file.wrong("no object has any weight"))?;
    let sizes = |file: &Json, value: &Value, range: &str, share: &str| {
        let bounds = file.numbers(&value[range], range)?;
        let shares = file.numbers(&value[share], share)?;
        Sizes::new(bounds, &shares).ok_or_else(|| file.wrong(&format!("{range} and {share} do not fit")))
    };
    let value_sizes = sizes(sizes_file, &sizes_file.value, "valSizeRange", "valSizeRangeProbability")?;
    let key_sizes = sizes(config, test, "keySizeRange", "keySizeRangeProbability")?;
    let mix = Mix::new(test).ok_or_else(|| config.wrong("the operations have no ratios"))?;

    let mut random = SmallRng::seed_from_u64(scale.seed);
    let requests = (0..scale.requests).map(move |position| {
        let (operation, lone) = mix.draw(&mut random);
        let key = if lone { LONE_KEYS + position } else { popularity.draw(&mut random) };
        Ok(Request {
            time: position / RATE,
            key,
            key_bytes: key_sizes.of(key, 10),
            value_bytes: value_sizes.of(key, 20),
            operation,
            ttl: 0,
        })
    });
    Ok(Trace::new(name, Label::Synthetic, requests))
}

/// Cumulative probabilities of the operations.
struct Mix {
    up_to: [f64; 4],
}

impl Mix {
    fn new(test: &Value) -> Option<Self> {
        let mut sum = 0.0;
        let up_to = ["getRatio", "loneGetRatio", "setRatio", "delRatio"].map(|ratio| {
            sum += test[ratio].as_f64().unwrap_or(0.0).max(0.0);
            sum
        });
        (sum > 0.0 && sum.is_finite()).then_some(Self { up_to })
    }

    /// The operation, and whether its key is requested this once only.
    fn draw(&self, random: &mut SmallRng) -> (Operation, bool) {
        let place = random.random::<f64>() * self.up_to[3];
        match self.up_to.iter().position(|sum| place < *sum) {
            Some(1) => (Operation::Get, true),
            Some(2) => (Operation::Set, false),
            Some(3) => (Operation::Delete, false),
            _ => (Operation::Get, false),
        }
    }
}

/// A file of statistics.
pub(in crate::trace) struct Json {
    path: std::path::PathBuf,
    value: Value,
}

impl Json {
    fn read(folder: &Path, name: &str) -> Result<Self, TraceError> {
        let path = folder.join(name);
        let bytes = std::fs::metadata(&path).map_err(TraceError::read(&path))?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(TraceError::file(&path, format!("{bytes} bytes: too large for statistics")));
        }
        let text = std::fs::read(&path).map_err(TraceError::read(&path))?;
        Self::parse(path, &text)
    }

    pub(in crate::trace) fn parse(path: std::path::PathBuf, text: &[u8]) -> Result<Self, TraceError> {
        match serde_json::from_slice(text) {
            Ok(value) => Ok(Self { path, value }),
            Err(error) => Err(TraceError::file(&path, error.to_string())),
        }
    }

    fn wrong(&self, what: &str) -> TraceError {
        TraceError::file(&self.path, what)
    }

    fn numbers(&self, value: &Value, name: &str) -> Result<Vec<f64>, TraceError> {
        let array = value.as_array().ok_or_else(|| self.wrong(&format!("{name} is missing")))?;
        let numbers: Option<Vec<f64>> = array.iter().map(Value::as_f64).collect();
        numbers.ok_or_else(|| self.wrong(&format!("{name} holds something that is no number")))
    }
}
