//! The NBD server of `granary server`: the volumes of its folder.

use super::address;
use super::count;
use super::volumes::Opened;
use clap::Args;
use clap::builder::BoolishValueParser;
use granary_nbd::{Options, Server, ServerConfig, ServerError, UnixSocket, VolumeExports, is_activated};
use serde::Deserialize;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments that begin with `--nbd`, and the section `[nbd]` of the configuration.
#[derive(Debug, Default, PartialEq, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a section [nbd]")]
#[command(next_help_heading = "Volumes over NBD")]
pub struct NbdArguments {
    /// Serve the volumes in DIR/volumes here, by their names; `granary volume create` makes them, and without one the
    /// server does not start
    #[arg(id = "nbd-address", long = "nbd", value_name = "ADDR", env = "GRANARY_NBD", value_parser = address::parse)]
    #[serde(default, deserialize_with = "address::deserialize")]
    address: Option<SocketAddr>,

    /// Serve them on a Unix socket, beside ADDR or alone
    #[arg(id = "nbd-socket", long = "nbd-socket", value_name = "PATH", env = "GRANARY_NBD_SOCKET")]
    socket: Option<PathBuf>,

    /// Let clients speak TLS, and require it; needs --tls-certificate and --tls-key
    #[arg(id = "nbd-tls", long = "nbd-tls", env = "GRANARY_NBD_TLS", value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    tls: Option<bool>,

    /// Most connections at a time; further ones are turned away. Each has a thread [default: 256]
    #[arg(
        id = "nbd-connections",
        long = "nbd-connections",
        value_name = "N",
        env = "GRANARY_NBD_CONNECTIONS"
    )]
    #[serde(default, deserialize_with = "count::deserialize_positive")]
    connections: Option<NonZeroUsize>,
}

impl NbdArguments {
    /// These arguments, completed by `others`.
    pub fn or(self, others: NbdArguments) -> NbdArguments {
        NbdArguments {
            address: self.address.or(others.address),
            socket: self.socket.or(others.socket),
            tls: self.tls.or(others.tls),
            connections: self.connections.or(others.connections),
        }
    }

    /// Whether an address or a socket is given, here or by systemd.
    pub fn has_address(&self) -> bool {
        self.address.is_some() || self.socket.is_some() || is_activated()
    }

    /// Whether any argument is given.
    pub fn says_something(&self) -> bool {
        *self != NbdArguments::default()
    }

    /// Whether it is to serve TLS.
    pub fn wants_tls(&self) -> bool {
        self.tls == Some(true) && self.has_address()
    }

    /// Serves volumes, if it has an address.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn start(
        self,
        volumes: &Opened,
        tls: Option<Arc<ServerConfig>>,
    ) -> Result<Option<Server>, ServerError> {
        if !self.has_address() {
            return Ok(None);
        }
        if let Some(address) = self.address.filter(|address| !address.ip().is_loopback()) {
            tracing::warn!("whoever reaches {address} reads and writes the volumes: NBD knows no passwords");
        }
        let exports = VolumeExports::new(volumes.volumes.iter().map(Arc::clone));
        let mut options = Options::new(Arc::new(exports.with_default(&volumes.default_name)));
        options.addresses.extend(self.address);
        options.sockets.extend(self.socket.map(UnixSocket::new));
        options.connections_max = self.connections.map_or(options.connections_max, NonZeroUsize::get);
        options.is_activated = true;
        options.requires_tls = tls.is_some();
        options.tls = tls;
        Server::start(options).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_that_is_not_given_is_that_of_the_configuration() {
        let all = || NbdArguments {
            address: Some(SocketAddr::from(([127, 0, 0, 1], 10809))),
            socket: Some("socket".into()),
            tls: Some(true),
            connections: NonZeroUsize::new(6),
        };
        assert_eq!(NbdArguments::default().or(all()), all());
        assert_eq!(all().or(NbdArguments::default()), all());
    }
}
