//! A device that takes nothing for a while: the queue fills up to its bound, and changes that do not block get an
//! error.

#[path = "../../log/tests/common/gated.rs"]
mod gated;

use gated::GatedDevice;
use granary_volume::limits::RESERVED_SEGMENTS;
use granary_volume::{Config, Io, Volume, WaitPolicy};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// More than may wait for the device, with room for all of it.
const SIZE: u64 = 256 << 20;
const PIECE: u64 = 1 << 20;

/// A volume whose queue is full, for its device is shut.
struct Full {
    volume: Arc<Volume>,
    device: GatedDevice,
    _folder: tempfile::TempDir,
}

impl Full {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::new(SIZE);
        let device = GatedDevice::new(config.geometry().unwrap().file_bytes());
        let volume = Volume::open_on(folder.path(), "v", &config, Box::new(device.clone())).unwrap();
        device.set_open(false);
        let (mut io, piece, policy) = (Io::new(), vec![7; PIECE as usize], short());
        let mut write = |offset| volume.try_write(&mut io, offset, &piece, policy);
        let refused = (0..SIZE).step_by(PIECE as usize).find_map(|offset| write(offset).err());
        assert_eq!(refused.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
        assert!(volume.stats().segments_free > RESERVED_SEGMENTS, "it is the queue that is full");
        Self { volume: Arc::new(volume), device, _folder: folder }
    }

    /// Makes a change on a thread of its own: it may wait.
    fn begin(
        &self,
        change: impl FnOnce(&Volume) -> io::Result<()> + Send + 'static,
    ) -> Receiver<io::Result<()>> {
        let (volume, (done, outcome)) = (Arc::clone(&self.volume), channel());
        std::thread::spawn(move || done.send(change(&volume)));
        outcome
    }
}

impl Drop for Full {
    /// Otherwise a failing test would wait for its volume.
    fn drop(&mut self) {
        self.device.set_open(true);
    }
}

fn short() -> WaitPolicy<'static> {
    WaitPolicy::non_blocking_after(Duration::from_millis(5))
}

fn ended(outcome: &Receiver<io::Result<()>>) -> io::Result<()> {
    outcome.recv_timeout(Duration::from_secs(60)).expect("it ends")
}

/// Changes that free space need a place in the queue, too.
#[test]
fn zeroes_and_trims_wait_for_a_full_queue_no_longer_than_they_may() {
    type Zero = fn(&Volume, WaitPolicy<'_>) -> io::Result<()>;
    let zero: [Zero; 2] = [
        |volume, policy| volume.try_trim(0, SIZE, policy),
        |volume, policy| volume.try_write_zeroes(&mut Io::new(), 0, SIZE, policy),
    ];
    for zero in zero {
        let full = Full::new();
        for wait in [Duration::ZERO, Duration::from_millis(5)] {
            let outcome = full.begin(move |volume| zero(volume, WaitPolicy::non_blocking_after(wait)));
            let refused = ended(&outcome).expect_err("there is no room");
            assert_eq!(refused.kind(), io::ErrorKind::WouldBlock, "{refused}");
        }
        let outcome = full.begin(move |volume| zero(volume, WaitPolicy::DEFAULT));
        full.device.set_open(true);
        ended(&outcome).unwrap();
        assert_eq!(full.volume.stats().blocks_mapped, 0);
    }
}
