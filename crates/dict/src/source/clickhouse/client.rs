//! CLICKHOUSE(HOST, PORT, USER, PASSWORD, DB, TABLE | QUERY [, WHERE]): SELECTs over ClickHouse's HTTP interface,
//! answered in RowBinary. A read-only USER suffices: no setting is changed.

use super::columns::{BoolType, Moments, SelectedColumn};
use super::truncating_settings;
use crate::definition::{Key, KeyColumn, Structure};
use crate::environment::OwnTables;
use crate::error::{Code, DictError};
use crate::source::format::names::Format;
use crate::source::format::{pass_answer, read_answer};
use crate::source::literals::conditions;
use crate::source::rows::{self, Rows};
use crate::source::select::Select;
use crate::source::server::Server;
use crate::source::sql::{self, Dialect, UpdateStatements, is_moment, with_utc_zone};
use crate::source::web::{self, Client};
use crate::source::{BatchSink, Changes, NewestChange, Source};
use crate::types::DataType;
use arrow::array::{ArrayRef, RecordBatch};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The server's own tables, and the dictionary's SETTINGS.
type OwnTablesUnder = (OwnTables, Vec<(String, String)>);

/// Where the tables are.
pub(super) enum Endpoint {
    Server { server: Server, is_secure: bool },
    Own(Option<OwnTablesUnder>),
}

/// The server or the own tables, which answer statements.
pub(super) enum Answerer {
    Http(Client),
    Own(OwnTablesUnder),
}

impl Endpoint {
    pub fn answerer(&self, timeout: Duration) -> Result<Answerer, DictError> {
        let (server, is_secure) = match self {
            Endpoint::Server { server, is_secure } => (server, *is_secure),
            Endpoint::Own(own) => {
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
            utf8_percent_encode(&server.database, NON_ALPHANUMERIC)
        );
        let credentials = web::basic(&server.user, &server.password);
        let client = Client::new(url, std::iter::once(credentials), timeout);
        client.map(Answerer::Http).map_err(|e| e.within("SOURCE(CLICKHOUSE): USER, PASSWORD"))
    }
}

impl Answerer {
    /// The format of its rows.
    fn format(&self) -> Format {
        match self {
            Answerer::Http(_) => Format::RowBinary,
            // There a value may be NULL whatever its type: a text says so with each value.
            Answerer::Own(_) => Format::TabSeparated,
        }
    }

    /// How moments come in that format.
    fn moments(&self) -> Moments {
        match self {
            Answerer::Http(_) => Moments::Numbers,
            Answerer::Own(_) => Moments::Texts,
        }
    }

    /// Refuses a server that would cut answers. The dictionary's own SETTINGS were looked at when it was created.
    fn refuse_cuts(&self) -> Result<(), DictError> {
        let Answerer::Http(client) = self else { return Ok(()) };
        truncating_settings::check(&String::from_utf8_lossy(
            &client.post(truncating_settings::QUERY.as_bytes())?,
        ))
    }

