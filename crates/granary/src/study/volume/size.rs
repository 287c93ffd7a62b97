//! The scale of the study.

use std::time::Duration;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// The sizes of a run.
#[derive(Clone, Copy, Debug)]
pub struct VolumeStudySize {
    /// Whether the figures are meaningless.
    pub quick: bool,
    /// The runs of each measurement.
    pub repetitions: usize,
    /// The time of a run in process.
    pub time: Duration,
    /// The time of a run of fio, in seconds.
    pub fio_seconds: f64,
    /// The size of the volumes whose maps are measured.
    pub map_volume: u64,
    /// The used part of it.
    pub map_used: u64,
    /// The logical blocks of the maps whose memory is measured.
    pub memory_blocks: u64,
    /// Bytes that clients of servers read and write on the device.
    pub served: u64,
    /// Bytes that clients of servers read and write in RAM.
    pub served_in_memory: u64,
    /// The size of the volume whose write amplification is measured.
    pub amplification_volume: u64,
    /// The data of the volume that is opened.
    pub opened: u64,
    /// The size of the volume that is overwritten for a long time.
    pub endurance_volume: u64,
    /// How long it is overwritten.
    pub endurance: Duration,
    /// Duration of each window that is measured.
    pub endurance_window: Duration,
}

impl VolumeStudySize {
    /// The sizes of a quick run or of a full one.
    pub fn new(quick: bool, repetitions: u64, minutes: f64) -> Self {
        if quick {
            return Self {
                quick,
                repetitions: 1,
                time: Duration::from_millis(20),
                fio_seconds: 0.5,
                map_volume: 256 * MIB,
                map_used: 64 * MIB,
                memory_blocks: 1 << 16,
                served: 64 * MIB,
                served_in_memory: 64 * MIB,
                amplification_volume: 128 * MIB,
                opened: 128 * MIB,
                endurance_volume: 128 * MIB,
                endurance: Duration::from_secs(2),
                endurance_window: Duration::from_secs(1),
            };
        }
        Self {
            quick,
            repetitions: repetitions as usize,
            time: Duration::from_millis(300),
            fio_seconds: 4.0,
            map_volume: 16 * GIB,
            map_used: 4 * GIB,
            memory_blocks: 1 << 24,
            served: GIB,
            served_in_memory: 512 * MIB,
            amplification_volume: 4 * GIB,
            opened: 64 * GIB,
            endurance_volume: 8 * GIB,
            endurance: Duration::from_secs_f64(minutes * 60.0),
            endurance_window: Duration::from_secs(15),
        }
    }
}
