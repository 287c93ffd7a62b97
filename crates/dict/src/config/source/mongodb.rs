//! MONGODB(..).

use super::mongodb_uri::{self, Target};
use super::server::Defaults;
use super::{Authorities, Kind, Server, Updates, no_expressions};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::{KeyColumn, ObjectId, Structure};
use crate::error::{Code, DictError};
use crate::types::DataType;
use std::fmt;

/// MONGODB(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' COLLECTION '..' [OPTIONS '..']), or
/// MONGODB(URI '..' COLLECTION '..').
#[derive(Clone, PartialEq)]
pub struct MongodbConfig {
    /// Where the database is.
    pub place: MongodbPlace,
    /// COLLECTION.
    pub collection: String,
    /// How changed documents are told from others.
    pub updates: Option<Updates>,
}

/// Where a MongoDB database is, and as whom it is asked.
#[derive(Clone, PartialEq)]
pub enum MongodbPlace {
    /// One server.
    Server {
        /// HOST, PORT 27017, USER (nobody) and DB.
        server: Server,
        /// OPTIONS: what stands behind the question mark of a URI.
        options: String,
    },
    /// URI.
    Uri(String),
}

const PARAMETERS: Parameters = Parameters {
    allowed: &[
        "HOST",
        "PORT",
        "USER",
        "PASSWORD",
        "DB",
        "COLLECTION",
        "OPTIONS",
        "URI",
        "UPDATE_FIELD",
        "UPDATE_LAG",
        "UPDATE_PERIOD",
    ],
    // How passwords are sent is between client and server.
    idle: &["METHOD"],
    refused: &[(
        "OID_COLUMNS",
        "is not read here; write IS_OBJECT_ID behind each column that is an ObjectId",
    )],
};
const DEFAULTS: Defaults = Defaults { port: 27017, user: "", database: "" };
/// What a URI says itself.
const IN_URI: [&str; 6] = ["HOST", "PORT", "USER", "PASSWORD", "DB", "OPTIONS"];

impl MongodbConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<MongodbConfig, DictError> {
        let settings = Settings::of("SOURCE", "MONGODB", nodes, &PARAMETERS)?;
        let place = match settings.text("URI")?.filter(|uri| !uri.is_empty()) {
            Some(uri) => {
                if let Some(node) = nodes.iter().find(|node| IN_URI.contains(&node.name.as_str())) {
                    return Err(settings.error(&node.name, "and URI cannot be given together"));
                }
                MongodbPlace::Uri(uri.to_string())
            }
            None => {
                settings.required("DB")?;
                let options = settings.text("OPTIONS")?.unwrap_or_default().to_string();
                MongodbPlace::Server { server: Server::take(&settings, &DEFAULTS)?, options }
            }
        };
        let collection = settings.required("COLLECTION")?.to_string();
        let config = MongodbConfig { place, collection, updates: Updates::take(&settings)? };
        config.target()?;
        Ok(config)
    }

    /// The servers and the database that this means.
    ///
    /// # Errors
    /// `BAD_ARGUMENTS` for what is no URI, or has options that nobody here reads.
    pub(crate) fn target(&self) -> Result<Target, DictError> {
        match &self.place {
            MongodbPlace::Server { server, options } => {
                Target::parse(mongodb_uri::OF_SERVER, &mongodb_uri::of_server(server, options))
            }
            MongodbPlace::Uri(uri) => Target::parse(mongodb_uri::OF_URI, uri),
        }
    }

    /// Who vouches for the servers, if they are spoken to in TLS.
    pub(crate) fn authorities(&self) -> Result<Authorities, DictError> {
        Ok(self.target()?.authorities.map_or(Authorities::System, Authorities::File))
    }

    /// The same database, asked as nobody, in whatever way.
    pub(super) fn anonymous(&self) -> MongodbConfig {
        let place = match &self.place {
            MongodbPlace::Server { server, .. } => {
                MongodbPlace::Server { server: server.anonymous(), options: String::new() }
            }
            MongodbPlace::Uri(uri) => MongodbPlace::Uri(mongodb_uri::anonymous(uri)),
        };
        MongodbConfig { place, ..self.clone() }
    }
}

impl Kind for MongodbConfig {
    fn name(&self) -> &'static str {
        "MONGODB"
    }

    fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        let mut nodes = Vec::new();
        match &self.place {
            MongodbPlace::Server { server, .. } => server.put(&mut nodes, hidden),
            MongodbPlace::Uri(uri) => {
                let shown = hidden.map_or_else(|| uri.clone(), |hidden| mongodb_uri::shown(uri, hidden));
                nodes.push(Node::text("URI", shown));
            }
        }
        nodes.push(Node::text("COLLECTION", &self.collection));
        match &self.place {
            MongodbPlace::Server { options, .. } if !options.is_empty() => {
                nodes.push(Node::text("OPTIONS", options));
            }
            _ => {}
        }
        self.updates.iter().for_each(|updates| updates.put(&mut nodes));
        nodes
    }

    fn describe(&self) -> String {
        let database = self.target().map(|target| target.database).unwrap_or_default();
        format!("MongoDB: {database}.{}", self.collection)
    }

    fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        no_expressions("mongodb", structure)?;
        let keys = structure.key_columns();
        let names = keys.iter().map(|key| &key.name).chain(structure.attributes.iter().map(|a| &a.name));
        names.chain(self.updates.iter().map(|updates| &updates.field)).try_for_each(|name| path(name))?;
        keys.iter().try_for_each(key)
    }
}

/// A name is a field's, or the way to one through documents in each other.
fn path(name: &str) -> Result<(), DictError> {
    match name.split('.').find(|part| part.is_empty() || part.starts_with('$') || part.contains('\0')) {
        None => Ok(()),
        Some(_) => Err(DictError::bad_arguments(format!(
            "SOURCE(MONGODB): MongoDB cannot be asked for a field called {name}: between its points a name is not empty, \
             and does not begin with a dollar. Make a view there that has the field under another name"
        ))),
    }
}

fn key(key: &KeyColumn) -> Result<(), DictError> {
    if key.data_type.is_composite() {
        let text = format!(
            "SOURCE(MONGODB): key column {} of type {}: MongoDB would find each array that has the key as an item",
            key.name, key.data_type
        );
        return Err(DictError::new(Code::NotImplemented, text));
    }
    match (key.object_id, key.data_type.inner()) {
        (ObjectId::No, _) | (_, DataType::String) => Ok(()),
        (ObjectId::Yes, other) => Err(DictError::bad_arguments(format!(
            "SOURCE(MONGODB): key column {} is an ObjectId of type {other}; it must be a String",
            key.name
        ))),
    }
}

impl fmt::Debug for MongodbConfig {
    /// Without the password, which debug output must not leak.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MongodbConfig").field("source", &self.describe()).finish_non_exhaustive()
    }
}
