//! The RAM that the process takes, by the kernel and the allocator, and which part of it takes how much.

use granary_cache::Stats;
use std::fs;

/// RAM of the process, in bytes. A figure that cannot be found out is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// All resident memory.
    pub resident: u64,
    /// Of that, files in RAM that outlive the process: the RAM tier and write buffers.
    pub shared: u64,
    /// Of that, the program and its libraries.
    pub program: u64,
    /// Of that, private memory: the allocator's, and the threads' stacks.
    pub own: u64,
    /// The buffers of the reads that go through rings, of the whole process. They lie in the allocator's memory, and are
    /// resident as far as they were read into.
    pub read_buffers: u64,
    /// The allocator's figures of the private memory; `None`: the program gave no way to ask it.
    pub allocator: Option<AllocatorSizes>,
}

/// Figures of the program's allocator, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorSizes {
    /// Memory that it has given out.
    pub allocated: u64,
    /// Resident memory that is not given out: kept for later, rounding, or the allocator's own tables.
    pub kept: u64,
}

impl ProcessMemory {
    /// RAM of this process now. `allocator` returns the allocator's figures.
    pub fn now(allocator: Option<fn() -> AllocatorSizes>) -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let of_kernel = parse(&status);
        let read_buffers = granary_cache::read_buffer_bytes();
        Self { allocator: allocator.map(|sizes| sizes()), read_buffers, ..of_kernel }
    }

    /// Memory that the allocator has given out and nothing else here counts: connections, journals, workspaces of
    /// lookups, tables of the program, and what is not memcached's, such as dictionaries and queries.
    pub fn allocated_other(&self, sizes: AllocatorSizes, cache: &Stats) -> u64 {
        let outside = (cache.memory_bytes + cache.buffer_bytes).saturating_sub(self.shared);
        let counted =
            cache.index_bytes + cache.policy_bytes + cache.codec_bytes + self.read_buffers + outside;
        sizes.allocated.saturating_sub(counted)
    }
}

fn parse(status: &str) -> ProcessMemory {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    };
    ProcessMemory {
        resident: bytes("VmRSS"),
        shared: bytes("RssShmem"),
        program: bytes("RssFile"),
        own: bytes("RssAnon"),
        ..ProcessMemory::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_figures_are_read() {
        let text = "Name:\tVmRSS: 1 kB\nVmRSS:\t    300 kB\nRssAnon:\t 100 kB\nRssFile:\t  50 kB\nRssShmem:\t 150 kB\n";
        let found = parse(text);
        assert_eq!(
            [found.resident, found.own, found.program, found.shared].map(|n| n >> 10),
            [300, 100, 50, 150]
        );
        assert_eq!(parse("VmRSS:\tmany kB\n"), ProcessMemory::default());
    }
}
