//! `stats`. Figures that memcached has, too, have memcached's names; those without a counterpart here are left out.

use super::connections::Peer;
use super::memory::{AllocatorSizes, ProcessMemory};
use super::since_reset::{Others, Since};
use super::{ServerState, usage};
use crate::clock::unix_time;
use crate::protocol::{Group, VERSION, reply};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Whether clients may flush all items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// They may.
    #[default]
    Allowed,
    /// They get an error.
    Refused,
}

/// The options of a server, as `stats settings` shows them.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// RAM for items, in bytes.
    pub memory_bytes: u64,
    /// Flash for items, in bytes.
    pub flash_bytes: u64,
    /// Name of the admission policy.
    pub admission: String,
    /// Most connections at a time.
    pub connections_max: usize,
    /// TCP port; 0: the server does not listen for TCP.
    pub port: u16,
    /// Path of the Unix socket, and its access mode.
    pub socket: Option<(PathBuf, u32)>,
    /// Whether clients may flush.
    pub flush: Flush,
    /// Threads that serve.
    pub threads: usize,
    /// Item size limit, in bytes.
    pub item_bytes_max: usize,
    /// Seconds after which an idle connection is closed; 0: never.
    pub idle_seconds: u64,
    /// Whether replies wait until the device keeps the changes that they show.
    pub syncs_changes: bool,
    /// Returns the figures of the program's allocator.
    pub allocator: Option<fn() -> AllocatorSizes>,
}

impl ServerState {
    /// Writes the answer to `stats` of a group. `asking`: the connection that sent the request.
    pub fn stats(&self, group: Group, since: Since, asking: Option<&Arc<Peer>>, now: u32, out: &mut Vec<u8>) {
        match group {
            Group::General => self.general(since, out),
            Group::Settings => self.settings(out),
            Group::Items => self.items(since, now, out),
            Group::Slabs => self.slabs(since, out),
            Group::Sizes => reply::stat(out, "sizes_status", "disabled"),
            Group::Granary => self.granary(out),
            Group::Connections => self.peers.show(asking, now, |name, value| reply::stat(out, name, value)),
            Group::Empty => {}
        }
        reply::line(out, "END");
    }

    fn general(&self, since: Since, out: &mut Vec<u8>) {
        let (shared, cache, totals) = (self, self.store.cache_stats(), self.totals(since));
        let others = self.others(&cache, since);
        reply::stat(out, "pid", std::process::id());
        reply::stat(out, "uptime", shared.started.elapsed().as_secs());
        reply::stat(out, "time", unix_time());
        reply::stat(out, "version", VERSION);
        reply::stat(out, "pointer_size", usize::BITS);
        if let Some((user, system)) = usage::processor_time_us() {
            for (name, us) in [("rusage_user", user), ("rusage_system", system)] {
                reply::stat(out, name, format_args!("{}.{:06}", us / 1_000_000, us % 1_000_000));
            }
        }
        for (name, value) in [
            ("max_connections", shared.settings.connections_max as u64),
            ("curr_connections", shared.connections.load(Ordering::Relaxed) as u64),
            ("total_connections", totals.connections),
            ("rejected_connections", others.rejected_connections),
            ("cmd_get", totals.cmd_get),
            ("cmd_set", totals.cmd_set),
            ("cmd_flush", totals.cmd_flush),
            ("cmd_touch", totals.cmd_touch),
            ("cmd_meta", totals.cmd_meta),
            ("get_hits", totals.get_hits),
            ("get_misses", totals.get_misses),
            ("get_expired", totals.get_expired),
            ("get_flushed", totals.get_flushed),
            ("delete_misses", totals.delete_misses),
            ("delete_hits", totals.delete_hits),
            ("incr_misses", totals.incr_misses),
            ("incr_hits", totals.incr_hits),
            ("decr_misses", totals.decr_misses),
            ("decr_hits", totals.decr_hits),
            ("cas_misses", totals.cas_misses),
            ("cas_hits", totals.cas_hits),
            ("cas_badval", totals.cas_badval),
            ("touch_hits", totals.touch_hits),
            ("touch_misses", totals.touch_misses),
            ("store_too_large", totals.store_too_large),
            ("store_no_memory", others.store_no_memory),
            ("auth_cmds", totals.auth_cmds),
            ("auth_errors", totals.auth_errors),
            ("idle_kicks", totals.idle_kicks),
            ("bytes_read", totals.bytes_read),
            ("bytes_written", totals.bytes_written),
            ("limit_maxbytes", shared.settings.memory_bytes),
            ("accepting_conns", 1),
            ("listen_disabled_num", others.listen_disabled_num),
            ("time_in_listen_disabled_us", others.time_in_listen_disabled_us),
            ("conn_yields", totals.conn_yields),
            ("threads", shared.settings.threads as u64),
            ("hash_bytes", cache.index_bytes),
            ("bytes", cache.memory_bytes),
            ("curr_items", cache.entries),
            ("total_items", totals.total_items),
            ("evictions", others.evictions),
            ("reclaimed", others.reclaimed),
            ("expired_unfetched", others.expired_unfetched),
            ("evicted_unfetched", others.evicted_unfetched),
        ] {
            reply::stat(out, name, value);
        }
        if shared.settings.flash_bytes > 0 {
            flash(&cache, &others, out);
            reply::stat(out, "extstore_io_queue", totals.reads_waiting);
        }
    }

