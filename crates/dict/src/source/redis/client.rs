//! REDIS(HOST, PORT, STORAGE_TYPE ..): a string for each key, or a field of a hash for each pair of keys.

use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::limits;
use crate::row::{Cells, Raw};
use crate::source::batch::BatchSize;
use crate::source::rows::Rows;
use crate::source::tls::Trusted;
use crate::source::{BatchSink, Source};
use crate::types::{DataType, print_fixed, text_to_fixed};
use arrow::array::{Array, ArrayRef, RecordBatch};
use redis::{
    Client, Connection, ConnectionAddr, FromRedisValue, IntoConnectionInfo, RedisConnectionInfo, RedisError,
    RedisResult, TlsCertificates,
};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server, and how keys and values lie in it.
pub(super) struct RedisServer {
    pub host: String,
    pub port: u16,
    pub database: i64,
    /// Empty: none.
    pub password: String,
    pub is_secure: bool,
    /// File of the certificate authorities that TLS trusts, if one is named.
    pub authorities: Option<PathBuf>,
    pub storage: StorageType,
}

/// How keys and their value lie in Redis (STORAGE_TYPE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StorageType {
    /// Each key has a string.
    Simple,
    /// The first key column has a hash, in which the second is a field.
    HashMap,
}

/// One connection.
pub(super) struct Redis {
    connection: Connection,
    storage: StorageType,
    structure: Structure,
    timeout: Duration,
    /// The deadline of the request that runs.
    deadline: Instant,
    /// Keys of the next request: the answer to each is read whole.
    size: BatchSize,
    answer_bytes_max: u64,
}

impl Redis {
    pub fn connect(
        server: &RedisServer,
        structure: &Structure,
        timeout: Duration,
        answer_bytes_max: u64,
    ) -> Result<Redis, DictError> {
        let mut session = RedisConnectionInfo::default().set_db(server.database).set_skip_set_lib_name();
        if !server.password.is_empty() {
            session = session.set_password(&server.password);
        }
        let trusted = match server.is_secure {
            false => None,
            true => Some(Trusted::read(server.authorities.as_deref())?),
        };
        let connect = || {
            let place = (server.host.as_str(), server.port).into_connection_info()?;
            let place = place.set_redis_settings(session);
            let client = match trusted {
                None => Client::open(place)?,
                Some(trusted) => {
                    let (host, port) = (server.host.clone(), server.port);
                    let address = ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None };
                    let certificates = TlsCertificates { client_tls: None, root_cert: Some(trusted.pem) };
                    Client::build_with_tls(place.set_addr(address), certificates)?
                }
            };
            let connection = client.get_connection_with_timeout(CONNECT_TIMEOUT.min(timeout))?;
            connection.set_read_timeout(Some(timeout))?;
            connection.set_write_timeout(Some(timeout))?;
            Ok(connection)
        };
        let connection = connect().map_err(|e: RedisError| {
            let text = format!("Cannot connect to Redis at {}:{}: {e}", server.host, server.port);
            DictError::new(Code::InternalRedisError, text)
        })?;
        let structure = structure.clone();
        let (storage, deadline) = (server.storage, Instant::now());
        let size = BatchSize::new(limits::REDIS_ANSWER_BYTES, limits::REDIS_KEYS_MAX);
        Ok(Redis { connection, storage, structure, timeout, deadline, size, answer_bytes_max })
    }

    fn ask<T: FromRedisValue>(&mut self, pipeline: &redis::Pipeline) -> Result<Vec<T>, DictError> {
        if Instant::now() > self.deadline {
            return Err(self.overdue());
        }
        pipeline.query(&mut self.connection).map_err(|e| match e.is_timeout() {
            true => self.overdue(),
            false => error(&e),
        })
    }

    fn overdue(&self) -> DictError {
        let text = format!("Redis: no whole answer within {} ms", self.timeout.as_millis());
        DictError::new(Code::TimeoutExceeded, text)
    }

    fn start(&mut self) -> Rows {
        self.deadline = Instant::now() + self.timeout;
        Rows::new(&self.structure).at_most(self.answer_bytes_max)
    }

    /// One MGET for each batch; `then` is called after each.
    fn simple(
        &mut self,
        mut left: &[String],
        rows: &mut Rows,
        mut then: impl FnMut(&mut Rows) -> Result<(), DictError>,
    ) -> Result<(), DictError> {
        while !left.is_empty() {
            let keys;
            (keys, left) = left.split_at(self.size.count().min(left.len()));
            let mut pipeline = redis::pipe();
            pipeline.cmd("MGET").arg(keys);
            let values: Vec<Vec<Option<Vec<u8>>>> = self.ask(&pipeline)?;
            self.size.learn(values.iter().flatten().flatten().map(Vec::len));
            for (key, value) in keys.iter().zip(values.iter().flatten()) {
                push(rows, &[key], value.as_deref())?;
            }
            rows.check_bytes()?;
            then(rows)?;
        }
        Ok(())
    }

    /// One HMGET for each first key, those of a batch in a pipeline.
    fn hashes(
        &mut self,
        mut keys: &[String],
        mut names: &[String],
        rows: &mut Rows,
    ) -> Result<(), DictError> {
        while !keys.is_empty() {
            let count = self.size.count().min(keys.len());
            let (first, second);
            (first, keys) = keys.split_at(count);
            (second, names) = names.split_at(count);
            let mut fields: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for (key, field) in first.iter().zip(second) {
                fields.entry(key).or_default().push(field);
            }
            let mut pipeline = redis::pipe();
            for (key, fields) in &fields {
                pipeline.cmd("HMGET").arg(key).arg(fields);
            }
            // An error of one command does not fail the others.
            pipeline.ignore_errors();
            let answers: Vec<RedisResult<Vec<Option<Vec<u8>>>>> = self.ask(&pipeline)?;
            let mut lengths = Vec::with_capacity(count);
            for ((key, fields), answer) in fields.iter().zip(answers) {
                for (field, value) in fields.iter().zip(&unless_no_hash(answer)?) {
                    lengths.extend(value.as_ref().map(Vec::len));
                    push(rows, &[key, field], value.as_deref())?;
                }
            }
            self.size.learn(lengths.into_iter());
            rows.check_bytes()?;
        }
        Ok(())
    }

    /// The names of all keys that have a string or a hash. SCAN may give a name twice.
    fn scan(&mut self) -> Result<HashSet<String>, DictError> {
        let kind = match self.storage {
            StorageType::Simple => "string",
            StorageType::HashMap => "hash",
        };
        let column = self.structure.key_columns().swap_remove(0).data_type;
        let (mut names, mut cursor) = (HashSet::new(), 0u64);
        loop {
            let mut pipeline = redis::pipe();
            pipeline.cmd("SCAN").arg(cursor).arg("COUNT").arg(limits::REDIS_KEYS_MAX).arg("TYPE").arg(kind);
            let (next, found) = self.ask::<(u64, Vec<Vec<u8>>)>(&pipeline)?.pop().unwrap_or_default();
            names.extend(found.into_iter().filter_map(|name| key_of(&column, name)));
            cursor = next;
            if cursor == 0 {
                return Ok(names);
            }
        }
    }
}

