//! CLICKHOUSE(HOST, PORT, USER, PASSWORD, DB, TABLE | QUERY [, WHERE]): SELECTs over ClickHouse's HTTP interface,
//! answered in RowBinary. Whoever may only read can be the USER: no setting is changed.

use crate::definition::Structure;
use crate::environment::OwnTables;
use crate::error::{Code, DictError};
use crate::source::format::names::Format;
use crate::source::format::{pass_rows, read_rows};
use crate::source::literals::conditions;
use crate::source::rows::Rows;
use crate::source::select::Select;
use crate::source::server::Server;
use crate::source::sql::{self, Dialect, UpdateStatements};
use crate::source::web::{self, Client};
use crate::source::{Changes, Source, Tail, Take};
use crate::types::{DataType, Element};
use arrow::array::{ArrayRef, RecordBatch};
use std::time::{Duration, Instant};

/// The tables beside the dictionary, and its SETTINGS.
type OwnTablesUnder = (OwnTables, Vec<(String, String)>);

/// Where the tables are.
pub(super) enum Place {
    Server { server: Server, is_secure: bool },
    Own(Option<OwnTablesUnder>),
}

/// What answers the statements.
pub(super) enum Answerer {
    Http(Client),
    Own(OwnTablesUnder),
}

impl Place {
    pub fn answerer(&self, patience: Duration) -> Result<Answerer, DictError> {
        let (server, is_secure) = match self {
            Place::Server { server, is_secure } => (server, *is_secure),
            Place::Own(own) => {
                let text =
                    "SOURCE(CLICKHOUSE): there are no tables beside this dictionary; give a HOST and a PORT";
                let own = own.clone().ok_or_else(|| DictError::new(Code::NotImplemented, text))?;
                return Ok(Answerer::Own(own));
            }
        };
        // An address of IPv6 goes in brackets.
        let host = match server.host.contains(':') && !server.host.starts_with('[') {
            true => format!("[{}]", server.host),
            false => server.host.clone(),
        };
        let scheme = if is_secure { "https" } else { "http" };
        // The status says whether all went well only if it is sent after the last row.
        let url = format!(
            "{scheme}://{host}:{}/?wait_end_of_query=1&database={}",
            server.port,
            percent_encoded(&server.database)
        );
        let credentials = web::basic(&server.user, &server.password);
        let client = Client::new(url, std::iter::once(credentials), patience);
        client.map(Answerer::Http).map_err(|e| e.within("SOURCE(CLICKHOUSE): USER, PASSWORD"))
    }
}

impl Answerer {
    /// The format of its rows.
    fn format(&self) -> Format {
        match self {
            Answerer::Http(_) => Format::RowBinary,
            // What can be NULL there is not what its type says: a text says it with each value.
            Answerer::Own(_) => Format::TabSeparated,
        }
    }

    fn ask(&self, sql: &str) -> Result<Vec<u8>, DictError> {
        match self {
            Answerer::Http(client) => client.post(sql.as_bytes()),
            Answerer::Own((tables, settings)) => (tables.0)(sql, settings),
        }
    }
}

/// One connection.
pub(super) struct Clickhouse {
    answerer: Answerer,
    database: Option<String>,
    select: Select,
    structure: Structure,
    /// What is selected, and as what it comes.
    list: String,
    columns: Vec<(String, DataType)>,
    updates: Option<UpdateStatements>,
    patience: Duration,
}

impl Clickhouse {
    pub fn connect(
        answerer: Answerer,
        database: Option<String>,
        select: &Select,
        structure: &Structure,
        patience: Duration,
    ) -> Result<Clickhouse, DictError> {
        let asked = sql::columns(Dialect::Clickhouse, structure);
        let plain: Vec<String> = asked.iter().map(|column| column.expression.clone()).collect();
        let statement =
            sql::statement(Dialect::Clickhouse, select, database.as_deref(), &plain.join(", "), None);
        let described = answerer.ask(&format!("{statement} LIMIT 0 FORMAT TabSeparatedWithNamesAndTypes"))?;
        let described = String::from_utf8_lossy(&described).into_owned();
        let theirs: Vec<&str> = described.lines().nth(1).unwrap_or_default().split('\t').collect();
        let ours = structure.key_columns().into_iter().map(|key| key.data_type);
        let ours = ours.chain(structure.attributes.iter().map(|attribute| attribute.data_type.clone()));
        if theirs.len() != asked.len() {
            let text = format!("ClickHouse described {} columns, not {}", theirs.len(), asked.len());
            return Err(DictError::new(Code::IncorrectData, text));
        }
        let columns: Vec<(String, DataType)> = asked
            .iter()
            .zip(ours.zip(theirs))
            .map(|(c, (ours, theirs))| (c.name.clone(), sent(&ours, theirs)))
            .collect();
        // No aliases: in ClickHouse they would be seen by the condition, which no index could answer then.
        let list: Vec<String> = plain
            .iter()
            .zip(&columns)
            .map(|(expression, (_, data_type))| format!("CAST({expression} AS {})", their_name(data_type)))
            .collect();
        let keys = &list[..structure.key_columns().len()];
        let updates = UpdateStatements::new(Dialect::Clickhouse, select, database.as_deref(), keys);
        Ok(Clickhouse {
            updates,
            answerer,
            database,
            select: select.clone(),
            structure: structure.clone(),
            list: list.join(", "),
            columns,
            patience,
        })
    }