    fn settings(&self, out: &mut Vec<u8>) {
        let settings = &self.settings;
        reply::stat(out, "maxbytes", settings.memory_bytes);
        reply::stat(out, "maxconns", settings.connections_max);
        reply::stat(out, "tcpport", settings.port);
        reply::stat(out, "udpport", 0);
        reply::stat(out, "evictions", "on");
        if let Some((path, mode)) = &settings.socket {
            reply::stat(out, "domain_socket", path.display());
            reply::stat(out, "umask", format_args!("{mode:o}"));
        } else {
            reply::stat(out, "domain_socket", "NULL");
        }
        reply::stat(out, "shutdown_command", "no");
        reply::stat(out, "num_threads", settings.threads);
        reply::stat(out, "detail_enabled", "no");
        reply::stat(out, "cas_enabled", "yes");
        reply::stat(out, "binding_protocol", "ascii");
        reply::stat(out, "auth_enabled_sasl", "no");
        reply::stat(out, "auth_enabled_ascii", if self.users.is_some() { "yes" } else { "no" });
        reply::stat(out, "item_size_max", settings.item_bytes_max);
        reply::stat(out, "maxconns_fast", "yes");
        reply::stat(out, "flush_enabled", if settings.flush == Flush::Allowed { "yes" } else { "no" });
        reply::stat(out, "dump_enabled", "yes");
        reply::stat(out, "idle_timeout", settings.idle_seconds);
        reply::stat(out, "track_sizes", "no");
        reply::stat(out, "flash_bytes", settings.flash_bytes);
        reply::stat(out, "admission", &settings.admission);
    }

    /// `stats items`: all items are of one class here.
    fn items(&self, since: Since, now: u32, out: &mut Vec<u8>) {
        let cache = self.store.cache_stats();
        if cache.entries == 0 {
            return;
        }
        let others = self.others(&cache, since);
        for (name, value) in [
            ("items:1:number", cache.entries),
            ("items:1:age", self.store.age(now).into()),
            ("items:1:mem_requested", cache.memory_bytes),
            ("items:1:evicted", others.evictions),
            ("items:1:outofmemory", others.store_no_memory),
            ("items:1:reclaimed", others.reclaimed),
            ("items:1:expired_unfetched", others.expired_unfetched),
            ("items:1:evicted_unfetched", others.evicted_unfetched),
        ] {
            reply::stat(out, name, value);
        }
    }

    fn slabs(&self, since: Since, out: &mut Vec<u8>) {
        let (cache, totals) = (self.store.cache_stats(), self.totals(since));
        for (name, value) in [
            ("1:used_chunks", cache.entries),
            ("1:get_hits", totals.get_hits),
            ("1:cmd_set", totals.cmd_set),
            ("1:delete_hits", totals.delete_hits),
            ("1:incr_hits", totals.incr_hits),
            ("1:decr_hits", totals.decr_hits),
            ("1:cas_hits", totals.cas_hits),
            ("1:cas_badval", totals.cas_badval),
            ("1:touch_hits", totals.touch_hits),
            ("active_slabs", 1),
            ("total_malloced", cache.bytes_allocated()),
        ] {
            reply::stat(out, name, value);
        }
    }

