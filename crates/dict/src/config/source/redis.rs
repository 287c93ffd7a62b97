//! REDIS(..).

use super::{Authorities, Encryption, Kind};
use crate::config::node::{Node, Parameters, Settings};
use crate::definition::{Key, Structure};
use crate::error::{Code, DictError};
use crate::types::DataType;
use std::fmt;

/// REDIS(HOST '..' PORT n [STORAGE_TYPE 'simple' | 'hash_map'] [DB_INDEX n] [PASSWORD '..'] [SECURE 1 [SSL_CA '..']]).
#[derive(Clone, PartialEq)]
pub struct RedisConfig {
    /// HOST, `localhost` if not given.
    pub host: String,
    /// PORT, 6379 if not given.
    pub port: u16,
    /// SECURE.
    pub encryption: Encryption,
    /// SSL_CA.
    pub authorities: Authorities,
    /// STORAGE_TYPE.
    pub storage: RedisStorage,
    /// DB_INDEX.
    pub database: u32,
    /// PASSWORD; empty: none.
    pub password: String,
}

/// How keys and their value lie in Redis (STORAGE_TYPE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisStorage {
    /// Each key has a string.
    Simple,
    /// The first key column has a hash, in which the second is a field.
    HashMap,
}

const PARAMETERS: Parameters = Parameters {
    allowed: &["HOST", "PORT", "STORAGE_TYPE", "DB_INDEX", "PASSWORD", "SECURE", "SSL_CA"],
    idle: &["POOL_SIZE"],
    refused: &[],
};

impl RedisConfig {
    pub(super) fn take(nodes: &[Node]) -> Result<RedisConfig, DictError> {
        let settings = Settings::of("SOURCE", "REDIS", nodes, &PARAMETERS)?;
        let text = |name, default: &str| -> Result<String, DictError> {
            Ok(settings.text(name)?.unwrap_or(default).to_string())
        };
        let storage = match settings.text("STORAGE_TYPE")?.unwrap_or_default() {
            "" | "simple" => RedisStorage::Simple,
            "hash_map" => RedisStorage::HashMap,
            other => {
                let text = format!(
                    "SOURCE(REDIS): Unknown storage type {other} for Redis dictionary; allowed are simple, hash_map"
                );
                return Err(DictError::new(Code::InvalidConfigParameter, text));
            }
        };
        let database = settings.number("DB_INDEX", 0, i32::MAX as u64)?.unwrap_or(0);
        Ok(RedisConfig {
            host: text("HOST", "localhost")?,
            port: settings.port(6379)?,
            encryption: if settings.flag("SECURE")? { Encryption::Tls } else { Encryption::None },
            authorities: Authorities::take(&settings, "SSL_CA")?,
            storage,
            database: database as u32,
            password: text("PASSWORD", "")?,
        })
    }

    /// The same server, asked as nobody, in whatever way.
    pub(super) fn anonymous(&self) -> RedisConfig {
        RedisConfig {
            password: String::new(),
            encryption: Encryption::None,
            authorities: Authorities::System,
            ..self.clone()
        }
    }
}

impl Kind for RedisConfig {
    fn name(&self) -> &'static str {
        "REDIS"
    }

    fn nodes(&self, hidden: Option<&str>) -> Vec<Node> {
        let mut nodes = vec![Node::text("HOST", &self.host), Node::text("PORT", self.port.to_string())];
        if self.storage == RedisStorage::HashMap {
            nodes.push(Node::text("STORAGE_TYPE", "hash_map"));
        }
        if self.database != 0 {
            nodes.push(Node::text("DB_INDEX", self.database.to_string()));
        }
        if !self.password.is_empty() {
            nodes.push(Node::text("PASSWORD", hidden.unwrap_or(&self.password)));
        }
        if self.encryption == Encryption::Tls {
            nodes.push(Node::text("SECURE", "1"));
        }
        self.authorities.put(&mut nodes, "SSL_CA");
        nodes
    }

    fn describe(&self) -> String {
        format!("Redis: {}:{}", self.host, self.port)
    }

    fn validate(&self, structure: &Structure) -> Result<(), DictError> {
        super::no_expressions("redis", structure)?;
        let keys = structure.key_columns();
        let problem = match (self.storage, structure.attributes.len(), &structure.key) {
            (_, attributes, _) if attributes != 1 => {
                format!("Invalid number of non key columns for Redis source: {attributes}, expected 1")
            }
            (RedisStorage::HashMap, _, Key::Simple { .. }) => {
                "Redis source with storage type 'hash_map' must have key".to_string()
            }
            (RedisStorage::HashMap, _, _) if keys.len() != 2 => {
                "Redis source with storage type 'hash_map' requires 2 keys".to_string()
            }
            (RedisStorage::Simple, _, _) if keys.len() != 1 => {
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
}

impl fmt::Debug for RedisConfig {
    /// Without the password, which debug output must not leak.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("storage", &self.storage)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}
