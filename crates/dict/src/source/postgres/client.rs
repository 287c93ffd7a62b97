//! POSTGRESQL(HOST, PORT, USER, PASSWORD, DB, TABLE | QUERY [, SCHEMA, WHERE]).
//!
//! Values travel as PostgreSQL's own text in both directions (`::text`), which is what ClickHouse's COPY does
//! too: one path for all types, and the server does the converting.

use super::driver::{Session, error};
use super::keys::{holds, is_compared_as_text};
use super::repertoire::Repertoire;
use super::tls::SslMode;
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::limits;
use crate::row::{Cells, Raw, Style, print};
use crate::source::batch::BatchSize;
use crate::source::float_keys::{combinations, doubles};
use crate::source::rows::Rows;
use crate::source::select::Select;
use crate::source::server::Server;
use crate::source::sql::{self, Dialect, UpdateStatements};
use crate::source::tls::{self, Check};
use crate::source::{BatchSink, Changes, NewestChange, Source};
use crate::types::DataType;
use arrow::array::{Array, ArrayRef, RecordBatch};
use futures::future::try_join;
use futures::{FutureExt, TryStreamExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use tokio_postgres::types::{Kind, ToSql, Type};
use tokio_postgres::{Client, Config, Error, NoTls, Row, Statement, config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What a session needs, whatever the server, the database and the role say: texts in the form that is read here, and
/// string literals in which a backslash is one.
const SESSION: &str = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET IntervalStyle = 'postgres'; \
     SET extra_float_digits = 3; SET bytea_output = 'hex'; SET standard_conforming_strings = on; \
     SET default_transaction_read_only = on";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that is idle for this long is probed, and given up without an answer.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_TRIES: u32 = 3;

/// How each server is asked.
pub(super) struct PostgresDatabase {
    /// `None`: the server's search path.
    pub schema: Option<String>,
    pub ssl_mode: SslMode,
    /// File of the certificate authorities that TLS trusts, if one is named.
    pub authorities: Option<PathBuf>,
    pub select: Select,
    pub structure: Structure,
    pub timeout: Duration,
    /// Bytes of an answer that is read whole.
    pub answer_bytes_max: u64,
}

/// One connection.
pub(super) struct Postgres {
    session: Session,
    structure: Structure,
    described: Described,
    /// `None`: the database has all characters.
    repertoire: Option<Repertoire>,
    select_keys: String,
    select_all: String,
    updates: Option<UpdateStatements>,
    answer_bytes_max: u64,
}

/// The types that decide how keys are bound and columns shown.
struct Described {
    /// Selects the columns as they are.
    statement: String,
    /// Key columns, then attributes.
    types: Vec<Type>,
}

impl Described {
    /// Whether the columns still have these types.
    fn is_true_of(&self, statement: &Statement) -> bool {
        let types = statement.columns().iter().map(|column| column.type_().oid());
        types.eq(self.types.iter().map(Type::oid))
    }

    /// The error of an answer whose columns have other types than the connection knows: a new connection describes them
    /// anew.
    fn outdated() -> DictError {
        let text = "PostgreSQL: the types of the columns have changed meanwhile";
        DictError::new(Code::PostgresqlConnectionFailure, text).of_lost_connection(true)
    }
}

impl Postgres {
    pub fn connect(server: &Server, database: &PostgresDatabase) -> Result<Postgres, DictError> {
        let PostgresDatabase { schema, ssl_mode, authorities, select, structure, timeout, answer_bytes_max } =
            database;
        let schema = schema.as_deref();
        let mut session = open_session(server, *ssl_mode, authorities.as_deref(), *timeout)?;
        let columns = sql::columns(Dialect::Standard, structure);
        let statement =
            |list: &str, condition| sql::statement(Dialect::Standard, select, schema, list, condition);
        let plain: Vec<String> = columns.iter().map(|c| c.expression.clone()).collect();
        let plain = statement(&plain.join(", "), None);
        let types = types_of_columns(&mut session, &plain)?;
        let wanted = structure.key_columns().into_iter().map(|key| key.data_type);
        let wanted: Vec<DataType> =
            wanted.chain(structure.attributes.iter().map(|a| a.data_type.clone())).collect();
        let shown: Vec<String> = columns
            .iter()
            .zip(types.iter().zip(&wanted))
            .map(|(column, (server_type, ours))| show(&column.expression, server_type, ours))
            .collect();
        let list = shown.join(", ");
        let keys = structure.key_columns().len();
        let updates = UpdateStatements::new(Dialect::Standard, select, schema, &shown[..keys]);
        let repertoire = Repertoire::of(&mut session)?;
        Ok(Postgres {
            repertoire,
            updates,
            select_keys: statement(&list, Some(&condition(structure, &types[..keys]))),
            select_all: statement(&list, None),
            described: Described { statement: plain, types },
            structure: structure.clone(),
            session,
            answer_bytes_max: *answer_bytes_max,
        })
    }
}

/// Connects, and prepares the session whatever the server's defaults are.
fn open_session(
    server: &Server,
    ssl_mode: SslMode,
    authorities: Option<&Path>,
    timeout: Duration,
) -> Result<Session, DictError> {
    let mut options = options(server, timeout);
    options.ssl_mode(match ssl_mode {
        SslMode::Disable => config::SslMode::Disable,
        SslMode::Prefer => config::SslMode::Prefer,
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => config::SslMode::Require,
    });
    let connected = match certificate_check(ssl_mode, authorities) {
        None => Session::connect(&options, NoTls, timeout),
        Some(check) => {
            let tls = MakeRustlsConnect::new(tls::client(check, authorities)?);
            Session::connect(&options, tls, timeout)
        }
    };
    let mut session = connected.map_err(|e| {
        e.within(format_args!("Cannot connect to PostgreSQL at {}:{}", server.host, server.port))
    })?;
    let Session { client, driver } = &mut session;
    let limit = format!("SET statement_timeout = {}", timeout.as_millis().clamp(1, i32::MAX as u128));
    driver.wait(client.batch_execute(&format!("{SESSION}; {limit}")))?;
    Ok(session)
}

/// Where the server is, who asks, and how long a connection may take.
fn options(server: &Server, timeout: Duration) -> Config {
    let mut options = Config::new();
    options.host(&server.host).port(server.port).user(&server.user).dbname(&server.database);
    options.application_name("granary").tcp_user_timeout(timeout);
    // For each address of the host: if the first does not answer, there is time for the next.
    options.connect_timeout(CONNECT_TIMEOUT.min(timeout / 3));
    options.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL);
    options.keepalives_retries(KEEPALIVE_TRIES);
    if !server.password.is_empty() {
        options.password(&server.password);
    }
    options
}

/// How the server's certificate is checked; `None`: the connection has no TLS.
fn certificate_check(ssl_mode: SslMode, authorities: Option<&Path>) -> Option<Check> {
    match (ssl_mode, authorities) {
        (SslMode::Disable, _) => None,
        (SslMode::Prefer, _) | (SslMode::Require, None) => Some(Check::Nothing),
        // As libpq does.
        (SslMode::Require, Some(_)) | (SslMode::VerifyCa, _) => Some(Check::Authority),
        (SslMode::VerifyFull, _) => Some(Check::Name),
    }
}

/// The types of the columns that a statement selects.
fn types_of_columns(session: &mut Session, statement: &str) -> Result<Vec<Type>, DictError> {
    let Session { client, driver } = session;
    let described = driver.wait(client.prepare(statement))?;
    Ok(described.columns().iter().map(|column| column.type_().clone()).collect())
}

/// The rows of a statement whose columns are all text.
fn fill(
    session: &mut Session,
    described: &Described,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
    rows: &mut Rows,
) -> Result<(), DictError> {
    let Session { client, driver } = session;
    let plain = client.prepare(&described.statement);
    driver.wait(async {
        // The server answers in order: these are the types of the columns after the rows.
        let (answer, now) = match client.prepare(statement).await {
            // An answer that is too long is not read to its end.
            Ok(statement) => {
                let answer = take_in(client, &statement, parameters, rows);
                match try_join(answer, plain.map(Ok)).await {
                    Ok(both) => both,
                    Err(too_much) => return Ok(Err(too_much)),
                }
            }
            Err(e) => (Err(e), plain.await),
        };
        match now {
            Ok(now) if !described.is_true_of(&now) => Ok(Err(Described::outdated())),
            _ => answer,
        }
    })?
}

/// Reads the rows of an answer as they come. The inner results are that of the server, and that of its rows.
///
/// # Errors
/// There are more than are read at once.
async fn take_in(
    client: &Client,
    statement: &Statement,
    parameters: &[&(dyn ToSql + Sync)],
    rows: &mut Rows,
) -> Result<Result<Result<(), DictError>, Error>, DictError> {
    let mut answer = match client.query_raw(statement, parameters.iter().copied()).await {
        Ok(answer) => pin!(answer),
        Err(e) => return Ok(Err(e)),
    };
    let mut pushed = Ok(());
    loop {
        match answer.try_next().await {
            Err(e) => return Ok(Err(e)),
            Ok(None) => return Ok(Ok(pushed)),
            Ok(Some(row)) if pushed.is_ok() => {
                pushed = push(&row, rows);
                rows.check_bytes()?;
            }
            // After a bad row the rest is only read off: whether the types have changed shows after the rows.
            Ok(Some(_)) => {}
        }
    }
}

fn push(row: &Row, rows: &mut Rows) -> Result<(), DictError> {
    for column in 0..rows.width() {
        let text: Option<&str> = row.try_get(column).map_err(|e| error(&e))?;
        rows.push_null_as_default(column, text)?;
    }
    Ok(())
}

impl Source for Postgres {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let columns = self.structure.key_columns();
        let key_types = &self.described.types[..columns.len()];
        let written = |(data_type, server_type): (&DataType, &Type)| match *server_type {
            Type::TIMESTAMPTZ => sql::in_utc(data_type),
            _ => data_type.clone(),
        };
        let cells = columns
            .iter()
            .zip(keys)
            .zip(key_types)
            .map(|((column, array), server_type)| {
                Ok((written((&column.data_type, server_type)), Cells::new(&column.data_type, array)?))
            })
            .collect::<Result<Vec<_>, DictError>>()?;
        let mut texts: Vec<Vec<Option<String>>> = Vec::with_capacity(keys[0].len());
        for row in 0..keys[0].len() {
            let values = cells.iter().zip(key_types).map(|((written, cells), server_type)| {
                match (server_type, written.inner(), cells.get(row)) {
                    (&Type::FLOAT8 | &Type::NUMERIC, DataType::Float32, Raw::Fixed(raw)) => {
                        doubles(raw).into_iter().map(|double| Some(double.to_string())).collect()
                    }
                    (_, _, value) => vec![text(written, value)],
                }
            });
            let is_held = |key: &Vec<Option<String>>| {
                let mut held = key.iter().zip(key_types).zip(&columns);
                held.all(|((value, server_type), column)| {
                    holds(server_type, &column.data_type, value.as_deref())
                })
            };
            texts.extend(combinations(values.collect()).into_iter().filter(is_held));
        }
        self.session.driver.begin();
        if let Some(repertoire) = &mut self.repertoire {
            repertoire.learn(&mut self.session, texts.iter().flatten().flatten().map(String::as_str))?;
            texts.retain(|key| key.iter().flatten().all(|text| repertoire.has(text)));
        }
        let mut bound: Vec<Vec<Option<String>>> = vec![Vec::with_capacity(texts.len()); columns.len()];
        for key in texts {
            bound.iter_mut().zip(key).for_each(|(column, value)| column.push(value));
        }
        let parameters: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|c| c as &(dyn ToSql + Sync)).collect();
        let mut rows = Rows::new(&self.structure).at_most(self.answer_bytes_max);
        fill(&mut self.session, &self.described, &self.select_keys, &parameters, &mut rows)?;
        Ok(vec![rows.finish(&[])?])
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        // A portal gives rows when they are asked for; an answer that comes by itself would have to be read to its end.
        let Postgres { session: Session { client, driver }, select_all, described, .. } = self;
        driver.begin();
        let transaction = driver.wait(client.transaction())?;
        let statement = driver.wait(transaction.prepare(select_all))?;
        let portal = driver.wait(transaction.bind(&statement, &[]))?;
        // Until the transaction ends the types cannot change.
        if !described.is_true_of(&driver.wait(transaction.prepare(&described.statement))?) {
            return Err(Described::outdated());
        }
        let mut rows = Rows::new(&self.structure).at_most(self.answer_bytes_max);
        let mut size = BatchSize::new(limits::RESIDENT_BATCH_BYTES, limits::RESIDENT_BATCH_ROWS);
        loop {
            // The answer is bounded while it comes: rows may be longer than those before them.
            let mut lengths = Vec::with_capacity(size.count());
            driver.wait(async {
                let mut answer = pin!(transaction.query_portal_raw(&portal, size.count() as i32).await?);
                while let Some(row) = answer.try_next().await? {
                    lengths.push(row.raw_size_bytes());
                    if let Err(e) = push(&row, &mut rows).and_then(|()| rows.check_bytes()) {
                        return Ok(Err(e));
                    }
                }
                Ok(Ok(()))
            })??;
            if lengths.is_empty() {
                return driver.wait(transaction.commit());
            }
            size.learn(lengths.into_iter());
            rows.flush(sink)?;
            // The time that `sink` needs does not count.
            driver.begin();
        }
    }

    fn newest_change(&mut self, watermark: Option<&str>) -> Result<NewestChange, DictError> {
        let updates = self.updates.as_ref().ok_or_else(sql::no_updates)?;
        self.session.driver.begin();
        let (session, described) = (&mut self.session, &self.described);
        updates.ask_newest_change(watermark, |statement, rows| fill(session, described, statement, &[], rows))
    }

    fn changes(&mut self, watermark: &str) -> Result<Changes, DictError> {
        let updates = self.updates.as_ref().ok_or_else(sql::no_updates)?;
        self.session.driver.begin();
        let (session, described) = (&mut self.session, &self.described);
        updates.ask_changes(&self.structure, watermark, |statement, rows| {
            fill(session, described, statement, &[], rows)
        })
    }
}

