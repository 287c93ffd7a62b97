//! What the dashboard and `/metrics` show of volumes.

use std::sync::{Arc, Weak};

use granary_server::{Figure, Kind, OfVolumes, Volumes};
use granary_volume::{Stats, Volume};

use Kind::{Counter, Gauge};

type OfVolume = (&'static str, Kind, &'static str, fn(&Stats) -> u64);

/// What is shown of each volume.
const FIGURES: &[OfVolume] = &[
    ("reads", Counter, "Requests that read", |s| s.reads),
    ("writes", Counter, "Requests that wrote", |s| s.writes),
    ("flushes", Counter, "Flushes", |s| s.flushes),
    ("read_bytes", Counter, "Bytes read by clients", |s| s.bytes_read),
    ("written_bytes", Counter, "Bytes written by clients", |s| s.bytes_written),
    ("read_microseconds", Counter, "Time from reads to their answers", |s| s.read_time.as_micros() as u64),
    ("write_microseconds", Counter, "Time from writes to their answers", |s| s.write_time.as_micros() as u64),
    ("flush_microseconds", Counter, "Time from flushes to their answers", |s| {
        s.flush_time.as_micros() as u64
    }),
    ("write_waits", Counter, "Times that a write waited for room", |s| s.waits),
    ("blocks", Gauge, "Blocks that clients see", |s| s.blocks),
    ("blocks_mapped", Gauge, "Blocks that have content", |s| s.blocks_mapped),
    ("blocks_trimmed", Counter, "Blocks whose space clients gave back", |s| s.blocks_trimmed),
    ("log_blocks", Gauge, "Blocks of the log", |s| s.segments * s.blocks_per_segment),
    ("log_blocks_used", Gauge, "Blocks of segments of the log that hold something, alive or dead", |s| {
        (s.segments - s.segments_free) * s.blocks_per_segment
    }),
    ("segments", Gauge, "Segments of the log", |s| s.segments),
    ("segments_free", Gauge, "Segments that are free", |s| s.segments_free),
    ("segments_cleaned", Counter, "Segments that cleaning emptied", |s| s.segments_cleaned),
    ("blocks_moved", Counter, "Blocks that cleaning moved", |s| s.blocks_moved),
    ("device_written_bytes", Counter, "Bytes written to the device, for clients and for cleaning", |s| {
        s.device_bytes_written
    }),
    ("commits", Counter, "Times that everything was made durable", |s| s.commits),
    ("checkpoints", Counter, "Times that the map was written down", |s| s.checkpoints),
    ("checksum_loads", Counter, "Times that checksums were read from the device", |s| s.checksum_loads),
    ("blocks_damaged", Counter, "Reads of blocks that are damaged on the device", |s| s.damaged),
    ("ram_map_bytes", Gauge, "RAM of the map", |s| s.map_bytes),
    ("ram_checksum_bytes", Gauge, "RAM of checksums", |s| s.checksum_bytes),
    ("ram_buffer_bytes", Gauge, "RAM of write buffers", |s| s.buffer_bytes),
];

/// Volumes as HTTP shows them, until they are closed.
pub fn of(volumes: &[Arc<Volume>], address: String) -> Volumes {
    let volumes: Vec<Weak<Volume>> = volumes.iter().map(Arc::downgrade).collect();
    let figures = move || -> OfVolumes {
        let open = volumes.iter().filter_map(Weak::upgrade);
        open.map(|volume| (volume.name().to_owned(), figures(&volume.stats()))).collect()
    };
    Volumes { address, figures: Arc::new(figures) }
}

fn figures(stats: &Stats) -> Vec<Figure> {
    let figures = FIGURES.iter();
    figures.map(|&(name, kind, help, value)| Figure { name, kind, help, value: value(stats) }).collect()
}
