//! MYSQL(HOST, PORT, USER, PASSWORD, DB, TABLE | QUERY [, WHERE]), for MariaDB too.
//!
//! Rows come in the binary protocol, whose numbers are exact where the text of a FLOAT is not.

use super::errors::{error, said};
use super::keys::{self, is_moment};
use crate::definition::Structure;
use crate::error::{Code, DictError};
use crate::source::literals::{ServerColumn, conditions};
use crate::source::rows::Rows;
use crate::source::select::Select;
use crate::source::server::Server;
use crate::source::sql::{self, Dialect, UpdateStatements};
use crate::source::{BatchSink, Changes, NewestChange, Source};
use crate::types::{DataType, text_to_fixed};
use arrow::array::{ArrayRef, RecordBatch};
use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Binary, Conn, Opts, OptsBuilder, QueryResult, Value};
use std::time::{Duration, Instant};

/// What a session needs, whatever the server's own settings are. The quoting of this crate holds in a sql_mode without
/// ANSI_QUOTES and NO_BACKSLASH_ESCAPES; without autocommit the first SELECT would begin a transaction whose snapshot
/// all others read; sql_select_limit would cut answers, and the keys of what is cut would count as absent.
const SESSION: &str = "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = '', autocommit = 1, \
     sql_select_limit = 18446744073709551615";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The server ends a statement that takes too long; the connection is given up this much later.
const GRACE: Duration = Duration::from_secs(5);
/// How long the unwanted rest of an answer is read before the server is told to stop.
const NEAR_END: Duration = Duration::from_millis(100);

/// Ends the comment with which each prepared statement begins. The client library searches a statement for parameters,
/// `:name`, and takes quoted text for code where a quote follows a minus or a slash. It does not see this end, and so
/// it searches nothing but what follows another comment.
pub(super) const UNSEEN_END: &str = "**/";

/// A connection, and what it takes to make another one like it.
struct Connection {
    conn: Conn,
    options: Opts,
    /// The server was told to close it.
    is_broken_off: bool,
}

/// One connection.
pub(super) struct Mysql {
    connection: Connection,
    /// The database that tables are in, if one is named.
    database: Option<String>,
    select: Select,
    structure: Structure,
    /// The expressions selected.
    list: String,
    /// The server's types of the key columns.
    server_columns: Vec<ServerColumn>,
    updates: Option<UpdateStatements>,
    timeout: Duration,
    answer_bytes_max: u64,
}

impl Mysql {
    pub fn connect(
        server: &Server,
        select: &Select,
        structure: &Structure,
        timeout: Duration,
        answer_bytes_max: u64,
    ) -> Result<Mysql, DictError> {
        let named = |name: &String| Some(name.clone()).filter(|name| !name.is_empty());
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(&server.host))
            .tcp_port(server.port)
            .user(named(&server.user))
            .pass(named(&server.password))
            .db_name(named(&server.database))
            // HOST and PORT are meant as they are written, even if the server also has a socket file here.
            .prefer_socket(false)
            .tcp_connect_timeout(Some(CONNECT_TIMEOUT.min(timeout)))
            .read_timeout(Some(timeout + GRACE))
            .write_timeout(Some(timeout + GRACE))
            // Statements hold their keys: none comes twice, and each is closed after its rows.
            .stmt_cache_size(0);
        let options = Opts::from(options);
        let mut connection = Conn::new(options.clone()).map_err(|e| {
            let text = format!("Cannot connect to MySQL at {}:{}: {}", server.host, server.port, said(&e));
            DictError::new(Code::AllConnectionTriesFailed, text)
        })?;
        connection
            .query_drop(SESSION)
            .and_then(|()| connection.query_drop("SET SESSION TRANSACTION READ ONLY"))
            .map_err(error)?;
        limit_statements(&mut connection, timeout)?;
        let columns = sql::columns(Dialect::Mysql, structure).into_iter();
        let list: Vec<String> =
            columns.map(|c| format!("{} AS {}", c.expression, Dialect::Mysql.name(&c.name))).collect();
        let keys = &list[..structure.key_columns().len()];
        let database = named(&server.database);
        let updates = UpdateStatements::new(Dialect::Mysql, select, database.as_deref(), keys);
        let mut mysql = Mysql {
            server_columns: Vec::new(),
            updates,
            connection: Connection { conn: connection, options, is_broken_off: false },
            database,
            select: select.clone(),
            structure: structure.clone(),
            list: list.join(", "),
            timeout,
            answer_bytes_max,
        };
        let (all, database) = (mysql.statement(None), mysql.database.as_deref());
        mysql.server_columns =
            keys::describe(&mut mysql.connection.conn, structure, &all, of_none(select, database))?;
        Ok(mysql)
    }

    fn statement(&self, condition: Option<&str>) -> String {
        sql::statement(Dialect::Mysql, &self.select, self.database.as_deref(), &self.list, condition)
    }

    fn load_keys(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let deadline = Instant::now() + self.timeout;
        let mut rows = Rows::new(&self.structure).at_most(self.answer_bytes_max);
        for condition in conditions(Dialect::Mysql, &self.structure, keys, &self.server_columns)? {
            if Instant::now() > deadline {
                let text = format!("MySQL: no answer to all keys within {} ms", self.timeout.as_millis());
                return Err(DictError::new(Code::TimeoutExceeded, text));
            }
            let statement = self.statement(Some(&condition));
            pass(&mut self.connection, &statement, &self.server_columns, &mut rows, |_| Ok(()))?;
        }
        Ok(vec![rows.finish(&[])?])
    }
}

