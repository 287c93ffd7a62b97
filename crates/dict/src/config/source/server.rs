//! HOST, PORT, USER, PASSWORD and DB: where a database server is, and as whom it is asked; REPLICA: others like it.

use crate::config::node::{Node, REPLICA, Settings, Value};
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
    pub(super) written: Written,
}

/// Which of its parameters somebody wrote: SHOW CREATE shows no others. It says nothing of what the server is.
#[derive(Clone, Copy)]
pub(super) struct Written {
    pub host: bool,
    pub port: bool,
    pub user: bool,
    pub database: bool,
}

impl Written {
    pub const ALL: Written = Written { host: true, port: true, user: true, database: true };
}

impl PartialEq for Written {
    fn eq(&self, _: &Written) -> bool {
        true
    }
}

/// A server that has the same as others.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// Where it is; as the source itself where it does not say that.
    pub server: Server,
    /// PRIORITY: those of a smaller one are asked first, others of one in their order.
    pub priority: u64,
}

/// What a kind of server has where nothing is said.
pub(super) struct Defaults {
    pub port: u16,
    pub user: &'static str,
    pub database: &'static str,
}

const REPLICA_PARAMETERS: &[&str] = &["HOST", "PORT", "USER", "PASSWORD", PRIORITY];
const PRIORITY: &str = "PRIORITY";

impl Server {
    pub(super) fn take(settings: &Settings<'_>, defaults: &Defaults) -> Result<Server, DictError> {
        let text = |name, default: &str| -> Result<String, DictError> {
            Ok(settings.text(name)?.unwrap_or(default).to_string())
        };
        let is_written = |name| settings.text(name).map(|text| text.is_some());
        Ok(Server {
            written: Written {
                host: is_written("HOST")?,
                port: is_written("PORT")?,
                user: is_written("USER")?,
                database: is_written("DB")?,
            },
            host: text("HOST", "localhost")?,
            port: settings.port(defaults.port)?,
            user: text("USER", defaults.user)?,
            password: text("PASSWORD", "")?,
            database: text("DB", defaults.database)?,
        })
    }

    /// `hidden` stands in place of the password if given.
    pub(super) fn put(&self, nodes: &mut Vec<Node>, hidden: Option<&str>) {
        let mut put = |is_written: bool, name: &str, value: &str| {
            if is_written {
                nodes.push(Node::text(name, value));
            }
        };
        put(self.written.host, "HOST", &self.host);
        put(self.written.port, "PORT", &self.port.to_string());
        put(self.written.user, "USER", &self.user);
        if !self.password.is_empty() {
            nodes.push(Node::text("PASSWORD", hidden.unwrap_or(&self.password)));
        }
        if self.written.database {
            nodes.push(Node::text("DB", &self.database));
        }
    }

    /// The servers of REPLICA(..), in the order in which they are asked.
    pub(super) fn take_replicas(&self, settings: &Settings<'_>) -> Result<Vec<Replica>, DictError> {
        let mut replicas = Vec::new();
        for nodes in settings.groups(REPLICA)? {
            let own = Settings::new("SOURCE", REPLICA, nodes, REPLICA_PARAMETERS)?;
            let text = |name, otherwise: &str| -> Result<String, DictError> {
                Ok(own.text(name)?.unwrap_or(otherwise).to_string())
            };
            let server = Server {
                host: text("HOST", &self.host)?,
                port: own.port(self.port)?,
                user: text("USER", &self.user)?,
                password: text("PASSWORD", &self.password)?,
                database: self.database.clone(),
                written: Written::ALL,
            };
            let priority = own.number(PRIORITY, 0, u32::MAX.into())?.unwrap_or(0);
            replicas.push(Replica { server, priority });
        }
        replicas.sort_by_key(|replica| replica.priority);
        Ok(replicas)
    }

    /// The servers to be asked, the next one where one cannot be reached: the replicas, if there are any.
    pub(super) fn all(&self, replicas: &[Replica]) -> Vec<Server> {
        match replicas.is_empty() {
            true => vec![self.clone()],
            false => replicas.iter().map(|replica| replica.server.clone()).collect(),
        }
    }

    /// `hidden` stands in place of passwords if given.
    pub(super) fn put_replicas(&self, replicas: &[Replica], nodes: &mut Vec<Node>, hidden: Option<&str>) {
        for Replica { server, priority } in replicas {
            let mut own = vec![Node::text("HOST", &server.host), Node::text("PORT", server.port.to_string())];
            if server.user != self.user {
                own.push(Node::text("USER", &server.user));
            }
            if server.password != self.password {
                own.push(Node::text("PASSWORD", hidden.unwrap_or(&server.password)));
            }
            own.push(Node::text(PRIORITY, priority.to_string()));
            nodes.push(Node { name: REPLICA.to_string(), value: Value::Group(own) });
        }
    }

    /// The same server, asked as nobody, with all that it has.
    pub(super) fn anonymous(&self) -> Server {
        Server { user: String::new(), password: String::new(), written: Written::ALL, ..self.clone() }
    }
}

impl Replica {
    /// The same server, asked as nobody.
    pub(super) fn anonymous(&self) -> Replica {
        Replica { server: self.server.anonymous(), ..*self }
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
