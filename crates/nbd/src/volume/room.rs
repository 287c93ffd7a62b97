//! How much may be written to a volume before a write may have to wait.

use crate::limits::ROOM_LOOK_MILLISECONDS;
use granary_log::limits::WRITE_QUEUE_BYTES_MAX;
use granary_volume::limits::RESERVED_SEGMENTS;
use granary_volume::{Stats, Volume};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The room of a volume as all of its connections see it, learnt from its figures now and then. It is a forecast: cleaning
/// and other writers of the volume may be faster.
#[derive(Debug, Default)]
pub(super) struct Room(Mutex<Forecast>);

#[derive(Debug, Default)]
struct Forecast {
    /// Bytes that find room.
    left: u64,
    /// Until when that holds; none: the volume was never asked.
    until: Option<Instant>,
}

impl Room {
    /// Takes room for so many bytes; `false`: a write of them may have to wait.
    pub fn take(&self, volume: &Volume, bytes: u64) -> bool {
        let mut forecast = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if forecast.until.is_none_or(|until| until <= now) {
            let config = volume.config();
            forecast.left = room(&volume.stats(), config.segment_bytes, config.block_size);
            forecast.until = Some(now + Duration::from_millis(ROOM_LOOK_MILLISECONDS));
        }
        let left = forecast.left.checked_sub(bytes);
        forecast.left = left.unwrap_or(forecast.left);
        left.is_some()
    }
}

/// The bytes that segments may take that can be opened now, but for one: free ones, and no more than may wait for the
/// device.
fn room(stats: &Stats, segment_bytes: u64, block_size: u64) -> u64 {
    let free = stats.segments_free.saturating_sub(RESERVED_SEGMENTS);
    let queued = WRITE_QUEUE_BYTES_MAX.saturating_sub(stats.buffer_bytes) / segment_bytes;
    // A sixteenth is more than headers, footers and the footers of commits take.
    let blocks = stats.blocks_per_segment - stats.blocks_per_segment / 16;
    free.min(queued).saturating_sub(1) * blocks * block_size
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1 << 20;

    fn stats(segments_free: u64, buffer_bytes: u64) -> Stats {
        Stats { segments_free, buffer_bytes, blocks_per_segment: SEGMENT / 4096, ..Stats::default() }
    }

    fn room_of(segments_free: u64, buffer_bytes: u64) -> u64 {
        room(&stats(segments_free, buffer_bytes), SEGMENT, 4096)
    }

    #[test]
    fn there_is_room_while_segments_are_free_and_the_device_is_not_behind() {
        for free in 0..=RESERVED_SEGMENTS + 1 {
            assert_eq!(room_of(free, 0), 0, "{free} free segments");
        }
        assert_eq!(room_of(RESERVED_SEGMENTS + 2, 0), SEGMENT - SEGMENT / 16);
        assert_eq!(room_of(RESERVED_SEGMENTS + 3, 3 * SEGMENT), 2 * (SEGMENT - SEGMENT / 16));
        let plenty = RESERVED_SEGMENTS + 1000;
        assert_eq!(room_of(plenty, WRITE_QUEUE_BYTES_MAX - 2 * SEGMENT), SEGMENT - SEGMENT / 16);
        for behind in [SEGMENT, 0] {
            assert_eq!(room_of(plenty, WRITE_QUEUE_BYTES_MAX - behind), 0);
        }
        assert_eq!(room_of(plenty, WRITE_QUEUE_BYTES_MAX + SEGMENT), 0);
    }
}
