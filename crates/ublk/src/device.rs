//! `/dev/ublkbN`: the device, and the threads that serve it.

use crate::answer::{answer, driver_result};
use crate::request::{self, Request, SECTOR};
use granary_volume::{Io, Volume};
use libublk::ctrl::UblkCtrlBuilder;
use libublk::helpers::IoBuf;
use libublk::io::{BufDesc, BufDescList, UblkDev, UblkQueue};
use libublk::{UblkError, UblkFlags, UblkIORes, sys};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The driver's control device.
const CONTROL: &str = "/dev/ublk-control";

/// Requests in flight per queue.
const QUEUE_DEPTH: u16 = 32;

/// Maximum length of a request; the kernel splits longer ones.
const REQUEST_BYTES_MAX: u32 = 256 << 10;

/// Maximum number of queues; each serves one processor, and has a thread.
const QUEUES_MAX: usize = 16;

// The numbers of `request` are those of the driver.
const _: () = assert!(
    sys::UBLK_IO_OP_READ == request::OP_READ
        && sys::UBLK_IO_OP_WRITE == request::OP_WRITE
        && sys::UBLK_IO_OP_FLUSH == request::OP_FLUSH
        && sys::UBLK_IO_OP_DISCARD == request::OP_DISCARD
        && sys::UBLK_IO_OP_WRITE_ZEROES == request::OP_WRITE_ZEROES
        && sys::UBLK_IO_F_FUA == request::FLAG_FUA
);

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The kernel has no driver, or it is not loaded.
    #[error(
        "{CONTROL} is not there: load the driver with `modprobe ublk_drv` (Linux 6.0 and later, CONFIG_BLK_DEV_UBLK), or serve volumes over NBD"
    )]
    NoDriver,
    /// The driver refused.
    #[error("cannot make a block device of the volume {volume}: {reason}")]
    Refused {
        /// The volume.
        volume: String,
        /// The error text of the driver or its library.
        reason: String,
    },
}

impl DeviceError {
    /// The error of the driver or its library when making a device of this volume.
    pub fn refused(volume: &str, error: &UblkError) -> Self {
        Self::Refused { volume: volume.to_owned(), reason: reason(error) }
    }
}

/// A block device of the kernel whose content is a volume. Dropping it removes the device.
pub struct BlockDevice {
    path: String,
    /// Dropped to stop the device.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BlockDevice {
    /// Makes a device with the next free number. It exists when this returns.
    ///
    /// # Errors
    /// There is no driver, or it refuses.
    pub fn start(volume: Arc<Volume>) -> Result<Self, DeviceError> {
        if !Path::new(CONTROL).exists() {
            return Err(DeviceError::NoDriver);
        }
        let name = volume.name().to_owned();
        let (stop, stopped) = channel();
        let (started, has_started) = channel();
        let thread = std::thread::spawn(move || {
            if let Err(error) = control(&volume, &started, stopped) {
                tracing::error!(reason = reason(&error), volume = volume.name(), "the block device ends");
                let _ = started.send(Err(error));
            }
        });
        // A thread that ended without a result has failed in the library.
        let started = has_started.recv().unwrap_or(Err(UblkError::QueueIsDown));
        let path = started.map_err(|error| DeviceError::refused(&name, &error))?;
        Ok(Self { path, stop: Some(stop), thread: Some(thread) })
    }

    /// The device's path, such as `/dev/ublkb0`.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for BlockDevice {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by it; there is nothing to add.
            let _ = thread.join();
        }
    }
}

