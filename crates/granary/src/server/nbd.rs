//! The NBD server of `granary server`: the volumes of its folder.

use super::address;
use clap::Args;
use granary_nbd::{Options, Server, ServerConfig, ServerError, UnixSocket, VolumeExports, is_activated};
use granary_volume::Volume;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;
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

    /// Serves volumes, if that is asked for.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn start(
        self,
        volumes: &[Arc<Volume>],
        tls: Option<Arc<ServerConfig>>,
    ) -> Result<Option<Server>, ServerError> {
        if !self.has_address() {
            return Ok(None);
        }
        let mut options = Options::new(Arc::new(VolumeExports::new(volumes.iter().map(Arc::clone))));
        options.addresses.extend(self.address);
        options.sockets.extend(self.socket.map(UnixSocket::new));
        options.is_activated = true;
        options.requires_tls = tls.is_some();
        options.tls = tls;
        Server::start(options).map(Some)
    }
}
