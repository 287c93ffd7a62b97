//! The memcached server's figures for the dashboard and `/metrics`.

use std::collections::HashMap;
use std::sync::Arc;

use granary_memcached::{Server, Stats};
use granary_server::{Figure, Kind, Memcached};

use Kind::{Counter, Gauge};

/// A figure's name in `stats`, its name here, whether it only rises, and its description.
const FIGURES: &[(&str, &str, Kind, &str)] = &[
    ("uptime", "uptime_seconds", Gauge, "Time since the server started"),
    ("threads", "threads", Gauge, "Threads that serve"),
    ("curr_connections", "connections", Gauge, "Connections now"),
    ("max_connections", "connections_max", Gauge, "Connections at most"),
    ("total_connections", "connections_accepted", Counter, "Connections accepted"),
    ("idle_kicks", "connections_idle_closed", Counter, "Connections closed for doing nothing"),
    ("auth_errors", "auth_errors", Counter, "Logins refused"),
    ("cmd_get", "cmd_get", Counter, "Keys asked for"),
    ("cmd_set", "cmd_set", Counter, "Items to store"),
    ("cmd_touch", "cmd_touch", Counter, "Items touched, or asked to be"),
    ("cmd_meta", "cmd_meta", Counter, "Commands me and mn"),
    ("cmd_flush", "cmd_flush", Counter, "Flushes"),
    ("get_hits", "get_hits", Counter, "Keys found"),
    ("get_misses", "get_misses", Counter, "Keys not found"),
    ("get_expired", "get_expired", Counter, "Keys found expired"),
    ("delete_hits", "delete_hits", Counter, "Items deleted"),
    ("delete_misses", "delete_misses", Counter, "Items to delete that were not there"),
    ("incr_hits", "incr_hits", Counter, "Items counted up"),
    ("incr_misses", "incr_misses", Counter, "Items to count up that were not there"),
    ("decr_hits", "decr_hits", Counter, "Items counted down"),
    ("decr_misses", "decr_misses", Counter, "Items to count down that were not there"),
    ("cas_hits", "cas_hits", Counter, "Items stored by cas"),
    ("cas_misses", "cas_misses", Counter, "Items to store by cas that were not there"),
    ("cas_badval", "cas_badval", Counter, "Items that cas found changed"),
    ("touch_hits", "touch_hits", Counter, "Items touched"),
    ("touch_misses", "touch_misses", Counter, "Items to touch that were not there"),
    ("bytes_read", "network_read_bytes", Counter, "Bytes read from clients"),
    ("bytes_written", "network_written_bytes", Counter, "Bytes written to clients"),
    ("curr_items", "items", Gauge, "Items now"),
    ("total_items", "items_stored", Counter, "Items stored"),
    ("evictions", "evictions", Counter, "Items that left for want of room"),
    ("store_too_large", "items_refused", Counter, "Items refused for their size"),
    ("granary.puts_dropped", "items_dropped", Counter, "Items not kept because the device was too slow"),
    (
        "granary.puts_too_large",
        "items_too_large",
        Counter,
        "Items not kept because they are too long for flash",
    ),
    ("granary.hits_memory", "hits_memory", Counter, "Items found in the RAM tier"),
    ("granary.hits_block", "hits_block", Counter, "Items found in blocks of the RAM tier"),
    ("granary.hits_buffer", "hits_buffer", Counter, "Items found in a write buffer"),
    ("granary.hits_flash", "hits_flash", Counter, "Items found on flash"),
    (
        "limit_maxbytes",
        "memory_bytes_max",
        Gauge,
        "RAM for items at most; index and write buffers come on top",
    ),
    ("granary.memory_bytes", "ram_memory_bytes", Gauge, "RAM of items alone"),
    ("granary.block_bytes", "ram_block_bytes", Gauge, "RAM of blocks alone, a part of that of items"),
    ("granary.index_bytes", "ram_index_bytes", Gauge, "RAM of the index alone"),
    ("granary.buffer_bytes", "ram_buffer_bytes", Gauge, "RAM of write buffers alone"),
    ("granary.policy_bytes", "ram_policy_bytes", Gauge, "RAM of the admission policy alone"),
    ("settings.flash_bytes", "flash_bytes_max", Gauge, "Flash for items at most"),
    ("granary.block_reads", "flash_block_reads", Counter, "Blocks read"),
    ("granary.bytes_read", "flash_read_bytes", Counter, "Bytes read from flash"),
    ("granary.bytes_written", "flash_written_bytes", Counter, "Bytes written to flash"),
    ("granary.bytes_put", "put_bytes", Counter, "Bytes of the keys and values that were put"),
    (
        "granary.value_bytes_raw",
        "value_raw_bytes",
        Counter,
        "With compression: bytes of the items that were put",
    ),
    (
        "granary.value_bytes_kept",
        "value_kept_bytes",
        Counter,
        "With compression: bytes that are kept of them",
    ),
    (
        "granary.codec_versions",
        "compression_versions",
        Gauge,
        "Dictionaries for compression that items are compressed with now",
    ),
    (
        "granary.codec_trainings",
        "compression_trainings",
        Counter,
        "Dictionaries for compression that were trained",
    ),
    ("granary.codec_bytes", "ram_compression_bytes", Gauge, "RAM that compression takes"),
    ("granary.corrupt_blocks", "flash_blocks_corrupt", Counter, "Blocks that failed their check"),
    ("granary.write_errors", "flash_write_errors", Counter, "Writes to flash that failed"),
];

/// The server's figures, as HTTP shows them.
pub fn of(server: &Server) -> Memcached {
    let stats = server.stats();
    Memcached { address: server.places().to_owned(), figures: Arc::new(move || named(&stats.read())) }
}

/// Bytes of RAM of its cache.
pub fn ram(stats: &Stats) -> u64 {
    let figures = stats.read();
    let parts = ["memory", "index", "buffer", "policy", "codec"].map(|part| format!("granary.{part}_bytes"));
    parts.iter().filter_map(|part| figures.get(part)).sum()
}

fn named(stats: &HashMap<String, u64>) -> Vec<Figure> {
    let figures = FIGURES.iter();
    figures
        .filter_map(|&(stat, name, kind, help)| Some(Figure { name, kind, help, value: *stats.get(stat)? }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use granary_memcached::{Options, StoreOptions};

    #[test]
    fn every_figure_is_one_of_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let store = StoreOptions::new(folder.path().join("memcached"), 64 << 20, 0);
        let server = Server::start(&Options::new(([127, 0, 0, 1], 0).into(), store)).unwrap();
        let stats = server.stats();
        let known = stats.read();
        let unknown: Vec<&str> =
            FIGURES.iter().map(|figure| figure.0).filter(|stat| !known.contains_key(*stat)).collect();
        assert!(unknown.is_empty(), "{unknown:?} of {known:?}");
        let memcached = of(&server);
        assert_eq!((memcached.figures)().len(), FIGURES.len());
        // Reading the figures does not keep the server from stopping.
        server.stop().unwrap();
        assert!(stats.read().is_empty() && (memcached.figures)().is_empty());
    }
}
