//! POSTGRESQL(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' [REPLICA(..) ..] [SCHEMA '..']
//! [SSLMODE '..' [SSLROOTCERT '..']] TABLE '..' | QUERY '..' [WHERE '..']).

mod client;
mod driver;
mod keys;
mod repertoire;
mod tls;

use self::client::{Postgres, PostgresDatabase};
use self::tls::SslMode;
use super::SourceFactory;
use super::kind::{Opening, SourceKind};
use super::replicas;
use super::select::{self, SELECT, Select, UPDATES};
use super::server::{self, REPLICA_PARAMETERS, Server};
use super::tls::authorities;
use crate::config::{Parameter, Values};
use crate::error::DictError;

const SERVER: &[Parameter] = &server::parameters("5432", "postgres", "postgres");
const REPLICAS: &[Parameter] = &[server::replicas(&REPLICA_PARAMETERS)];
/// By default the server's search path.
const SCHEMA: &str = "SCHEMA";
const NO_CLIENT_CERTIFICATE: &str =
    "is not read here: no certificate is shown to the server; give a PASSWORD";

pub(super) const KIND: SourceKind = SourceKind {
    takes_collections: true,
    complete,
    ignored_of_collections: &["ON_CONFLICT", "USE_TABLE_CACHE"],
    ..SourceKind::new(
        "POSTGRESQL",
        &[SERVER, REPLICAS, &[Parameter::text(SCHEMA)], tls::PARAMETERS, SELECT, UPDATES],
        describe,
        open,
    )
    .ignoring(&["INVALIDATE_QUERY", "PRIORITY", "BACKGROUND_RECONNECT"])
    .refusing(&[
        server::NO_ADDRESSES,
        ("SSLROOTCERT_PEM", "is not read here: name a file in SSLROOTCERT"),
        ("SSLCERT", NO_CLIENT_CERTIFICATE),
        ("SSLCERT_PEM", NO_CLIENT_CERTIFICATE),
        ("SSLKEY", NO_CLIENT_CERTIFICATE),
        ("SSLKEY_PEM", NO_CLIENT_CERTIFICATE),
    ])
};

fn complete(values: &mut Values) -> Result<(), DictError> {
    if values.text(SCHEMA).is_empty() {
        values.remove(SCHEMA);
    }
    server::sort_replicas(values)
}

fn describe(values: &Values) -> String {
    format!("PostgreSQL: {}.{}", values.text("DB"), select::describe(values))
}

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let database = PostgresDatabase {
        schema: values.get(SCHEMA).map(str::to_string),
        ssl_mode: SslMode::of(values),
        authorities: authorities(values.text(tls::AUTHORITIES), opening.environment)?,
        select: Select::of(values),
        structure: opening.structure,
        timeout: opening.timeout,
        answer_bytes_max: opening.environment.answer_bytes_max,
    };
    Ok(replicas::first(Server::all(values), move |one| Postgres::connect(one, &database)))
}
