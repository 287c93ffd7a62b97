//! HOST, PORT, USER, PASSWORD and DB: where a database server is, and as whom it is asked; REPLICA: others like it.

use crate::config::{Parameter, Parameters, Printed, ValueType, Values};
use crate::error::DictError;
use std::fmt;

/// A database server, and as whom it is asked.
#[derive(Clone, PartialEq)]
pub(super) struct Server {
    pub host: String,
    pub port: u16,
    pub user: String,
    /// Empty: none.
    pub password: String,
    pub database: String,
}

const HOST: Parameter = Parameter::text("HOST").also("HOSTNAME");
const USER: Parameter = Parameter::text("USER").also("USERNAME").emptied();
const PASSWORD: Parameter = Parameter::text("PASSWORD").secret();
const PRIORITY: &str = "PRIORITY";

/// The parameters of one server, with these defaults.
pub(super) const fn parameters(
    port: &'static str,
    user: &'static str,
    database: &'static str,
) -> [Parameter; 5] {
    [
        HOST.or("localhost").printed(Printed::IfWritten),
        Parameter::port(port).printed(Printed::IfWritten),
        USER.or(user).printed(Printed::IfWritten),
        PASSWORD.or(""),
        Parameter::text("DB").also("DATABASE").or(database).printed(Printed::IfWritten),
    ]
}

/// The parameter in which ClickHouse's collections may have the servers.
pub(super) const NO_ADDRESSES: (&str, &str) =
    ("ADDRESSES_EXPR", "is not read here; give HOST, or REPLICA(HOST '..') for each server");
const REPLICA: &str = "REPLICA";

/// The parameters of a REPLICA. Those that it lacks are those of the source.
pub(super) const REPLICA_PARAMETERS: Parameters = Parameters::of(&[&[
    HOST.or_outside().printed(Printed::Always),
    Parameter::number("PORT", 1, u16::MAX as u64).or_outside().printed(Printed::Always),
    USER.or_outside(),
    PASSWORD.or_outside(),
    Parameter::number(PRIORITY, 0, u32::MAX as u64).or("0").printed(Printed::Always),
]]);

/// REPLICA(..), a server with the same rows. Replicas of a smaller PRIORITY are asked first, those of the same one in
/// their order.
pub(super) const fn replicas(parameters: &'static Parameters) -> Parameter {
    Parameter::new(REPLICA, ValueType::Groups(parameters))
}

/// Puts replicas in the order in which they are asked.
pub(super) fn sort_replicas(values: &mut Values) -> Result<(), DictError> {
    values.groups_mut(REPLICA).sort_by_key(|replica| replica.number(PRIORITY));
    Ok(())
}

impl Server {
    pub fn of(values: &Values) -> Server {
        let text = |name| values.text(name).to_string();
        Server {
            host: text("HOST"),
            port: values.port(),
            user: text("USER"),
            password: text("PASSWORD"),
            database: text("DB"),
        }
    }

    /// The servers to be asked, the next one where one cannot be reached: the replicas, if there are any.
    pub fn all(values: &Values) -> Vec<Server> {
        let database = values.text("DB");
        let replica = |replica| Server { database: database.to_string(), ..Server::of(replica) };
        match values.groups(REPLICA) {
            [] => vec![Server::of(values)],
            replicas => replicas.iter().map(replica).collect(),
        }
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
