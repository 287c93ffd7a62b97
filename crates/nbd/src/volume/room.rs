//! How much may be written to a volume before a write may have to wait.

use crate::limits::{ROOM_LOOK_MILLISECONDS, ROOM_MILLISECONDS};
use granary_log::limits::WRITE_QUEUE_BYTES_MAX;
use granary_volume::limits::RESERVED_SEGMENTS;
use granary_volume::{Stats, Volume};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Segments that cleaning may open, of those that are free, before it has to wait for the device.
const CLEANING_SEGMENTS: u64 = 2;

/// The room of a volume as all of its connections see it, learnt from its figures now and then. It is a forecast: who else
/// writes to the volume is not counted.
#[derive(Debug)]
pub(super) struct Room(Mutex<Forecast>);

#[derive(Debug)]
struct Forecast {
    /// Bytes that find room.
    left: u64,
    /// When that was seen.
    seen: Instant,
    /// Bytes that were taken, ever.
    taken: u64,
}

impl Room {
    pub fn new(volume: &Volume) -> Self {
        Self(Mutex::new(Forecast { left: room_of(volume), seen: Instant::now(), taken: 0 }))
    }

    fn forecast(&self) -> MutexGuard<'_, Forecast> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for so many bytes; `false`: a write of them may have to wait. It waits for nothing itself.
    pub fn take(&self, bytes: u64) -> bool {
        let mut forecast = self.forecast();
        let left = forecast.left.checked_sub(bytes);
        let Some(left) = left.filter(|_| forecast.seen.elapsed() < Duration::from_millis(ROOM_MILLISECONDS))
        else {
            return false;
        };
        forecast.left = left;
        forecast.taken += bytes;
        true
    }

    /// Notes that so many bytes are written, whether there is room or not.
    pub fn spend(&self, bytes: u64) {
        let mut forecast = self.forecast();
        forecast.left = forecast.left.saturating_sub(bytes);
        forecast.taken += bytes;
    }

    /// Looks at the volume, unless somebody did just now. It may wait: figures of segments that are being written, too, are
    /// behind a lock.
    pub fn look(&self, volume: &Volume) {
        let before = {
            let forecast = self.forecast();
            if forecast.seen.elapsed() < Duration::from_millis(ROOM_LOOK_MILLISECONDS) {
                return;
            }
            forecast.taken
        };
        let room = room_of(volume);
        let mut forecast = self.forecast();
        forecast.left = room.saturating_sub(forecast.taken - before);
        forecast.seen = Instant::now();
    }
}

fn room_of(volume: &Volume) -> u64 {
    let config = volume.config();
    room(&volume.stats(), config.segment_bytes, config.block_size)
}

/// The bytes that segments may take that can be opened now: free ones, and no more than may wait for the device, but for
/// those that cleaning opens.
fn room(stats: &Stats, segment_bytes: u64, block_size: u64) -> u64 {
    let free = stats.segments_free.saturating_sub(RESERVED_SEGMENTS);
    let queued = WRITE_QUEUE_BYTES_MAX.saturating_sub(stats.buffer_bytes) / segment_bytes;
    // A sixteenth is more than headers, footers and the footers of commits take.
    let blocks = stats.blocks_per_segment - stats.blocks_per_segment / 16;
    free.min(queued).saturating_sub(CLEANING_SEGMENTS) * blocks * block_size
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1 << 20;

    fn stats(segments_free: u64, buffer_bytes: u64) -> Stats {
        Stats { segments_free, buffer_bytes, blocks_per_segment: SEGMENT / 4096, ..Stats::default() }
    }

    fn room_with(segments_free: u64, buffer_bytes: u64) -> u64 {
        room(&stats(segments_free, buffer_bytes), SEGMENT, 4096)
    }

    #[test]
    fn there_is_room_while_segments_are_free_and_the_device_is_not_behind() {
        let kept = RESERVED_SEGMENTS + CLEANING_SEGMENTS;
        for free in 0..=kept {
            assert_eq!(room_with(free, 0), 0, "{free} free segments");
        }
        assert_eq!(room_with(kept + 1, 0), SEGMENT - SEGMENT / 16);
        assert_eq!(room_with(kept + 2, 3 * SEGMENT), 2 * (SEGMENT - SEGMENT / 16));
        let behind = |segments: u64| room_with(1000, WRITE_QUEUE_BYTES_MAX - segments * SEGMENT);
        assert_eq!(behind(CLEANING_SEGMENTS + 1), SEGMENT - SEGMENT / 16);
        for segments in 0..=CLEANING_SEGMENTS {
            assert_eq!(behind(segments), 0);
        }
        assert_eq!(room_with(1000, WRITE_QUEUE_BYTES_MAX + SEGMENT), 0);
    }
}
