//! Volumes as block devices, `/dev/ublkbN`: the kernel's ublk driver (Linux 6.0) hands requests of a block device to a
//! process, here to a [volume](granary_volume::Volume).
//!
//! - [`Request`]: a request of the driver, checked against the volume's size. Pure.
//! - [`answer`]: carries a request out; [`driver_result`]: its result as the driver takes it.
//! - [`BlockDevice`]: the device and its threads. Only with the feature `device`, which needs libclang to be built.
#![forbid(unsafe_code)]

mod answer;
#[cfg(feature = "device")]
mod device;
mod request;

pub use answer::{answer, driver_result};
#[cfg(feature = "device")]
pub use device::{BlockDevice, DeviceError};
pub use request::{Kind, Request, SECTOR};