    fn granary(&self, out: &mut Vec<u8>) {
        let cache = self.store.cache_stats();
        for (name, value) in [
            ("entries", cache.entries),
            ("hits_memory", cache.hits_memory),
            ("hits_block", cache.hits_block),
            ("hits_buffer", cache.hits_buffer),
            ("hits_flash", cache.hits_flash),
            ("misses", cache.misses),
            ("block_reads", cache.block_reads),
            ("reads", cache.reads),
            ("bytes_read", cache.bytes_read),
            ("corrupt_blocks", cache.corrupt_blocks),
            ("false_finds", cache.false_finds),
            ("puts", cache.puts),
            ("bytes_put", cache.bytes_put),
            ("puts_dropped", cache.puts_dropped),
            ("puts_too_large", cache.puts_too_large),
            ("reinserted", cache.reinserted),
            ("promoted", cache.promoted),
            ("admitted", cache.admitted),
            ("rejected", cache.rejected),
            ("left_unseen", cache.left_unseen),
            ("taken_back", cache.taken_back),
            ("evicted_memory", cache.evicted_memory),
            ("evicted_flash", cache.evicted_flash),
            ("evicted_index", cache.evicted_index),
            ("index_displaced", cache.displaced()),
            ("index_displaced_at_start", cache.displaced_at_start),
            ("lost", cache.lost),
            ("bytes_written", cache.bytes_written),
            ("write_errors", cache.write_errors),
            ("index_bytes", cache.index_bytes),
            ("memory_entries", cache.memory_entries),
            ("memory_bytes", cache.memory_bytes),
            ("block_bytes", cache.block_bytes),
            ("memory_file_bytes", cache.memory_file_bytes),
            ("taken_over", cache.taken_over),
            ("policy_bytes", cache.policy_bytes),
            ("buffer_bytes", cache.buffer_bytes),
            ("value_bytes_raw", cache.value_bytes_raw),
            ("value_bytes_kept", cache.value_bytes_kept),
            ("codec_versions", cache.codec_versions),
            ("codec_trainings", cache.codec_trainings),
            ("values_undecodable", cache.values_undecodable),
            ("codec_bytes", cache.codec_bytes),
        ] {
            reply::stat(out, name, value);
        }
        let process = ProcessMemory::now(self.settings.allocator);
        for (name, value) in [
            ("rss_bytes", process.resident),
            ("rss_shared_bytes", process.shared),
            ("rss_program_bytes", process.program),
            ("rss_own_bytes", process.own),
            ("read_buffer_bytes", process.read_buffers),
        ] {
            reply::stat(out, name, value);
        }
        if let Some(sizes) = process.allocator {
            reply::stat(out, "allocated_bytes", sizes.allocated);
            reply::stat(out, "allocated_other_bytes", process.allocated_other(sizes, &cache));
            reply::stat(out, "allocator_kept_bytes", sizes.kept);
        }
        reply::stat(out, "compression_ratio", format_args!("{:.3}", cache.compression_ratio()));
    }
}

/// Figures of flash by the names of memcached's extstore: a page is a segment, an object is an item.
fn flash(cache: &granary_cache::Stats, others: &Others, out: &mut Vec<u8>) {
    for (name, value) in [
        ("get_extstore", others.get_extstore),
        ("recache_from_extstore", others.recache_from_extstore),
        ("badcrc_from_extstore", others.badcrc_from_extstore),
        ("extstore_compact_rescues", others.extstore_compact_rescues),
        ("extstore_page_allocs", cache.segments_written),
        ("extstore_page_evictions", cache.segments_evicted),
        ("extstore_pages_free", cache.flash_segments - cache.flash_segments_used),
        ("extstore_pages_used", cache.flash_segments_used),
        ("extstore_objects_evicted", cache.evicted_flash),
        ("extstore_objects_read", cache.hits_flash),
        ("extstore_objects_written", cache.admitted + cache.written_through + cache.reinserted),
        ("extstore_objects_used", cache.flash_entries),
        ("extstore_bytes_evicted", cache.bytes_of_records(cache.evicted_flash)),
        ("extstore_bytes_read", cache.bytes_read),
        ("extstore_bytes_written", cache.bytes_written),
        ("extstore_bytes_used", cache.flash_bytes_live()),
        ("extstore_bytes_fragmented", cache.flash_bytes_used() - cache.flash_bytes_live()),
        ("extstore_limit_maxbytes", cache.flash_bytes),
    ] {
        reply::stat(out, name, value);
    }
}