/// Makes the device, serves it until it is stopped, and removes it.
///
/// All on one thread: the library's ring for the driver's commands belongs to the thread that made the control, and a
/// command from another one panics.
fn control(
    volume: &Arc<Volume>,
    started: &Sender<Result<String, UblkError>>,
    stopped: Receiver<()>,
) -> Result<(), UblkError> {
    let queues = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(QUEUES_MAX));
    let control = UblkCtrlBuilder::default()
        .name("granary")
        .nr_queues(queues as u16)
        .depth(QUEUE_DEPTH)
        .io_buf_bytes(REQUEST_BYTES_MAX)
        .dev_flags(UblkFlags::UBLK_DEV_F_ADD_DEV)
        .build()?;
    let describe = |device: &mut UblkDev| {
        describe(device, volume);
        Ok(())
    };
    let serve = {
        let volume = Arc::clone(volume);
        move |queue: u16, device: &UblkDev| serve(queue, device, &volume)
    };
    let started = started.clone();
    // The library shares what it calls between threads, which a receiver does not allow by itself.
    let stopped = Mutex::new(stopped);
    let ended = control.run_target(describe, serve, move |control| {
        // `start` waits for this.
        let _ = started.send(Ok(control.get_bdev_path()));
        // Nothing is ever sent: it ends when the sender is dropped.
        let _ = stopped.into_inner().map(|stopped| stopped.recv());
        if let Err(error) = control.kill_dev() {
            tracing::error!(reason = reason(&error), "the block device cannot be stopped");
        }
    });
    if ended.is_err() {
        // The queues of a device that did not start hold it until it is killed.
        let _ = control.kill_dev();
    }
    ended.and(control.del_dev()).map(|_| ())
}

/// Describes the disk to the kernel.
fn describe(device: &mut UblkDev, volume: &Volume) {
    let config = volume.config();
    let block_shift = config.block_size.trailing_zeros() as u8;
    let block_sectors = (config.block_size / SECTOR) as u32;
    let sectors_max = REQUEST_BYTES_MAX / SECTOR as u32;
    device.tgt.dev_size = config.size;
    device.tgt.params = sys::ublk_params {
        types: sys::UBLK_PARAM_TYPE_BASIC | sys::UBLK_PARAM_TYPE_DISCARD,
        basic: sys::ublk_param_basic {
            // Writes are durable after a flush, or with FUA.
            attrs: sys::UBLK_ATTR_VOLATILE_CACHE | sys::UBLK_ATTR_FUA,
            logical_bs_shift: SECTOR.trailing_zeros() as u8,
            physical_bs_shift: block_shift,
            io_opt_shift: block_shift,
            io_min_shift: block_shift,
            max_sectors: sectors_max,
            dev_sectors: config.size / SECTOR,
            ..Default::default()
        },
        discard: sys::ublk_param_discard {
            discard_granularity: config.block_size as u32,
            max_discard_sectors: u32::MAX / block_sectors * block_sectors,
            max_write_zeroes_sectors: u32::MAX / block_sectors * block_sectors,
            max_discard_segments: 1,
            ..Default::default()
        },
        ..Default::default()
    };
}

/// Serves a queue, one request at a time, until the device is stopped.
fn serve(queue: u16, device: &UblkDev, volume: &Volume) {
    let mut buffers: Vec<IoBuf<u8>> = device.alloc_queue_io_bufs();
    let fetched = UblkQueue::new(queue, device)
        .and_then(|queue| queue.submit_fetch_commands_unified(BufDescList::Slices(Some(&buffers))));
    let served = match fetched {
        Ok(served) => served,
        Err(error) => {
            tracing::error!(queue, reason = reason(&error), "a queue of the block device cannot be served");
            return;
        }
    };
    let (size, mut io) = (volume.config().size, Io::new());
    served.wait_and_handle_io(|served, tag, _| {
        let asked = served.get_iod(tag);
        let buffer = &mut buffers[usize::from(tag)];
        let answered =
            Request::parse(asked.op_flags, asked.start_sector, asked.nr_sectors, size).and_then(|request| {
                let len = (request.len as usize).min(buffer.len());
                answer(volume, &mut io, request, &mut buffer.as_mut_slice()[..len])
            });
        let completed = served.complete_io_cmd_unified(
            tag,
            BufDesc::Slice(buffer.as_slice()),
            Ok(UblkIORes::Result(driver_result(answered))),
        );
        if let Err(error) = completed {
            tracing::error!(
                queue,
                tag,
                reason = reason(&error),
                "a request of the block device has no answer"
            );
        }
    });
}

/// The text of a library error: its own texts leave out the system's error.
fn reason(error: &UblkError) -> String {
    let system = match error {
        UblkError::OtherError(code) | UblkError::UringIOError(code) => {
            &io::Error::from_raw_os_error(code.abs())
        }
        UblkError::IOError(error) => error,
        error => return error.to_string(),
    };
    match system.kind() {
        io::ErrorKind::PermissionDenied => format!("{system}; ublk devices are root's to make"),
        _ => system.to_string(),
    }
}