/// Makes statements that select these expressions from no row of the source.
fn of_none<'a>(select: &'a Select, database: Option<&'a str>) -> impl Fn(&str) -> String + 'a {
    move |list| sql::statement(Dialect::Mysql, select, database, list, Some("1 = 0"))
}

fn fill(connection: &mut Connection, statement: &str, rows: &mut Rows) -> Result<(), DictError> {
    pass(connection, statement, &[], rows, |_| Ok(()))
}

/// Reads the rows of a statement whose keys were written for columns of types `written_for`; `then` is called after
/// each row.
fn pass(
    connection: &mut Connection,
    statement: &str,
    written_for: &[ServerColumn],
    rows: &mut Rows,
    mut then: impl FnMut(&mut Rows) -> Result<(), DictError>,
) -> Result<(), DictError> {
    let Connection { conn, options, is_broken_off } = connection;
    let tag = format!("/* granary {:016x} {UNSEEN_END}", fastrand::u64(..));
    let statement = conn.prep(format!("{tag} {statement}")).map_err(error)?;
    let number = conn.connection_id();
    let mut answer = conn.exec_iter(&statement, ()).map_err(error)?;
    let mut read = || {
        keys::check(written_for, answer.columns().as_ref())?;
        let types: Vec<ColumnType> = answer.columns().as_ref().iter().map(|c| c.column_type()).collect();
        for row in answer.by_ref() {
            for (column, value) in row.map_err(error)?.unwrap().into_iter().enumerate() {
                push(rows, column, types[column], value)?;
            }
            rows.check_bytes()?;
            then(rows)?;
        }
        Ok(())
    };
    let outcome: Result<(), DictError> = read();
    if outcome.is_err() {
        *is_broken_off = break_off(&mut answer, options, number, &tag);
    }
    drop(answer);
    outcome?;
    // The client leaves the statement open, and the server limits their number over all its clients.
    conn.close(statement).map_err(error)
}

/// Ends an answer whose further rows are unwanted, which would be read to its end when dropped: the server is told to
/// close connection `number`, whose statement begins with `tag`, unless the end is near. Returns whether it was told.
fn break_off(answer: &mut QueryResult<'_, '_, '_, Binary>, options: &Opts, number: u32, tag: &str) -> bool {
    let near = Instant::now() + NEAR_END;
    while Instant::now() < near {
        if answer.next().is_none() {
            return false;
        }
    }
    // If that fails, the rest has to be read.
    let another = Conn::new(options.clone());
    another.is_ok_and(|mut another| kill(&mut another, number, tag).unwrap_or(false))
}

/// Has a server close connection `number`, if that runs a statement which begins with `tag`: one name may stand for
/// several servers, where the number is that of other connections. Returns whether it was there.
fn kill(another: &mut Conn, number: u32, tag: &str) -> Result<bool, mysql::Error> {
    let running = format!("SELECT INFO FROM information_schema.PROCESSLIST WHERE ID = {number}");
    let running: Option<Option<Vec<u8>>> = another.query_first(running)?;
    let is_ours = running.flatten().is_some_and(|statement| statement.starts_with(tag.as_bytes()));
    if is_ours {
        another.query_drop(format!("KILL CONNECTION {number}"))?;
    }
    Ok(is_ours)
}

