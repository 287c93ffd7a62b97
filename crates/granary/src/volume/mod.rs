//! `granary volume`: commands to make, list, inspect, check and delete volumes.

mod inspect;
mod serve;

use crate::failure::{Failure, Result, at};
use crate::progress;
use crate::server::logging;
use crate::server::size::{self, Size};
use crate::variables;
use clap::{Args, Subcommand};
use granary_volume::map::MapKind;
use granary_volume::{Config, Files, Volume};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Shown at the end of `granary volume --help`.
pub const EXAMPLES: &str = "\
Examples:
  Make a disk of 8 GiB that takes space as it is written, and serve it:
    granary volume create scratch --size 8GiB
    granary server --http none --nbd 127.0.0.1:10809 &

  Use it, without the kernel or with it:
    truncate -s 8G image.raw
    nbdcopy --flush image.raw nbd://127.0.0.1/scratch
    nbd-client 127.0.0.1 -N scratch -b 4096 /dev/nbd0 && mkfs.ext4 /dev/nbd0

  See how full it is, and read every block to find damage:
    granary volume inspect scratch
    granary volume scrub scratch

  Copy it without a server: the client starts one for itself, and ends it:
    nbdcopy -- [ granary volume serve scratch --read-only ] backup.raw

A volume is open in one process at a time: stop the server first.";

/// Arguments of `granary volume`.
#[derive(Args)]
pub struct VolumeArguments {
    #[command(subcommand)]
    command: VolumeCommand,
}

/// The folder that volumes lie in.
#[derive(Args)]
struct VolumePath {
    /// Granary's folder; the volumes are in DIR/volumes
    #[arg(long, value_name = "DIR", env = "GRANARY_PATH", default_value = "granary-data")]
    path: PathBuf,
}

/// A volume by its name.
#[derive(Args)]
struct NamedVolume {
    /// The volume's name
    name: String,

    #[command(flatten)]
    place: VolumePath,
}

#[derive(Subcommand)]
enum VolumeCommand {
    /// Make a volume, empty; it takes space as it is written
    Create(Create),
    /// Show the volumes: sizes, and the space that their files take
    #[command(alias = "ls")]
    List(VolumePath),
    /// Show everything about a volume
    #[command(alias = "info")]
    Inspect(NamedVolume),
    /// Open a volume, and say whether all that its map says is there
    Check(NamedVolume),
    /// Read every block in use, and say which are damaged
    Scrub(NamedVolume),
    /// Serve a volume to the one NBD client that starts this: on standard input and output, or on the socket that it
    /// opened
    Serve(Serve),
    /// Make a volume larger
    #[command(alias = "grow")]
    Resize(Resize),
    /// Delete a volume and its files. What is on a raw device (--device) can be read there until it is overwritten
    #[command(alias = "rm")]
    Delete(NamedVolume),
}

#[derive(Args)]
struct Create {
    #[command(flatten)]
    named: NamedVolume,

    /// How large it looks, such as 8GiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    size: Size,

    /// The smallest unit that is written: 4KiB, 8KiB or 16KiB. Larger ones take less RAM, smaller ones fewer writes
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "4KiB")]
    block_size: Size,

    /// The map in RAM: flat (4 bytes a block), hash or skip-list (for volumes that stay almost empty)
    #[arg(long, value_name = "KIND", default_value = "flat")]
    map: MapKind,

    /// A raw block device for the data, such as /dev/disk/by-id/.. [default: a file in DIR/volumes]
    #[arg(long, value_name = "FILE")]
    device: Option<PathBuf>,

    /// Overwrite what is on the device: a file system, another volume
    #[arg(long, requires = "device")]
    force: bool,
}

#[derive(Args)]
struct Serve {
    #[command(flatten)]
    named: NamedVolume,

    /// Refuse what the client wants to change. The volume's own files may change all the same: it is open in no other
    /// process
    #[arg(short, long)]
    read_only: bool,
}