/// `"id" = ANY($1)`, or `("a", "b") IN (SELECT .. FROM unnest($1, $2))`; keys come as arrays of text.
fn condition(structure: &Structure, types: &[Type]) -> String {
    let keys = structure.key_columns();
    let as_text = |i: usize| is_compared_as_text(&types[i], &keys[i].data_type);
    let name = |i: usize| {
        let name = Dialect::Standard.name(&keys[i].name);
        if as_text(i) { format!("{name}::text") } else { name }
    };
    let names: Vec<String> = (0..keys.len()).map(name).collect();
    let array = |i: usize| {
        let texts = format!("${}::text[]", i + 1);
        if as_text(i) { texts } else { format!("{texts}::{}[]", type_name(&types[i])) }
    };
    if let ([key], Kind::Enum(_), DataType::String) = (&keys[..], types[0].kind(), &keys[0].data_type) {
        // Its labels that are among the keys: some are added while a connection lasts.
        let (name, label) = (Dialect::Standard.name(&key.name), type_name(&types[0]));
        return format!(
            "{name} = ANY(ARRAY(SELECT label FROM unnest(enum_range(NULL::{label})) AS label \
             WHERE label::text = ANY($1::text[])))"
        );
    }
    if let ([name], false) = (&names[..], keys[0].data_type.is_nullable()) {
        return format!("{name} = ANY({})", array(0));
    }
    let arrays: Vec<String> = (0..keys.len()).map(array).collect();
    let own = sql::key_names(keys.len());
    let (own_list, arrays) = (own.join(", "), arrays.join(", "));
    let unnested = format!("unnest({arrays}) AS granary_keys({own_list})");
    if keys.iter().any(|key| key.data_type.is_nullable()) {
        let pairs: Vec<String> = own
            .iter()
            .zip(&names)
            .map(|(k, name)| format!("granary_keys.{k} IS NOT DISTINCT FROM {name}"))
            .collect();
        return format!("EXISTS (SELECT 1 FROM {unnested} WHERE {})", pairs.join(" AND "));
    }
    format!("({}) IN (SELECT {own_list} FROM {unnested})", names.join(", "))
}

