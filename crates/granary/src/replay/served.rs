//! The real server beside the models: a running one, or one of our own for each policy, on a real disk.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use clap::Args;
use granary_lab::model::{Budget, Layout, Model, Policy, Workload};
use granary_lab::remote::{Clients, Content, Served, Statistics, replay_served, statistics};
use granary_memcached::{Admission, Compression, Options, Server, StoreOptions};
use indicatif::HumanCount;

use super::replay_model;
use super::table::Table;
use crate::failure::{Failure, Result};
use crate::progress::bar;
use crate::scratch::Scratch;

/// Which server, and how it is asked.
#[derive(Args)]
pub struct ReplayServerArguments {
    /// Replay the trace through this memcached server, too. If it is Granary's, the models have its space
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "disk")]
    server: Option<String>,

    /// Replay the trace through the real server, too, on the disk that this folder is on: a server of its own, in a
    /// folder for the time being, for each policy that it has
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,

    /// Connections to the server
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,

    /// Requests that a connection sends at once, at most
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pipeline: u16,
}

/// The real servers that are replayed on.
pub enum Real<'a> {
    None,
    Running { name: &'a str, clients: Clients, says: Statistics },
    OnDisk(OnDisk),
}

/// Servers that the replay starts.
pub struct OnDisk {
    /// The folder for their data.
    pub folder: PathBuf,
    pub connections: usize,
    pub pipeline: usize,
}

impl ReplayServerArguments {
    /// Finds the server, and removes objects that are too large for it from a workload.
    pub fn prepare(&self, workload: &mut Workload) -> Result<Real<'_>> {
        let (connections, pipeline) = (usize::from(self.connections), usize::from(self.pipeline));
        let (real, bytes_max) = match (&self.server, &self.disk) {
            (Some(name), _) => {
                let failed = |error| Failure::File(name.clone(), error);
                let server = address(name)?;
                let says = statistics(server).map_err(failed)?;
                let bytes_max = says.object_bytes_max().unwrap_or(u64::MAX);
                (Real::Running { name, clients: Clients { server, connections, pipeline }, says }, bytes_max)
            }
            (None, Some(folder)) => {
                let on_disk = OnDisk { folder: folder.clone(), connections, pipeline };
                (Real::OnDisk(on_disk), object_bytes_max())
            }
            (None, None) => return Ok(Real::None),
        };
        let left_out = workload.leave_out_larger(bytes_max);
        if left_out > 0 {
            say!(
                "Left out: {} requests for objects of more than {bytes_max} bytes, which the server does not take",
                HumanCount(left_out as u64)
            );
        }
        Ok(real)
    }
}

fn address(name: &str) -> Result<SocketAddr> {
    let failed = |error| Failure::File(name.to_owned(), error);
    let mut found = name.to_socket_addrs().map_err(failed)?;
    found.next().ok_or_else(|| Failure::Argument(format!("{name} is nowhere")))
}

/// Maximum bytes of an object that our own server accepts.
pub fn object_bytes_max() -> u64 {
    (granary_memcached::limits::ITEM_BYTES_DEFAULT - granary_memcached::limits::ITEM_OVERHEAD_BYTES) as u64
}

/// The space that a server makes of these bytes: whole segments of its own size.
pub fn budget_of_server(dram_bytes: u64, flash_bytes: u64, item_bytes_max: Option<u64>) -> Budget {
    let mut options = StoreOptions::new("", dram_bytes, flash_bytes);
    options.item_bytes_max = item_bytes_max.map_or(options.item_bytes_max, |bytes| bytes as usize);
    let segment_bytes = options.segment_bytes();
    let unit = segment_bytes * options.partitions();
    Budget { dram_bytes, flash_bytes: flash_bytes / unit * unit, segment_bytes }
}