impl Source for Mysql {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let answer = self.load_keys(keys);
        if !self.connection.is_broken_off && !answer.as_ref().is_err_and(DictError::is_lost_connection) {
            // Keys that were written for another character set are found nowhere, or are an error.
            let of_none = of_none(&self.select, self.database.as_deref());
            keys::check_charsets(
                &mut self.connection.conn,
                &self.structure,
                keys,
                &self.server_columns,
                of_none,
            )?;
        }
        answer
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        let statement = self.statement(None);
        let mut rows = Rows::new(&self.structure).at_most(self.answer_bytes_max);
        pass(&mut self.connection, &statement, &[], &mut rows, |rows| rows.flush_if_full(sink))?;
        rows.flush(sink)
    }

    fn newest_change(&mut self, watermark: Option<&str>) -> Result<NewestChange, DictError> {
        let updates = self.updates.as_ref().ok_or_else(sql::no_updates)?;
        updates.ask_newest_change(watermark, |statement, rows| fill(&mut self.connection, statement, rows))
    }

    fn changes(&mut self, watermark: &str) -> Result<Changes, DictError> {
        let updates = self.updates.as_ref().ok_or_else(sql::no_updates)?;
        let connection = &mut self.connection;
        updates.ask_changes(&self.structure, watermark, |statement, rows| fill(connection, statement, rows))
    }
}

/// Has the server end statements that take longer, so that an abandoned request does not go on there.
fn limit_statements(connection: &mut Conn, timeout: Duration) -> Result<(), DictError> {
    let version: Option<String> = connection.query_first("SELECT @@version").map_err(error)?;
    let limit = match version {
        Some(version) if version.contains("MariaDB") => {
            format!("SET SESSION max_statement_time = {:.3}", timeout.as_secs_f64())
        }
        _ => format!("SET SESSION max_execution_time = {}", timeout.as_millis()),
    };
    connection.query_drop(limit).map_err(error)
}

fn push(rows: &mut Rows, column: usize, server_type: ColumnType, value: Value) -> Result<(), DictError> {
    let ours = rows.data_type(column).inner().clone();
    match (value, &ours) {
        (Value::NULL, _) => rows.push_parsed(column, None),
        (Value::UInt(value), DataType::UInt64) => {
            rows.column(column).push_fixed(&value.to_le_bytes());
            Ok(())
        }
        (Value::Int(value), DataType::Int64) => {
            rows.column(column).push_fixed(&value.to_le_bytes());
            Ok(())
        }
        (Value::UInt(value), _) => rows.push_parsed(column, Some(&value.to_string())),
        (Value::Int(value), _) => rows.push_parsed(column, Some(&value.to_string())),
        (Value::Float(value), _) => rows.push_parsed(column, Some(&value.to_string())),
        (Value::Double(value), _) => rows.push_parsed(column, Some(&value.to_string())),
        (Value::Date(year, month, day, hour, minute, second, micros), _) => {
            // 0000-00-00 is MySQL's old way to say that there is no date.
            if (year, month, day) == (0, 0, 0) {
                return rows.push_parsed(column, None);
            }
            let date = format!("{year:04}-{month:02}-{day:02}");
            let moment = format!("{date} {hour:02}:{minute:02}:{second:02}");
            match ours {
                DataType::Date | DataType::Date32 => rows.push_parsed(column, Some(&date)),
                DataType::DateTime { .. } => push_moment(rows, column, server_type, &moment),
                DataType::DateTime64 { .. } => {
                    push_moment(rows, column, server_type, &format!("{moment}.{micros:06}"))
                }
                _ if server_type == ColumnType::MYSQL_TYPE_DATE => rows.push_parsed(column, Some(&date)),
                _ if micros > 0 => rows.push_parsed(column, Some(&format!("{moment}.{micros:06}"))),
                _ => rows.push_parsed(column, Some(&moment)),
            }
        }
        (Value::Time(negative, days, hours, minutes, seconds, micros), _) => {
            let sign = if negative { "-" } else { "" };
            let fraction = if micros > 0 { format!(".{micros:06}") } else { String::new() };
            let hours = days * 24 + u32::from(hours);
            rows.push_parsed(column, Some(&format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}")))
        }
        (Value::Bytes(bits), _) if server_type == ColumnType::MYSQL_TYPE_BIT => {
            let number = bits.iter().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
            rows.push_parsed(column, Some(&number.to_string()))
        }
        (Value::Bytes(bytes), _) => rows.push_bytes(column, &bytes),
    }
}

/// The session's TIMESTAMPs are moments in UTC, whatever the zone in which they are shown. DATETIMEs, which have no
/// zone, are local times in that of the column.
fn push_moment(rows: &mut Rows, column: usize, server_type: ColumnType, text: &str) -> Result<(), DictError> {
    if !is_moment(server_type) {
        return rows.push_parsed(column, Some(text));
    }
    let utc = sql::in_utc(rows.data_type(column).inner());
    let raw = text_to_fixed(&utc, text).map_err(|e| rows.within(column, e))?;
    rows.column(column).push_fixed(&raw);
    Ok(())
}