    /// Whether the server has Bool, as ClickHouse has since 21.12.
    fn bool_type(&self) -> Result<BoolType, DictError> {
        let Answerer::Http(client) = self else { return Ok(BoolType::Known) };
        let answer = client.post(b"SELECT version() FORMAT TabSeparated")?;
        let version = String::from_utf8_lossy(&answer).into_owned();
        let mut numbers = version.trim().split('.').map(|number| number.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Ok(if version >= FIRST_WITH_BOOL { BoolType::Known } else { BoolType::Unknown })
    }

    fn ask(&self, sql: &str) -> Result<Vec<u8>, DictError> {
        match self {
            Answerer::Http(client) => client.post(sql.as_bytes()).map_err(of_its_exception),
            Answerer::Own((tables, settings)) => (tables.0)(sql, settings),
        }
    }
}

/// The first version of ClickHouse that has Bool.
const FIRST_WITH_BOOL: (u32, u32) = (21, 12);

/// Codes of exceptions that say nothing of what was asked: time, network and sockets (159, 160, 209, 210, 279), users
/// and quotas (192 to 195, 201, 497, 516), too many queries, no memory, no room, an end (173, 202, 203, 236, 241, 243,
/// 252, 394, 439, 734), ZooKeeper (225, 242, 999), other servers and storage (198, 254, 285, 364, 369, 425, 499, 519),
/// what no code says (1000, 1001).
const OUTAGES: [u32; 35] = [
    159, 160, 173, 192, 193, 194, 195, 198, 201, 202, 203, 209, 210, 225, 236, 241, 242, 243, 252, 254, 279,
    285, 364, 369, 394, 425, 439, 497, 499, 516, 519, 734, 999, 1000, 1001,
];

/// One connection.
pub(super) struct Clickhouse {
    answerer: Answerer,
    database: Option<String>,
    select: Select,
    structure: Structure,
    /// The expressions selected, and the names and types of their columns.
    list: String,
    columns: Vec<(String, DataType)>,
    /// The types that the columns become, key columns first.
    wanted: Vec<DataType>,
    updates: Option<UpdateStatements>,
    /// The keys that the texts of `updates` hold.
    updated_keys: Structure,
    timeout: Duration,
}

impl Clickhouse {
    pub fn connect(
        answerer: Answerer,
        database: Option<String>,
        select: &Select,
        structure: &Structure,
        timeout: Duration,
    ) -> Result<Clickhouse, DictError> {
        answerer.refuse_cuts()?;
        let asked = sql::columns(Dialect::Clickhouse, structure);
        let plain: Vec<String> = asked.iter().map(|column| column.expression.clone()).collect();
        let statement =
            sql::statement(Dialect::Clickhouse, select, database.as_deref(), &plain.join(", "), None);
        let described = answerer.ask(&format!("{statement} LIMIT 0 FORMAT TabSeparatedWithNamesAndTypes"))?;
        let described = String::from_utf8_lossy(&described).into_owned();
        let server_type: Vec<&str> = described.lines().nth(1).unwrap_or_default().split('\t').collect();
        let keys = structure.key_columns().into_iter().map(|key| key.data_type);
        let attributes = structure.attributes.iter().map(|attribute| attribute.data_type.clone());
        let wanted: Vec<DataType> = keys.chain(attributes).collect();
        if server_type.len() != asked.len() {
            let text = format!("ClickHouse described {} columns, not {}", server_type.len(), asked.len());
            return Err(DictError::new(Code::IncorrectData, text));
        }
        let is_bool = |data_type: &DataType| *data_type == DataType::Bool;
        let bool_type = match wanted.iter().any(|data_type| data_type.contains(is_bool)) {
            true => answerer.bool_type()?,
            false => BoolType::Known,
        };
        // No aliases: in ClickHouse they would be seen by the condition, which no index could answer then.
        let selected = |moments: Moments| -> Vec<SelectedColumn> {
            plain
                .iter()
                .zip(wanted.iter().zip(&server_type))
                .map(|(expression, (ours, server_type))| {
                    SelectedColumn::new(expression, ours, server_type, bool_type, moments)
                })
                .collect()
        };
        let list = |columns: &[SelectedColumn]| -> Vec<String> {
            columns.iter().map(|column| column.expression.clone()).collect()
        };
        let (selected, texts) = (selected(answerer.moments()), selected(Moments::Texts));
        let keys = list(&texts[..structure.key_columns().len()]);
        let updates = UpdateStatements::new(Dialect::Clickhouse, select, database.as_deref(), &keys);
        let list = list(&selected).join(", ");
        let columns = asked.into_iter().zip(selected).map(|(asked, column)| (asked.name, column.data_type));
        Ok(Clickhouse {
            columns: columns.collect(),
            list,
            wanted,
            updates,
            updated_keys: key_in_utc(structure),
            answerer,
            database,
            select: select.clone(),
            structure: structure.clone(),
            timeout,
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
        read_answer(format, &answer, &mut rows)?;
        self.as_wanted(rows.finish(&[])?)
    }

    /// Returns the rows of an answer with their moments in the time zones of the columns that were asked for.
    fn as_wanted(&self, batch: RecordBatch) -> Result<RecordBatch, DictError> {
        match self.answerer.moments() {
            Moments::Numbers => Ok(batch),
            Moments::Texts => rows::batch(in_zones(&self.wanted, batch.columns())?, batch.num_rows()),
        }
    }
}

impl Source for Clickhouse {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let deadline = Instant::now() + self.timeout;
        let mut batches = Vec::new();
        for condition in conditions(Dialect::Clickhouse, &self.structure, keys, &[])? {
            if Instant::now() > deadline {
                let text =
                    format!("ClickHouse: no answer to all keys within {} ms", self.timeout.as_millis());
                return Err(DictError::new(Code::TimeoutExceeded, text));
            }
            batches.push(self.select(Some(&condition))?);
        }
        Ok(batches)
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        let rows = Rows::of_columns(&self.columns);
        let format = self.answerer.format();
        let statement = format!("{} FORMAT {}", self.statement(None), format.name());
        match &self.answerer {
            Answerer::Http(client) => {
                pass_answer(format, client.post_and_read(statement.as_bytes())?, rows, sink)
            }
            Answerer::Own((tables, settings)) => {
                let answer = (tables.0)(&statement, settings)?;
                let mut sink = |batch: RecordBatch| sink(self.as_wanted(batch)?);
                pass_answer(format, &answer[..], rows, &mut sink)
            }
        }
    }

    fn newest_change(&mut self, watermark: Option<&str>) -> Result<NewestChange, DictError> {
        let updates = self.updates.as_ref().ok_or_else(sql::no_updates)?;
        updates.ask_newest_change(watermark, |statement, rows| self.fill(statement, rows))
    }

    fn changes(&mut self, watermark: &str) -> Result<Changes, DictError> {
        let updates = self.updates.as_ref().ok_or_else(sql::no_updates)?;
        let fill = |statement: &str, rows: &mut Rows| self.fill(statement, rows);
        Ok(match updates.ask_changes(&self.updated_keys, watermark, fill)? {
            Changes::Keys(keys) => Changes::Keys(in_zones(&self.wanted, &keys)?),
            Changes::TooMany => Changes::TooMany,
        })
    }
}

impl Clickhouse {
    /// Adds an answer as text, in which NULL shows whatever a column's type says.
    fn fill(&self, statement: &str, rows: &mut Rows) -> Result<(), DictError> {
        let answer = self.answerer.ask(&format!("{statement} FORMAT TabSeparated"))?;
        read_answer(Format::TabSeparated, &answer, rows)
    }
}

/// The structure with the moments of its key in UTC, and nothing else.
fn key_in_utc(structure: &Structure) -> Structure {
    let column =
        |column: &KeyColumn| KeyColumn { data_type: with_utc_zone(&column.data_type), ..column.clone() };
    let key = match &structure.key {
        Key::Complex(columns) => Key::Complex(columns.iter().map(column).collect()),
        simple => simple.clone(),
    };
    Structure { key, attributes: Vec::new() }
}

/// The first columns of a structure with their moments in the zones of these types.
fn in_zones(types: &[DataType], columns: &[ArrayRef]) -> Result<Vec<ArrayRef>, DictError> {
    let zoned = |(data_type, column): (&DataType, &ArrayRef)| match data_type.contains(is_moment) {
        true => data_type.adopt(column),
        false => Ok(Arc::clone(column)),
    };
    types.iter().zip(columns).map(zoned).collect()
}

/// Notes in an error whether it concerns the request, by the code of the exception in the answer, whatever the status.
fn of_its_exception(error: DictError) -> DictError {
    let Some((_, said)) = error.message().split_once("Code: ") else { return error };
    let digits = said.split(|character: char| !character.is_ascii_digit()).next();
    match digits.and_then(|digits| digits.parse::<u32>().ok()) {
        Some(code) if OUTAGES.contains(&code) => error.of_outage(),
        Some(_) => error.of_request(true),
        None => error,
    }
}
