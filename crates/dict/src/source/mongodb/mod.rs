//! MONGODB(HOST '..' PORT n USER '..' PASSWORD '..' DB '..' COLLECTION '..' [OPTIONS '..']), or
//! MONGODB(URI '..' COLLECTION '..').

mod client;
mod fields;
mod filter;
mod json;
mod server;
mod updates;
mod uri;
mod value;

use self::client::Mongodb;
use self::server::MongodbServer;
use self::uri::Target;
use super::SourceFactory;
use super::kind::{Opening, SourceKind};
use super::select::{UPDATES, Updates};
use super::server as one_server;
use super::tls::authorities;
use crate::config::{Identity, Parameter, Values};
use crate::definition::{KeyColumn, ObjectId, Structure};
use crate::error::{Code, DictError};
use crate::types::DataType;
use std::sync::Arc;

const SERVER: &[Parameter] = &one_server::parameters("27017", "", "");
const URI: &str = "URI";
const OPTIONS: &str = "OPTIONS";
const PARAMETERS: &[Parameter] = &[
    Parameter::text(URI).shown(uri::shown).anonymous(Identity::Partial(uri::anonymous)),
    Parameter::text("COLLECTION").required(),
    // The part of a URI after its question mark.
    Parameter::text(OPTIONS).or("").anonymous(Identity::Nothing),
];
/// Parameters that a URI contains.
const IN_URI: [&str; 6] = ["HOST", "PORT", "USER", "PASSWORD", "DB", OPTIONS];

pub(super) const KIND: SourceKind = SourceKind {
    takes_collections: true,
    complete,
    validate,
    ..SourceKind::new("MONGODB", &[SERVER, PARAMETERS, UPDATES], describe, open)
        // How passwords are sent is between client and server.
        .ignoring(&["METHOD"])
        .refusing(&[(
            "OID_COLUMNS",
            "is not read here; write IS_OBJECT_ID behind each column that is an ObjectId",
        )])
};

fn complete(values: &mut Values) -> Result<(), DictError> {
    let wrong = |text: String| Err(DictError::bad_arguments(format!("SOURCE(MONGODB): {text}")));
    if values.text(URI).is_empty() {
        values.remove(URI);
        if values.text("DB").is_empty() {
            return wrong("DB is required".to_string());
        }
    } else {
        for name in IN_URI {
            if values.is_written(name) {
                return wrong(format!("{name} and {URI} cannot be given together"));
            }
            values.remove(name);
        }
    }
    Target::of(values).map(|_| ())
}

fn describe(values: &Values) -> String {
    let database = Target::of(values).map(|target| target.database).unwrap_or_default();
    format!("MongoDB: {database}.{}", values.text("COLLECTION"))
}

fn validate(values: &Values, structure: &Structure) -> Result<(), DictError> {
    let keys = structure.key_columns();
    let names = keys.iter().map(|key| &key.name).chain(structure.attributes.iter().map(|a| &a.name));
    let updates = Updates::of(values);
    names.chain(updates.iter().map(|updates| &updates.field)).try_for_each(|name| path(name))?;
    if updates.is_some() && Target::of(values)?.reads_anywhere() {
        let text = "SOURCE(MONGODB): UPDATE_FIELD needs the readPreference primary (or one server with directConnection): \
                    a secondary may have changes that another one has not";
        return Err(DictError::bad_arguments(text));
    }
    keys.iter().try_for_each(key)
}

/// A name is a field's, or a path through nested documents.
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

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let target = Target::of(values)?;
    let authorities = authorities(target.authorities.as_deref().unwrap_or_default(), opening.environment)?;
    let most = opening.environment.answer_bytes_max;
    let server = Arc::new(MongodbServer::new(target, values, authorities, opening.timeout, most));
    let structure = opening.structure;
    Ok(Arc::new(move || Ok(Box::new(Mongodb::connect(&server, &structure)?))))
}
