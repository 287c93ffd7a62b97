//! The device itself, where there is a driver.

use granary_ublk::{BlockDevice, DeviceError};
use granary_volume::{Config, Volume};
use libublk::UblkError;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

#[path = "../../log/tests/common/skip.rs"]
mod skip;

const CONTROL: &str = "/dev/ublk-control";

/// Without the driver the error says what to do; with it, bytes written to the device are in the volume.
#[test]
fn a_volume_is_a_block_device_or_the_error_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    Volume::create(folder.path(), "disk", &Config::new(16 << 20)).unwrap();
    let volume = Arc::new(Volume::open(folder.path(), "disk", &mut |_, _| {}).unwrap());
    let started = BlockDevice::start(Arc::clone(&volume));
    if !Path::new(CONTROL).exists() {
        let Err(error @ DeviceError::NoDriver) = started else { panic!("there is no driver") };
        assert!(error.to_string().contains("modprobe ublk_drv"), "{error}");
        return skip::skipped("no ublk driver: the block device itself was not run");
    }
    if let Err(error) = OpenOptions::new().read(true).write(true).open(CONTROL) {
        assert!(started.is_err_and(|error| error.to_string().contains("root")));
        return skip::skipped(&format!("{CONTROL}: {error}: the block device itself was not run"));
    }
    let device = started.unwrap();
    let disk = OpenOptions::new().read(true).write(true).open(device.path()).unwrap();
    disk.write_all_at(&[7; 8192], 4096).unwrap();
    disk.sync_all().unwrap();
    drop(disk);
    drop(device);
    let mut found = [0; 8192];
    volume.read(&mut granary_volume::Io::new(), 4096, &mut found).unwrap();
    assert_eq!(found, [7; 8192]);
}

/// The library's own texts leave out the system's error.
#[test]
fn reasons_are_those_of_the_system() {
    let refused = |error| DeviceError::refused("disk", &error).to_string();
    let beginning = "cannot make a block device of the volume disk: ";
    let denied = UblkError::IOError(std::io::ErrorKind::PermissionDenied.into());
    let because = "permission denied; ublk devices are root's to make";
    assert_eq!(refused(denied), format!("{beginning}{because}"));
    assert!(refused(UblkError::UringIOError(-1)).ends_with("ublk devices are root's to make"));
    assert!(refused(UblkError::OtherError(-28)).starts_with(&format!("{beginning}No space left")));
}
