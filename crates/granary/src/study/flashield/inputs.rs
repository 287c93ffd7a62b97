//! The workloads of the study.

use std::path::{Path, PathBuf};

use granary_lab::model::Workload;
use granary_lab::trace::generate::Scale;
use granary_lab::trace::{Source, Trace};

use super::runs::Scope;
use crate::failure::Result;

/// A trace, or statistics that a stream is drawn from.
pub struct FlashieldInput {
    path: PathBuf,
    cluster: Option<u32>,
}

/// Traces, then statistics.
const FILES: [&str; 7] = [
    "cloudPhysicsIO.csv.gz",
    "web_objects.trace.xz",
    "orm-busy.trace.xz",
    "web07.trace.xz",
    "kvcache_reg",
    "cdn",
    "graph_cache_leader_fbobj",
];

/// Twitter's table, and clusters in it whose objects live long enough for a cache to matter, with different popularity,
/// sizes and operations.
const CLUSTERS: (&str, [u32; 6]) = ("twitter_clusters_2020Mar.md", [14, 19, 29, 45, 48, 52]);

/// The inputs whose files exist.
pub fn find(folder: &Path) -> Vec<FlashieldInput> {
    let files = FILES.map(|name| (name, None));
    let clusters = CLUSTERS.1.map(|number| (CLUSTERS.0, Some(number)));
    let all = files.into_iter().chain(clusters);
    all.map(|(name, cluster)| FlashieldInput { path: folder.join(name), cluster })
        .filter(|input| input.path.exists())
        .collect()
}

impl FlashieldInput {
    pub fn load(&self, scope: &Scope) -> Result<Workload> {
        let scale = Scale { requests: scope.requests, keys: None, seed: 1 };
        let source = Source { path: self.path.clone(), format: None, scale, cluster: self.cluster };
        Ok(Workload::load(Trace::open(&source)?, scope.limit)?)
    }
}