    fn statement(&self, condition: Option<&str>) -> String {
        let database = self.database.as_deref();
        sql::statement(Dialect::Clickhouse, &self.select, database, &self.list, condition)
    }

    fn select(&self, condition: Option<&str>) -> Result<RecordBatch, DictError> {
        let statement = self.statement(condition);
        let format = self.answerer.format();
        let answer = self.answerer.ask(&format!("{statement} FORMAT {}", format.name()))?;
        let mut rows = Rows::of_columns(&self.columns);
        read_rows(format, &answer, &mut rows)?;
        rows.finish(&[])
    }
}

impl Source for Clickhouse {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let deadline = Instant::now() + self.patience;
        let mut batches = Vec::new();
        for condition in conditions(Dialect::Clickhouse, &self.structure, keys, &[])? {
            if Instant::now() > deadline {
                let text =
                    format!("ClickHouse: no answer to all keys within {} ms", self.patience.as_millis());
                return Err(DictError::new(Code::TimeoutExceeded, text));
            }
            batches.push(self.select(Some(&condition))?);
        }
        Ok(batches)
    }

    fn load_all(&mut self, take: &mut Take<'_>) -> Result<(), DictError> {
        let rows = Rows::of_columns(&self.columns);
        let format = self.answerer.format();
        let statement = format!("{} FORMAT {}", self.statement(None), format.name());
        match &self.answerer {
            Answerer::Http(client) => {
                pass_rows(format, client.post_and_read(statement.as_bytes())?, rows, take)
            }
            Answerer::Own((tables, settings)) => {
                pass_rows(format, &(tables.0)(&statement, settings)?[..], rows, take)
            }
        }
    }

    fn tail(&mut self, watermark: Option<&str>) -> Result<Tail, DictError> {
        let updates = self.updates.as_ref().ok_or_else(sql::no_updates)?;
        updates.ask_tail(watermark, |statement, rows| self.fill(statement, rows))
    }

    fn changes(&mut self, watermark: &str) -> Result<Changes, DictError> {
        let updates = self.updates.as_ref().ok_or_else(sql::no_updates)?;
        updates.ask_changes(&self.structure, watermark, |statement, rows| self.fill(statement, rows))
    }
}

impl Clickhouse {
    /// Adds an answer as text, in which NULL is itself whatever a column's type is said to be.
    fn fill(&self, statement: &str, rows: &mut Rows) -> Result<(), DictError> {
        let answer = self.answerer.ask(&format!("{statement} FORMAT TabSeparated"))?;
        read_rows(Format::TabSeparated, &answer, rows)
    }
}

/// The type that a column comes in. Only what can be NULL there is asked for as Nullable, for a cast from String
/// to that makes NULL of what it cannot read.
fn sent(ours: &DataType, theirs: &str) -> DataType {
    match theirs.contains("Nullable(") && !ours.is_composite() {
        true => DataType::Nullable(Box::new(ours.inner().clone())),
        false => ours.inner().clone(),
    }
}

/// The name of a type that the server is asked for. Older ones have no Bool, which is the same byte as UInt8.
fn their_name(data_type: &DataType) -> String {
    without_bool(data_type).to_string()
}

fn without_bool(data_type: &DataType) -> DataType {
    let inside = |inner: &DataType| Box::new(without_bool(inner));
    match data_type {
        DataType::Bool => DataType::UInt8,
        DataType::Nullable(inner) => DataType::Nullable(inside(inner)),
        DataType::Array(item) => DataType::Array(inside(item)),
        DataType::Map(entry) => DataType::Map(inside(entry)),
        DataType::Nested(item) => DataType::Nested(inside(item)),
        DataType::Tuple(elements) => {
            let plain = |element: &Element| Element {
                name: element.name.clone(),
                data_type: without_bool(&element.data_type),
            };
            DataType::Tuple(elements.iter().map(plain).collect())
        }
        plain => plain.clone(),
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}
