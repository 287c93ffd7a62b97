//! REDIS(HOST '..' PORT n [STORAGE_TYPE 'simple' | 'hash_map'] [DB_INDEX n] [PASSWORD '..'] [SECURE 1 [SSL_CA '..']]).

mod client;

use self::client::{Redis, RedisServer, StorageType};
use super::SourceFactory;
use super::kind::{Opening, SourceKind};
use super::tls::{authorities, read_authorities};
use crate::config::{Identity, Parameter, Printed, ValueType, Values};
use crate::definition::{Key, Structure};
use crate::error::{Code, DictError};
use crate::types::DataType;
use std::sync::Arc;

const STORAGE_TYPE: &str = "STORAGE_TYPE";
const SIMPLE: &str = "simple";
const HASH_MAP: &str = "hash_map";

const PARAMETERS: &[Parameter] = &[
    Parameter::text("HOST").also("HOSTNAME").or("localhost").printed(Printed::Always),
    Parameter::port("6379").printed(Printed::Always),
    Parameter::new(STORAGE_TYPE, ValueType::Read(read_storage)).or(SIMPLE),
    Parameter::number("DB_INDEX", 0, i32::MAX as u64).or("0"),
    Parameter::text("PASSWORD").or("").secret(),
    Parameter::flag("SECURE").anonymous(Identity::Nothing),
    Parameter::new("SSL_CA", ValueType::Read(read_authorities)).or("").anonymous(Identity::Nothing),
];

pub(super) const KIND: SourceKind = SourceKind {
    takes_collections: true,
    validate,
    ..SourceKind::new("REDIS", &[PARAMETERS], describe, open).ignoring(&["POOL_SIZE"])
};

fn read_storage(_source: &str, _parameter: &str, text: &str) -> Result<String, DictError> {
    match text {
        "" | SIMPLE => Ok(SIMPLE.to_string()),
        HASH_MAP => Ok(HASH_MAP.to_string()),
        other => {
            let text = format!(
                "SOURCE(REDIS): Unknown storage type {other} for Redis dictionary; allowed are {SIMPLE}, {HASH_MAP}"
            );
            Err(DictError::new(Code::InvalidConfigParameter, text))
        }
    }
}

fn storage(values: &Values) -> StorageType {
    match values.text(STORAGE_TYPE) {
        HASH_MAP => StorageType::HashMap,
        _ => StorageType::Simple,
    }
}

fn describe(values: &Values) -> String {
    format!("Redis: {}:{}", values.text("HOST"), values.text("PORT"))
}

fn validate(values: &Values, structure: &Structure) -> Result<(), DictError> {
    let keys = structure.key_columns();
    let problem = match (storage(values), structure.attributes.len(), &structure.key) {
        (_, attributes, _) if attributes != 1 => {
            format!("Invalid number of non key columns for Redis source: {attributes}, expected 1")
        }
        (StorageType::HashMap, _, Key::Simple { .. }) => {
            "Redis source with storage type 'hash_map' must have key".to_string()
        }
        (StorageType::HashMap, _, _) if keys.len() != 2 => {
            "Redis source with storage type 'hash_map' requires 2 keys".to_string()
        }
        (StorageType::Simple, _, _) if keys.len() != 1 => {
            "Redis source with storage type 'simple' requires 1 key".to_string()
        }
        _ => {
            let other = |data_type: &DataType| !data_type.is_integer() && *data_type != DataType::String;
            match keys.iter().find(|key| other(&key.data_type)) {
                None => return Ok(()),
                Some(key) => format!(
                    "Redis source supports only integer or string key, but key '{}' of type {} given",
                    key.name, key.data_type
                ),
            }
        }
    };
    Err(DictError::new(Code::InvalidConfigParameter, problem))
}

fn open(values: &Values, opening: Opening<'_>) -> Result<SourceFactory, DictError> {
    let server = RedisServer {
        host: values.text("HOST").to_string(),
        port: values.port(),
        database: values.number("DB_INDEX") as i64,
        password: values.text("PASSWORD").to_string(),
        is_secure: values.flag("SECURE"),
        authorities: authorities(values.text("SSL_CA"), opening.environment)?,
        storage: storage(values),
    };
    let Opening { structure, timeout, environment, .. } = opening;
    let most = environment.answer_bytes_max;
    Ok(Arc::new(move || Ok(Box::new(Redis::connect(&server, &structure, timeout, most)?))))
}
