//! Volumes as block devices of the kernel, beside NBD.

use std::sync::Arc;

use clap::Args;
use clap::builder::BoolishValueParser;
use granary_ublk::{BlockDevice, DeviceError};
use granary_volume::Volume;

/// Whether volumes become block devices.
#[derive(Args)]
#[command(next_help_heading = "Volumes as block devices")]
pub struct BlockDeviceArguments {
    /// Make the volumes in DIR/volumes block devices, /dev/ublkb0 and so on; needs root and Linux 6.0
    #[arg(long, env = "GRANARY_UBLK", value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub ublk: Option<bool>,
}

/// Keeps this thread, and those that it starts, from waiting for disks when it allocates memory: under memory pressure
/// the kernel writes to the devices of this process, whose threads could wait for each other's locks.
pub fn allocate_without_disks() {
    if let Err(error) = rustix::process::configure_io_flusher_behavior(true) {
        tracing::warn!(
            %error,
            "where memory is short, the block devices may wait for themselves: run the server with CAP_SYS_RESOURCE"
        );
    }
}

/// Makes a block device of each volume.
///
/// # Errors
/// There is no driver, or it refuses.
pub fn start(volumes: &[Arc<Volume>]) -> Result<Vec<BlockDevice>, DeviceError> {
    let start = |volume: &Arc<Volume>| {
        let device = BlockDevice::start(Arc::clone(volume))?;
        tracing::info!("the volume {} is the block device {}", volume.name(), device.path());
        Ok(device)
    };
    volumes.iter().map(start).collect()
}