impl Source for Redis {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let mut rows = self.start();
        let columns = self.structure.key_columns();
        let texts = columns
            .iter()
            .zip(keys)
            .map(|(column, array)| texts(&column.data_type, array))
            .collect::<Result<Vec<_>, DictError>>()?;
        match &texts[..] {
            [first, second] => self.hashes(first, second, &mut rows)?,
            _ => self.simple(&texts[0], &mut rows, |_| Ok(()))?,
        }
        Ok(vec![rows.finish(&[])?])
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        let mut rows = self.start();
        // Names alone are kept, for SCAN may give one twice.
        let names: Vec<String> = self.scan()?.into_iter().collect();
        if self.storage == StorageType::Simple {
            self.simple(&names, &mut rows, |rows| rows.flush_if_full(sink))?;
            return rows.flush(sink);
        }
        let column = self.structure.key_columns().swap_remove(1).data_type;
        for name in names {
            let mut pipeline = redis::pipe();
            // What was a hash when it was listed may be none any more.
            pipeline.cmd("HGETALL").arg(&name).ignore_errors();
            let answers: Vec<RedisResult<HashFields>> = self.ask(&pipeline)?;
            for answer in answers {
                let fields = unless_no_hash(answer)?;
                rows.check_answer(fields.iter().map(|(field, value)| field.len() + value.len()).sum())?;
                for (field, value) in fields {
                    if let Some(field) = key_of(&column, field) {
                        push(&mut rows, &[&name, &field], Some(&value))?;
                        rows.flush_if_full(sink)?;
                    }
                }
            }
        }
        rows.flush(sink)
    }
}

/// The fields of a hash with their values.
type HashFields = Vec<(Vec<u8>, Vec<u8>)>;

/// A value that is no hash counts as a hash without fields.
fn unless_no_hash<T: Default>(answer: RedisResult<T>) -> Result<T, DictError> {
    answer.or_else(|e| match e.code() {
        Some("WRONGTYPE") => Ok(T::default()),
        _ => Err(error(&e)),
    })
}

fn error(e: &RedisError) -> DictError {
    DictError::new(Code::InternalRedisError, format!("Redis: {e}"))
        .of_lost_connection(e.is_connection_dropped())
}

/// A row, unless there is no value.
fn push(rows: &mut Rows, keys: &[&str], value: Option<&[u8]>) -> Result<(), DictError> {
    let Some(value) = value else { return Ok(()) };
    for (column, key) in keys.iter().enumerate() {
        rows.push_parsed(column, Some(key))?;
    }
    rows.push_bytes(keys.len(), value)
}

/// Keys as Redis has them: digits or the text itself.
fn texts(data_type: &DataType, array: &ArrayRef) -> Result<Vec<String>, DictError> {
    let cells = Cells::new(data_type, array)?;
    let text = |row| match cells.get(row) {
        Raw::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Raw::Fixed(raw) => {
            let mut text = String::new();
            print_fixed(data_type, raw, &mut text);
            text
        }
        // A key is an integer or a string here, and never NULL.
        Raw::Null | Raw::Bit(_) | Raw::Items(_) => String::new(),
    };
    Ok((0..array.len()).map(text).collect())
}

/// A name that is a key of this type, written as we would ask for it; other names in the database do not belong to this
/// dictionary.
fn key_of(data_type: &DataType, name: Vec<u8>) -> Option<String> {
    let name = String::from_utf8(name).ok()?;
    if *data_type == DataType::String {
        return Some(name);
    }
    text_to_fixed(data_type, &name).ok()?;
    name.parse::<i128>().is_ok_and(|number| number.to_string() == name).then_some(name)
}
