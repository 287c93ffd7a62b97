//! The volumes' figures for the dashboard and `/metrics`.

use std::sync::{Arc, Weak};

use granary_server::{Figure, Kind, LatencyFigure, VolumeFigures, Volumes};
use granary_volume::{Stats, Volume};

use Kind::{Counter, Gauge};

type OfVolume = (&'static str, Kind, &'static str, fn(&Stats) -> u64);

/// The figures of each volume.
const FIGURES: &[OfVolume] = &[
    ("reads", Counter, "Requests that read", |s| s.reads),
    ("writes", Counter, "Requests that wrote", |s| s.writes),
    ("flushes", Counter, "Flushes that were answered", |s| s.flush_latency.count()),
    ("read_bytes", Counter, "Bytes read by clients", |s| s.bytes_read),
    ("written_bytes", Counter, "Bytes written by clients", |s| s.bytes_written),
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
    (
        "ram_map_bytes",
        Gauge,
        "RAM of the map; of a flat one at the most, when all of the volume was written",
        |s| s.map_bytes,
    ),
    ("ram_checksum_bytes", Gauge, "RAM of checksums", |s| s.checksum_bytes),
    ("ram_buffer_bytes", Gauge, "RAM of write buffers", |s| s.buffer_bytes),
];

/// The volumes' figures, as HTTP shows them, until they are closed.
pub fn of(volumes: &[Arc<Volume>], address: String) -> Volumes {
    let volumes: Vec<Weak<Volume>> = volumes.iter().map(Arc::downgrade).collect();
    let figures = move || {
        let open = volumes.iter().filter_map(Weak::upgrade);
        open.map(|volume| of_volume(volume.name().to_owned(), &volume.stats())).collect()
    };
    Volumes { address, figures: Arc::new(figures) }
}

fn of_volume(name: String, stats: &Stats) -> VolumeFigures {
    let figures = FIGURES.iter();
    let latencies = [
        ("read", "Time from a read to its answer", stats.read_latency),
        ("write", "Time from a write to its answer", stats.write_latency),
        ("flush", "Time from a flush to its answer", stats.flush_latency),
    ];
    VolumeFigures {
        name,
        figures: figures
            .map(|&(name, kind, help, value)| Figure { name, kind, help, value: value(stats) })
            .collect(),
        latencies: latencies.map(|(name, help, latency)| LatencyFigure { name, help, latency }).to_vec(),
    }
}
