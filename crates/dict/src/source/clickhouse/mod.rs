//! CLICKHOUSE(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' TABLE '..' | QUERY '..' [WHERE '..']), over HTTP; the
//! server's own tables where HOST is this machine and PORT 9000, or neither PORT nor SECURE is given.

mod client;
mod columns;
mod truncating_settings;

use self::client::{Clickhouse, Endpoint};
use super::SourceFactory;
use super::config::CURRENT_DATABASE;
use super::kind::{Opening, SourceKind};
use super::select::{self, SELECT, Select, UPDATES};
use super::server::{self, Server};
use crate::config::{Parameter, Values};
use crate::error::DictError;
use std::sync::Arc;

const SERVER: &[Parameter] = &server::parameters("8123", "default", "default");
/// TLS: the server must have a certificate for the HOST.
const SECURE: &str = "SECURE";
/// Where ClickHouse's own tables are for its dictionaries, and Granary's for its own.
const OWN_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const OWN_PORT: &str = "9000";
/// ClickHouse's for HTTPS.
const SECURE_PORT: &str = "8443";
/// Ports of ClickHouse's own protocol, the second one encrypted.
const NATIVE_PORTS: [&str; 2] = ["9000", "9440"];

pub(super) const KIND: SourceKind = SourceKind {
    takes_collections: true,
    heeds_settings: true,
    complete,
    is_own,
    ..SourceKind::new("CLICKHOUSE", &[SERVER, &[Parameter::flag(SECURE)], SELECT, UPDATES], describe, open)
        .ignoring(&["INVALIDATE_QUERY"])
        .refusing(&[("QUOTA_KEY", "is not sent; give the USER a quota")])
};

fn complete(values: &mut Values) -> Result<(), DictError> {
    if !values.is_written("PORT") {
        if values.flag(SECURE) {
            values.set("PORT", SECURE_PORT);
        } else if OWN_HOSTS.contains(&values.text("HOST")) {
            values.set("PORT", OWN_PORT);
        }
    }
    if !values.is_written("DB") && is_own(values) {
        values.set("DB", CURRENT_DATABASE);
    }
    let port = values.text("PORT");
    match NATIVE_PORTS.contains(&port) && !is_own(values) {
        false => Ok(()),
        true => Err(DictError::bad_arguments(format!(
            "SOURCE(CLICKHOUSE): PORT {port} is ClickHouse's native protocol; Granary speaks HTTP with ClickHouse: \
             use PORT 8123, or 8443 with SECURE 1"
        ))),
    }
}

/// Whether the source is the tables of the dictionary's own server: ClickHouse's port on this machine, at which Granary
/// does not listen.
fn is_own(values: &Values) -> bool {
    values.text("PORT") == OWN_PORT && OWN_HOSTS.contains(&values.text("HOST"))
}

fn describe(values: &Values) -> String {
    format!("ClickHouse: {}.{}", values.text("DB"), select::describe_with_filter(values))
}

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let Opening { definition, environment, structure, timeout } = opening;
    let (server, select) = (Server::of(values), Select::of(values));
    let place = match is_own(values) {
        false => Endpoint::Server { server: server.clone(), is_secure: values.flag(SECURE) },
        true => {
            let tables = environment.own_tables.clone();
            Endpoint::Own(tables.map(|tables| (tables, definition.settings.clone())))
        }
    };
    let itself = (definition.database.clone().unwrap_or_default(), definition.name.clone());
    let reads_itself =
        is_own(values) && server.database == itself.0 && select.table.as_deref() == Some(itself.1.as_str());
    Ok(Arc::new(move || {
        if reads_itself {
            let text = format!("The source of dictionary {}.{} is the dictionary itself", itself.0, itself.1);
            return Err(DictError::bad_arguments(text));
        }
        let answerer = place.answerer(timeout)?;
        let database = Some(server.database.clone()).filter(|name| !name.is_empty());
        Ok(Box::new(Clickhouse::connect(answerer, database, &select, &structure, timeout)?))
    }))
}
