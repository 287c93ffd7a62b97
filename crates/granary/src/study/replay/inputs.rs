//! The workloads of the study, large enough for a server that writes at least 4 MiB at once.

use std::path::{Path, PathBuf};

use granary_lab::model::Workload;
use granary_lab::trace::generate::Scale;
use granary_lab::trace::{Source, Trace};

use crate::failure::Result;
use crate::replay::object_bytes_max;

/// A trace, or statistics that a stream is drawn from.
pub struct ReplayStudyInput {
    path: PathBuf,
    requests: u64,
    /// Number of copies replayed side by side.
    pub copies: u32,
}

/// Name, maximum requests of one copy, copies.
const INPUTS: [(&str, u64, u32); 5] = [
    ("cloudPhysicsIO.csv.gz", u64::MAX, 1),
    ("web07.trace.xz", u64::MAX, 64),
    ("orm-busy.trace.xz", 100_000, 64),
    ("cdn", 200_000, 1),
    ("kvcache_reg", 500_000, 8),
];

/// A quick run takes 1/QUICK_DIVISOR of the requests.
const QUICK_DIVISOR: u64 = 100;

/// The inputs whose files exist.
pub fn find(folder: &Path) -> Vec<ReplayStudyInput> {
    let all =
        INPUTS.map(|(name, requests, copies)| ReplayStudyInput { path: folder.join(name), requests, copies });
    all.into_iter().filter(|input| input.path.exists()).collect()
}

impl ReplayStudyInput {
    /// The requests, and the number of those left out because their objects are too large for the server.
    pub fn load(&self, quick: bool) -> Result<(Workload, usize)> {
        let parts = if quick { QUICK_DIVISOR } else { 1 };
        let scale = Scale { requests: self.requests / parts, keys: None, seed: 1 };
        let source = Source { path: self.path.clone(), format: None, scale, cluster: None };
        let limit = usize::try_from(if quick { self.requests.min(100_000) / parts } else { self.requests });
        let workload = Workload::load(Trace::open(&source)?, limit.unwrap_or(usize::MAX))?;
        let mut workload = workload.copies(self.copies).expect("there is room for these");
        let left_out = workload.leave_out_larger(object_bytes_max());
        Ok((workload, left_out))
    }
}