impl Real<'_> {
    /// The space of models beside this server, where they would have `wanted` alone.
    pub fn budget(&self, wanted: Budget) -> Budget {
        match self {
            Self::None => wanted,
            Self::OnDisk(_) => budget_of_server(wanted.dram_bytes, wanted.flash_bytes, None),
            Self::Running { says, .. } => {
                let setting = |name| says.number("settings", name).filter(|bytes| *bytes > 0);
                match (setting("maxbytes"), setting("flash_bytes")) {
                    (Some(dram), Some(flash)) => budget_of_server(dram, flash, setting("item_size_max")),
                    _ => wanted,
                }
            }
        }
    }

    /// Replays on a server of our own with this policy, if it has it, and on the most exact model.
    pub fn replay(
        &self,
        policy: &Policy,
        budget: &Budget,
        workload: &Workload,
        table: &mut Table,
    ) -> Result<()> {
        let (Self::OnDisk(on_disk), Some(admission)) = (self, admission(policy)) else { return Ok(()) };
        replay_exactly(policy, budget, workload, table);
        let name = format!("{policy}, real server");
        let content = Content::drawn(workload);
        let served = on_disk.replay(&name, &Serving::new(admission), budget, workload, &content)?;
        table.add_served(&name, &served);
        Ok(())
    }

    /// Replays on the running server, and on a model of its policy.
    pub fn replay_running(&self, budget: &Budget, workload: &Workload, table: &mut Table) -> Result<()> {
        let Self::Running { name, clients, says } = self else { return Ok(()) };
        if let Some(policy) = says.text("settings", "admission").and_then(|name| name.parse().ok()) {
            replay_exactly(&policy, budget, workload, table);
        }
        let served = replay_on(clients, name, workload, &Content::drawn(workload))?;
        table.add_served(name, &served);
        Ok(())
    }
}

/// The server's setting for a model's policy. Its write-through, `all`, corresponds to the log (`Fifo`).
fn admission(policy: &Policy) -> Option<Admission> {
    if *policy == Policy::Fifo { Some(Admission::All) } else { policy.admission().cloned() }
}

/// The model with all overheads of objects on the server.
pub fn exact_model(policy: &Policy, budget: &Budget, keys: u32) -> Option<Box<dyn Model>> {
    let block_bytes = StoreOptions::new("", budget.dram_bytes, budget.flash_bytes).block_bytes() as u32;
    let value_bytes = granary_memcached::limits::ITEM_HEADER_BYTES as u32;
    policy.model_with_costs(budget, keys, Layout { block_bytes, value_bytes })
}

fn replay_exactly(policy: &Policy, budget: &Budget, workload: &Workload, table: &mut Table) {
    if let Some(mut model) = exact_model(policy, budget, workload.keys) {
        let name = format!("{policy}, all costs");
        table.add(&name, &replay_model(&name, &mut *model, workload, &[]));
    }
}

fn replay_on(clients: &Clients, name: &str, workload: &Workload, content: &Content<'_>) -> Result<Served> {
    let bar = bar(workload.steps.len() as u64);
    bar.set_message(name.to_owned());
    let served = replay_served(workload, clients, content, |done| bar.set_position(done as u64));
    bar.finish_and_clear();
    served.map_err(|error| Failure::File(name.to_owned(), error))
}

/// Options of a server of our own.
pub struct Serving {
    pub admission: Admission,
    pub compression: Compression,
}

impl Serving {
    /// Uncompressed.
    pub fn new(admission: Admission) -> Self {
        Self { admission, compression: Compression::None }
    }
}

impl OnDisk {
    /// Replays a workload through a server of our own.
    pub fn replay(
        &self,
        name: &str,
        serving: &Serving,
        budget: &Budget,
        workload: &Workload,
        content: &Content<'_>,
    ) -> Result<Served> {
        let scratch = Scratch::new(&self.folder)?;
        let server = start(&scratch.path, serving, budget)?;
        let clients =
            Clients { server: server.address(), connections: self.connections, pipeline: self.pipeline };
        let served = replay_on(&clients, name, workload, content)?;
        server.stop().map_err(|error| Failure::File(name.to_owned(), error))?;
        Ok(served)
    }
}

fn start(folder: &Path, serving: &Serving, budget: &Budget) -> Result<Server> {
    let mut store = StoreOptions::new(folder.join("memcached"), budget.dram_bytes, budget.flash_bytes);
    store.admission = serving.admission.clone();
    store.compression = serving.compression;
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    Server::start(&Options::new(loopback, store)).map_err(|error| {
        Failure::Argument(format!(
            "the server cannot start in this space: {error} (--copies makes the trace larger)"
        ))
    })
}
