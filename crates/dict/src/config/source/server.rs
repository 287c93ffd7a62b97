//! HOST, PORT, USER, PASSWORD and DB: where a database server is, and as whom it is asked.

use crate::config::node::{Node, Settings};
use crate::error::DictError;
use std::fmt;

/// A database server, and as whom it is asked.
#[derive(Clone, PartialEq)]
pub struct Server {
    /// HOST, `localhost` if not given.
    pub host: String,
    /// PORT.
    pub port: u16,
    /// USER.
    pub user: String,
    /// PASSWORD; empty: none.
    pub password: String,
    /// DB.
    pub database: String,
}

/// What a kind of server has where nothing is said.
pub(super) struct Defaults {
    pub port: u16,
    pub user: &'static str,
    pub database: &'static str,
}

impl Server {
    pub(super) fn take(settings: &Settings<'_>, defaults: &Defaults) -> Result<Server, DictError> {
        let text = |name, default: &str| -> Result<String, DictError> {
            Ok(settings.text(name)?.unwrap_or(default).to_string())
        };
        Ok(Server {
            host: text("HOST", "localhost")?,
            port: settings.port(defaults.port)?,
            user: text("USER", defaults.user)?,
            password: text("PASSWORD", "")?,
            database: text("DB", defaults.database)?,
        })
    }

    /// `hidden` stands in place of the password if given.
    pub(super) fn put(&self, nodes: &mut Vec<Node>, hidden: Option<&str>) {
        nodes.push(Node::text("HOST", &self.host));
        nodes.push(Node::text("PORT", self.port.to_string()));
        nodes.push(Node::text("USER", &self.user));
        if !self.password.is_empty() {
            nodes.push(Node::text("PASSWORD", hidden.unwrap_or(&self.password)));
        }
        nodes.push(Node::text("DB", &self.database));
    }

    /// The same server, asked as nobody.
    pub(super) fn anonymous(&self) -> Server {
        Server { user: String::new(), password: String::new(), ..self.clone() }
    }
}

impl fmt::Debug for Server {
    /// Without the password, which debug output must not leak.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}
