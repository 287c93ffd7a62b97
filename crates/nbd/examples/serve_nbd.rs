//! An NBD server of one disk, for measurements and tests: `serve_nbd [-s | ADDRESS | unix:PATH | systemd] DISK`. DISK
//! is the size in MiB of one in memory, or `volume:FOLDER`, where the volume `disk` is. It ends at the end of its
//! input, which with `-s` is the client; with `systemd`, when it is killed.

use granary_nbd::{
    Exports, MemoryExport, Options, Server, SingleExport, Stop, UnixSocket, VolumeExports, serve,
};
use granary_volume::Volume;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, disk] = &arguments[..] else {
        return Err("serve_nbd [-s | ADDRESS | unix:PATH | systemd] [SIZE_MIB | volume:FOLDER]".into());
    };
    let exports: Arc<dyn Exports> = match disk.strip_prefix("volume:") {
        Some(folder) => {
            let volume = Volume::open(Path::new(folder), "disk", &mut |_, _| {})?;
            Arc::new(VolumeExports::new([Arc::new(volume)]))
        }
        None => Arc::new(SingleExport(Arc::new(MemoryExport::new("memory", disk.parse::<u64>()? << 20)))),
    };
    let mut options = Options::new(exports);
    match place.as_str() {
        "-s" => {
            let input = std::io::stdin().as_fd().try_clone_to_owned()?;
            let output = std::io::stdout().as_fd().try_clone_to_owned()?;
            return Ok(serve(&options, input, Some(output), &Stop::new()?)?);
        }
        "systemd" => options.is_activated = true,
        place => match place.strip_prefix("unix:") {
            Some(path) => options.sockets.push(UnixSocket::new(path)),
            None => options.addresses.push(place.parse()?),
        },
    }
    let server = Server::start(options)?;
    for address in server.addresses() {
        println!("nbd://{address}");
    }
    if place == "systemd" {
        // The program that opened the socket ends this process, too.
        loop {
            std::thread::park();
        }
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    server.stop();
    Ok(())
}