fn type_name(data_type: &Type) -> String {
    format!("{}.{}", Dialect::Standard.name(data_type.schema()), Dialect::Standard.name(data_type.name()))
}

/// A column's text in ClickHouse's form; a `timestamptz` as Unix seconds, which no time zone changes, a `timestamp` as
/// the local time that it is.
fn show(expression: &str, server_type: &Type, ours: &DataType) -> String {
    match (server_type, ours.inner()) {
        (&Type::BOOL, DataType::String | DataType::Bool) => format!("{expression}::text"),
        (&Type::BOOL, _) => format!("{expression}::int::text"),
        // Seconds with a fraction would be cut towards 1970.
        (&Type::TIMESTAMPTZ, DataType::DateTime64 { .. }) => {
            written(expression, "YYYY-MM-DD HH24:MI:SS.US\"Z\"")
        }
        (&Type::TIMESTAMP, DataType::DateTime64 { .. }) => written(expression, "YYYY-MM-DD HH24:MI:SS.US"),
        (&Type::TIMESTAMP, DataType::DateTime { .. }) => written(expression, "YYYY-MM-DD HH24:MI:SS"),
        // A cast to text drops trailing blanks, which COPY, and so ClickHouse, keeps.
        (&Type::BPCHAR, DataType::String) => format!("textin(bpcharout({expression}))"),
        // Their text is `{..}`, with escapes of its own.
        (server_type, DataType::Array(_) | DataType::Nested(_))
            if matches!(server_type.kind(), Kind::Array(_)) =>
        {
            format!("to_json({expression})::text")
        }
        // Its text is `"a"=>"1"`. An extension's type has no number of its own.
        (server_type, DataType::Map(_)) if server_type.name() == "hstore" => {
            format!("to_json({expression})::text")
        }
        // Its text ends with its mask.
        (&Type::INET | &Type::CIDR, DataType::Ipv4 | DataType::Ipv6) => format!("host({expression})"),
        // A cast to text adds `/32` to an address without a mask, which COPY, and so ClickHouse, does not.
        (&Type::INET, _) => format!("textin(inet_out({expression}))"),
        (&Type::CIDR, _) => format!("textin(cidr_out({expression}))"),
        (&Type::TIMESTAMPTZ, DataType::DateTime { .. }) => format!(
            "CASE WHEN isfinite({expression}) THEN floor(extract(epoch FROM {expression}))::bigint::text \
             ELSE {expression}::text END"
        ),
        (&Type::TIMESTAMP | &Type::TIMESTAMPTZ, DataType::Date | DataType::Date32) => {
            written(expression, "YYYY-MM-DD")
        }
        _ => format!("{expression}::text"),
    }
}

/// A time in `format`. to_char makes NULL of infinite times, and years of our era of those before it: these keep their
/// own text, which is refused with the column's name.
fn written(expression: &str, format: &str) -> String {
    format!(
        "CASE WHEN isfinite({expression}) AND {expression} >= '0001-01-01' THEN to_char({expression}, '{format}') \
         ELSE {expression}::text END"
    )
}

fn text(data_type: &DataType, value: Raw<'_>) -> Option<String> {
    let mut text = String::new();
    match value {
        Raw::Null => return None,
        value => print(data_type, &value, Style::Quoted, &mut text),
    }
    Some(text)
}
