//! `granary volume serve`: a volume for the one client that started this process.

use super::{close, open_with_progress};
use crate::failure::{Failure, Result};
use granary_nbd::{Options, Server, Stop, VolumeExports, is_activated};
use granary_volume::Volume;
use rustix::fs::{FileType, fstat};
use rustix::process::{Pid, getppid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, stdin, stdout};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// How often a process that was started with its sockets checks whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// Serves until the client disconnects, or a signal arrives. `is_read_only`: the client may change nothing.
pub fn serve(folder: &Path, name: &str, is_read_only: bool) -> Result<()> {
    let parent = getppid();
    if !is_activated() && stdin().is_terminal() {
        let text = format!(
            "standard input is a terminal: an NBD client starts this, such as `nbdinfo -- [ granary volume serve {name} ]`; \
             for many clients there is `granary server --http none --nbd 127.0.0.1:10809`"
        );
        return Err(Failure::Argument(text));
    }
    let volume = Arc::new(open_with_progress(folder, name)?);
    let served = serve_open(&volume, parent, is_read_only);
    let closed = close(volume);
    served?;
    closed.map_err(|error| Failure::File(name.into(), error))
}

fn serve_open(volume: &Arc<Volume>, parent: Option<Pid>, is_read_only: bool) -> Result<()> {
    let failed = |error| Failure::File("standard input".into(), error);
    let exports = VolumeExports::new([Arc::clone(volume)]);
    let mut options = Options::new(Arc::new(if is_read_only { exports.read_only() } else { exports }));
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM]).map_err(failed)?;
    if is_activated() {
        options.is_activated = true;
        let server = Server::start(options)?;
        // A client that started this process ends it, unless it is killed itself. The volume must not stay open then.
        while signals.pending().next().is_none() && getppid() == parent {
            sleep(LOOK);
        }
        server.stop();
        return Ok(());
    }
    let stop = Stop::new().map_err(failed)?;
    let given = stop.clone();
    std::thread::spawn(move || signals.forever().for_each(|_| given.give()));
    let input = stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    // A socket is bidirectional.
    let is_socket =
        FileType::from_raw_mode(fstat(&input).map_err(|error| failed(error.into()))?.st_mode).is_socket();
    let output = (!is_socket).then(|| stdout().as_fd().try_clone_to_owned()).transpose().map_err(failed)?;
    Ok(granary_nbd::serve(&options, input, output, &stop)?)
}
