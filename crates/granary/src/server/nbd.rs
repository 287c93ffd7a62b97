//! The NBD server of `granary server`: the volumes of its folder.

use super::{address, volume_figures};
use crate::volume::open_with_progress;
use clap::Args;
use granary_nbd::{Options, Server, ServerConfig, UnixSocket, VolumeExports, is_activated};
use granary_volume::{Files, Volume};
use serde::Deserialize;
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments that begin with `--nbd`, and the section `[nbd]` of the configuration.
#[derive(Debug, Default, PartialEq, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Volumes over NBD")]
pub struct Arguments {
    /// Serve the volumes in DIR/volumes here, by their names; `granary volume create` makes them
    #[arg(id = "nbd-address", long = "nbd", value_name = "ADDR", env = "GRANARY_NBD", value_parser = address::parse)]
    #[serde(default, deserialize_with = "address::deserialize")]
    address: Option<SocketAddr>,

    /// Serve them on a Unix socket, beside ADDR or alone
    #[arg(id = "nbd-socket", long = "nbd-socket", value_name = "PATH", env = "GRANARY_NBD_SOCKET")]
    socket: Option<PathBuf>,

    /// Let clients speak TLS, and require it; needs --tls-certificate and --tls-key
    #[arg(id = "nbd-tls", long = "nbd-tls", env = "GRANARY_NBD_TLS")]
    #[serde(default)]
    tls: bool,
}

/// A running server, and what it serves.
pub struct Nbd {
    server: Server,
    volumes: Vec<Arc<Volume>>,
}

impl Arguments {
    /// These, and where they say nothing, others.
    pub fn or(self, others: Arguments) -> Arguments {
        Arguments {
            address: self.address.or(others.address),
            socket: self.socket.or(others.socket),
            tls: self.tls || others.tls,
        }
    }

    /// Whether it is said where volumes are to be served, here or by systemd.
    pub fn has_address(&self) -> bool {
        self.address.is_some() || self.socket.is_some() || is_activated()
    }

    /// Whether anything is said at all.
    pub fn says_something(&self) -> bool {
        *self != Arguments::default()
    }

    /// Whether it is to speak TLS.
    pub fn wants_tls(&self) -> bool {
        self.tls && self.has_address()
    }

    /// Opens the volumes of a folder and serves them, if that is asked for.
    ///
    /// # Errors
    /// There are none, one cannot be opened, or the address cannot be listened on.
    pub fn start(self, folder: &Path, tls: Option<Arc<ServerConfig>>) -> Result<Option<Nbd>, Box<dyn Error>> {
        if !self.has_address() {
            return Ok(None);
        }
        let folder = crate::volume::folder(folder);
        let names = if folder.exists() { Files::list(&folder)? } else { Vec::new() };
        if names.is_empty() {
            let text = format!(
                "there is no volume in {}: make one with `granary volume create NAME --size 8GiB`",
                folder.display()
            );
            return Err(text.into());
        }
        let open = |files: &Files| open_with_progress(&folder, files.name()).map(Arc::new);
        let volumes = names.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut options = Options::new(Arc::new(VolumeExports::new(volumes.iter().map(Arc::clone))));
        options.addresses.extend(self.address);
        options.sockets.extend(self.socket.map(UnixSocket::new));
        options.is_activated = is_activated();
        options.requires_tls = tls.is_some();
        options.tls = tls;
        Ok(Some(Nbd { server: Server::start(options)?, volumes }))
    }
}

impl Nbd {
    /// Where it listens, and what it serves.
    pub fn places(&self) -> String {
        let names: Vec<&str> = self.volumes.iter().map(|volume| volume.name()).collect();
        format!("{} at {}", names.join(", "), self.addresses())
    }

    fn addresses(&self) -> String {
        self.server.uris().join(", ")
    }

    /// The volumes as HTTP shows them.
    pub fn figures(&self) -> granary_server::Volumes {
        volume_figures::of(&self.volumes, self.addresses())
    }

    /// Answers what was begun, and closes the volumes.
    ///
    /// # Errors
    /// A volume could not be made durable.
    pub fn stop(self) -> Result<(), Box<dyn Error>> {
        self.server.stop();
        for volume in self.volumes {
            match Arc::try_unwrap(volume) {
                Ok(volume) => volume.close()?,
                // A connection's thread lets go of it in a moment, and closes it then.
                Err(volume) => volume.commit()?,
            }
        }
        Ok(())
    }
}
