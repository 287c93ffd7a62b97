//! What MySQL's errors mean for a request, and for others.

use crate::error::{Code, DictError};
use crate::source::lost_connection::{io_cause, is_broken};
use mysql::Error;

/// ER_STATEMENT_TIMEOUT of MariaDB and ER_QUERY_TIMEOUT of MySQL.
const OVERDUE: [u16; 2] = [1969, 3024];
/// ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED of MariaDB, ER_CLIENT_INTERACTION_TIMEOUT of MySQL: the server's last
/// words.
const FAREWELLS: [u16; 3] = [1053, 1927, 4031];
/// Errors of the server that say nothing of what was asked: no memory, no room (1021, 1037, 1038, 1041, 1114), a table
/// or an engine that fails (1030, 1105, 1429), no connection or thread (1040, 1129, 1135, 1203, 1226), no access (1044,
/// 1045, 1142, 1143), a network that fails (1152 to 1161), locks (1205, 1213), a server that only reads (1290, 1836),
/// an interruption (1317), a server that is closed to clients (3032).
const OUTAGES: [u16; 32] = [
    1021, 1030, 1037, 1038, 1040, 1041, 1044, 1045, 1105, 1114, 1129, 1135, 1142, 1143, 1152, 1154, 1155,
    1156, 1157, 1158, 1159, 1160, 1161, 1203, 1205, 1213, 1226, 1290, 1317, 1429, 1836, 3032,
];

/// The error of the server or the connection, and what it means for other requests.
pub(super) fn error(e: Error) -> DictError {
    let code = match &e {
        Error::MySqlError(server) if OVERDUE.contains(&server.code) => Code::TimeoutExceeded,
        _ => Code::PocoException,
    };
    let is_lost = match &e {
        Error::IoError(e) => is_broken(e),
        // A farewell that came before a request is out of sync.
        Error::CodecError(e) => io_cause(e).is_none_or(is_broken),
        Error::MySqlError(server) => FAREWELLS.contains(&server.code),
        _ => false,
    };
    let is_of_request = matches!(&e, Error::MySqlError(server) if !OUTAGES.contains(&server.code) && code != Code::TimeoutExceeded);
    DictError::new(code, format!("MySQL: {}", said(&e))).of_request(is_of_request).of_lost_connection(is_lost)
}

/// The server's message, or that of the connection.
pub(super) fn said(e: &Error) -> String {
    match e {
        Error::MySqlError(server) => format!("{} (error {})", server.message, server.code),
        other => other.to_string(),
    }
}
