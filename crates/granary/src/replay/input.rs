//! The input of a replay, and the space of its caches.

use std::path::PathBuf;

use clap::Args;
use granary_lab::model::{Budget, Workload};
use granary_lab::trace::generate::Scale;
use granary_lab::trace::{Format, Source, Trace};

use crate::failure::{Failure, Result};
use crate::server::size::{self, Size};

/// A trace.
#[derive(Args)]
pub struct ReplayInput {
    /// A trace, packed with gzip or xz or not; or published statistics, from which a stream is drawn
    ///
    /// Traces: CloudPhysics' block I/O, web objects (time, id, size), cache2k's keys, libCacheSim's
    /// oracleGeneral, Twitter's and Meta's key-value CSV. Statistics: a folder of CacheLib's (config.json,
    /// pop.json, sizes.json), Twitter's table of clusters
    trace: PathBuf,

    /// The format, where it is not recognised: cloudphysics, web, cache2k, oracle-general, twitter, key-value,
    /// cachelib, twitter-clusters
    #[arg(long, value_name = "NAME")]
    format: Option<Format>,

    /// Which cluster of Twitter's table
    #[arg(long, value_name = "N")]
    cluster: Option<u32>,

    /// Requests to take from the trace, or to draw (1 million, if not given)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=Workload::REQUESTS_MAX as u64))]
    requests: Option<u64>,

    /// Of a drawn stream: so many keys, instead of as many as leave each its published number of requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    keys: Option<u64>,

    /// Of a drawn stream: another seed, another stream
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Replay the trace so many times side by side, each for keys of its own: the same hit ratio in as many times
    /// the space, for a real server cannot be as small as a model
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    copies: u32,
}

/// Default number of drawn requests.
pub const DRAWN: u64 = 1_000_000;

impl ReplayInput {
    /// Reads the whole input.
    pub fn load(&self) -> Result<Workload> {
        let scale = Scale { requests: self.requests.unwrap_or(DRAWN), keys: self.keys, seed: self.seed };
        let source = Source { path: self.trace.clone(), format: self.format, scale, cluster: self.cluster };
        let limit = self.requests.map_or(Workload::REQUESTS_MAX, |requests| requests as usize);
        load(&source, limit, self.copies)
    }
}

/// The first `limit` requests of a trace, `copies` times side by side.
pub fn load(source: &Source, limit: usize, copies: u32) -> Result<Workload> {
    let workload = Workload::load(Trace::open(source)?, limit)?;
    let too_many = || Failure::Argument("so many copies have too many requests or keys".into());
    workload.copies(copies).ok_or_else(too_many)
}

/// How much space there is: in bytes, or by the trace.
#[derive(Args)]
pub struct CacheSpace {
    /// DRAM for objects, as in 64MiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "flash")]
    dram: Option<Size>,

    /// Flash
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "dram")]
    flash: Option<Size>,

    /// DRAM and flash together: this many percent of what a cache without bounds would hold at most
    #[arg(long, value_name = "PERCENT", default_value_t = 15.0, conflicts_with = "dram", value_parser = part)]
    part: f64,

    /// Flash is so many times as large as DRAM
    #[arg(long, value_name = "N", default_value_t = 7, conflicts_with = "dram", value_parser = clap::value_parser!(u64).range(1..=1000))]
    ratio: u64,
}

fn part(text: &str) -> std::result::Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "a number is wanted".to_owned())?;
    if percent > 0.0 && percent <= 100.0 { Ok(percent) } else { Err("more than 0, at most 100".into()) }
}

impl CacheSpace {
    /// The space, in bytes.
    pub fn budget(&self, workload: &Workload) -> Budget {
        match (self.dram, self.flash) {
            (Some(Size(dram)), Some(Size(flash))) => Budget::new(dram, flash),
            _ => sizes(workload.working_set_bytes(), self.part / 100.0, self.ratio),
        }
    }
}

/// The `part` of a working set, divided into DRAM and flash.
pub fn sizes(working_set: u64, part: f64, ratio: u64) -> Budget {
    let both = (working_set as f64 * part) as u64;
    let dram = both / (ratio + 1);
    Budget::new(dram, both - dram)
}