#[derive(Args)]
struct Resize {
    #[command(flatten)]
    named: NamedVolume,

    /// The new size; not smaller than it is
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    size: Size,
}

/// The folder of the volumes within Granary's.
pub fn folder(path: &Path) -> PathBuf {
    path.join("volumes")
}

/// The command that makes a volume in this [folder](folder).
pub fn create_command(folder: &Path) -> String {
    format!("`granary volume create NAME{} --size 8GiB`", path_argument(folder))
}

/// The argument that names this [folder](folder), with a space in front.
fn path_argument(folder: &Path) -> String {
    match folder.parent() {
        Some(path) if path != Path::new("granary-data") => format!(" --path {}", path.display()),
        _ => String::new(),
    }
}

/// What helps with an error of a volume, to be shown behind it.
pub fn hint(error: &granary_volume::Error) -> String {
    match error {
        granary_volume::Error::NotFound { folder, .. } => {
            format!(": `granary volume list{}` shows those that are", path_argument(folder))
        }
        _ => String::new(),
    }
}

/// The volumes in this [folder](folder); none if it is not there.
///
/// # Errors
/// The folder cannot be read.
pub fn volumes(folder: &Path) -> Result<Vec<Files>> {
    if folder.try_exists().map_err(at(folder))? { Ok(Volume::list(folder)?) } else { Ok(Vec::new()) }
}

/// Opens a volume, with a bar while that takes its time.
///
/// # Errors
/// The errors of [`Volume::open`].
pub fn open_with_progress(folder: &Path, name: &str) -> std::result::Result<Volume, granary_volume::Error> {
    let bar = progress::bar(0);
    bar.set_prefix(format!("opening {name} "));
    let opened = Volume::open(folder, name, &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    opened
}

/// Closes a volume that is not served any more. If a client's thread still holds it, and will close it in a moment, its
/// writes are made durable now.
///
/// # Errors
/// The volume could not be made durable.
pub fn close(volume: Arc<Volume>) -> io::Result<()> {
    match Arc::try_unwrap(volume) {
        Ok(volume) => volume.close(),
        Err(volume) => volume.commit(),
    }
}

/// Runs the command.
pub fn run(arguments: VolumeArguments) -> Result<()> {
    logging::start_for_command();
    variables::warn_of_unknown();
    match arguments.command {
        VolumeCommand::Create(create) => make(create),
        VolumeCommand::List(place) => inspect::list(&folder(&place.path)),
        VolumeCommand::Inspect(NamedVolume { name, place }) => inspect::inspect(&folder(&place.path), &name),
        VolumeCommand::Check(NamedVolume { name, place }) => inspect::check(&folder(&place.path), &name),
        VolumeCommand::Scrub(NamedVolume { name, place }) => inspect::scrub(&folder(&place.path), &name),
        VolumeCommand::Serve(Serve { named, read_only }) => {
            serve::serve(&folder(&named.place.path), &named.name, read_only)
        }
        VolumeCommand::Resize(Resize { named, size }) => {
            let before = Volume::resize(&folder(&named.place.path), &named.name, size.0)?;
            say!("{} has {} bytes now, and had {before}", named.name, size.0);
            Ok(())
        }
        VolumeCommand::Delete(NamedVolume { name, place }) => {
            Volume::delete(&folder(&place.path), &name)?;
            say!("{name} is deleted");
            Ok(())
        }
    }
}

fn make(Create { named, size, block_size, map, device, force }: Create) -> Result<()> {
    if block_size.0 < 4096 {
        return Err(Failure::Argument("block-size: 4KiB, 8KiB or 16KiB".into()));
    }
    let config = Config { block_size: block_size.0, map, device, ..Config::new(size.0) };
    let create = if force { Volume::create_over } else { Volume::create };
    create(&folder(&named.place.path), &named.name, &config)?;
    say!(
        "{} is made; `granary server --path {} --http none --nbd 127.0.0.1:10809` serves it, from its next start on",
        named.name,
        named.place.path.display()
    );
    Ok(())
}
