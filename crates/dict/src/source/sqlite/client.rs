//! SQLITE(PATH, TABLE | QUERY [, WHERE]): a database file, opened read-only.

use super::current::SqliteDatabase;
use super::deadline::{Deadline, error};
use crate::definition::Structure;
use crate::error::DictError;
use crate::row::{Cells, Raw, Style, print};
use crate::source::float_keys::{combinations, doubles};
use crate::source::rows::Rows;
use crate::source::sql::{self, Dialect, UpdateStatements};
use crate::source::{BatchSink, Changes, NewestChange, Source};
use crate::types::{DataType, print_fixed};
use arrow::array::{Array, ArrayRef, RecordBatch};
use rusqlite::config::DbConfig;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, Params};
use std::rc::Rc;
use std::time::Duration;

/// How long a writer may hold the database before a request fails.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// One connection.
pub(super) struct Sqlite {
    connection: Connection,
    structure: Structure,
    select_keys: String,
    select_all: String,
    /// A single key column is bound as one array; several go through a temporary table.
    insert: Option<String>,
    updates: Option<UpdateStatements>,
    deadline: Deadline,
    answer_bytes_max: u64,
}

impl Sqlite {
    pub fn open(database: &SqliteDatabase) -> Result<Sqlite, DictError> {
        let SqliteDatabase { path, select, structure, timeout, answer_bytes_max } = database;
        let timeout = *timeout;
        let failed = |e: rusqlite::Error| error(e).within(format_args!("SQLite database {}", path.display()));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT.min(timeout)).map_err(failed)?;
        let deadline = Deadline::of(&mut connection, timeout).map_err(failed)?;
        // Otherwise the name of a column that does not exist is taken for a string, and is every row's value.
        for misspelled in [DbConfig::SQLITE_DBCONFIG_DQS_DML, DbConfig::SQLITE_DBCONFIG_DQS_DDL] {
            connection.set_db_config(misspelled, false).map_err(failed)?;
        }
        rusqlite::vtab::array::load_module(&connection).map_err(failed)?;
        let keys = structure.key_columns();
        let columns = sql::columns(Dialect::Sqlite, structure);
        let list: Vec<String> = columns
            .iter()
            .map(|c| format!("{} AS {}", c.expression, Dialect::Sqlite.name(&c.name)))
            .collect();
        let updates = UpdateStatements::new(Dialect::Sqlite, select, None, &list[..keys.len()]);
        let list = list.join(", ");
        // The sign makes an expression of a column, which is converted to the type of the column that it is compared
        // with.
        let (condition, insert) = match &keys[..] {
            [key] if !key.data_type.is_nullable() => {
                (format!("{} IN (SELECT +value FROM rarray(?1))", Dialect::Sqlite.name(&key.name)), None)
            }
            _ => {
                let names: Vec<String> = keys.iter().map(|key| Dialect::Sqlite.name(&key.name)).collect();
                let own = sql::key_names(keys.len());
                let own_list = own.join(", ");
                connection
                    .execute_batch(&format!("CREATE TEMP TABLE granary_keys ({own_list})"))
                    .map_err(failed)?;
                let holes = vec!["?"; keys.len()].join(", ");
                // A row value is looked up in an index; IS, which NULL needs, is not.
                let condition = if keys.iter().any(|key| key.data_type.is_nullable()) {
                    let pairs: Vec<String> =
                        own.iter().zip(&names).map(|(k, n)| format!("+granary_keys.{k} IS {n}")).collect();
                    // A subquery has no rowid that a column of that name would be taken for.
                    let from = format!("(SELECT {own_list} FROM temp.granary_keys) AS granary_keys");
                    format!("EXISTS (SELECT 1 FROM {from} WHERE {})", pairs.join(" AND "))
                } else {
                    let expressions: Vec<String> = own.iter().map(|key| format!("+{key}")).collect();
                    format!(
                        "({}) IN (SELECT {} FROM temp.granary_keys)",
                        names.join(", "),
                        expressions.join(", ")
                    )
                };
                (condition, Some(format!("INSERT INTO temp.granary_keys VALUES ({holes})")))
            }
        };
        // A column of integers has those beyond 64 bits as floats: these are no keys.
        let whole = keys.iter().filter(|key| key.data_type.inner().is_integer()).map(|key| {
            let name = Dialect::Sqlite.name(&key.name);
            format!(" AND (typeof({name}) <> 'real' OR {name} = CAST({name} AS INTEGER))")
        });
        let condition = condition + &whole.collect::<String>();
        Ok(Sqlite {
            select_keys: sql::statement(Dialect::Sqlite, select, None, &list, Some(&condition)),
            select_all: sql::statement(Dialect::Sqlite, select, None, &list, None),
            structure: structure.clone(),
            connection,
            insert,
            updates,
            deadline,
            answer_bytes_max: *answer_bytes_max,
        })
    }

    fn select(&self, statement: &str, parameters: impl Params) -> Result<Vec<RecordBatch>, DictError> {
        let mut rows = Rows::new(&self.structure).at_most(self.answer_bytes_max);
        self.fill(statement, parameters, &mut rows)?;
        Ok(vec![rows.finish(&[])?])
    }

    fn fill(&self, statement: &str, parameters: impl Params, rows: &mut Rows) -> Result<(), DictError> {
        self.pass(statement, parameters, rows, |_| Ok(()))
    }

    /// Reads the rows of a statement; `then` is called after each row.
    fn pass(
        &self,
        statement: &str,
        parameters: impl Params,
        rows: &mut Rows,
        mut then: impl FnMut(&mut Rows) -> Result<(), DictError>,
    ) -> Result<(), DictError> {
        let failed = |e| self.deadline.error(e);
        let mut statement = self.connection.prepare_cached(statement).map_err(failed)?;
        let mut answer = statement.query(parameters).map_err(failed)?;
        while let Some(row) = answer.next().map_err(failed)? {
            for column in 0..rows.width() {
                push(rows, column, row.get_ref(column).map_err(error)?)?;
            }
            rows.check_bytes()?;
            then(rows)?;
        }
        Ok(())
    }
}

impl Source for Sqlite {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        self.deadline.begin();
        let columns = self.structure.key_columns();
        let cells = columns
            .iter()
            .zip(keys)
            .map(|(column, array)| Ok((&column.data_type, Cells::new(&column.data_type, array)?)))
            .collect::<Result<Vec<_>, DictError>>()?;
        let rows = 0..keys[0].len();
        let of_row = |row: usize| -> Option<Vec<Vec<Value>>> {
            let values = cells.iter().map(|(data_type, cells)| bind(data_type, cells.get(row)));
            values.collect::<Option<_>>().map(combinations)
        };
        let keys = rows.filter_map(of_row).flatten();
        let Some(insert) = &self.insert else {
            let values: Vec<Value> = keys.flatten().collect();
            return self.select(&self.select_keys, [Rc::new(values)]);
        };
        let failed = |e| self.deadline.error(e);
        // The transaction is on the temporary database alone and ends before the source is read.
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        transaction.execute("DELETE FROM temp.granary_keys", []).map_err(failed)?;
        let mut statement = transaction.prepare_cached(insert).map_err(failed)?;
        for key in keys {
            statement.execute(rusqlite::params_from_iter(key)).map_err(failed)?;
        }
        drop(statement);
        transaction.commit().map_err(failed)?;
        self.select(&self.select_keys, [])
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        let mut rows = Rows::new(&self.structure).at_most(self.answer_bytes_max);
        self.deadline.begin();
        self.pass(&self.select_all, [], &mut rows, |rows| {
            rows.flush_if_full(sink)?;
            // The time that `sink` needs does not count.
            self.deadline.begin();
            Ok(())
        })?;
        rows.flush(sink)
    }

    fn newest_change(&mut self, watermark: Option<&str>) -> Result<NewestChange, DictError> {
        let updates = self.updates.as_ref().ok_or_else(sql::no_updates)?;
        self.deadline.begin();
        updates.ask_newest_change(watermark, |statement, rows| self.fill(statement, [], rows))
    }

    fn changes(&mut self, watermark: &str) -> Result<Changes, DictError> {
        let updates = self.updates.as_ref().ok_or_else(sql::no_updates)?;
        self.deadline.begin();
        updates.ask_changes(&self.structure, watermark, |statement, rows| self.fill(statement, [], rows))
    }
}

/// The values that a key may have in SQLite; `None`: SQLite cannot hold it, so there is no such key.
fn bind(data_type: &DataType, value: Raw<'_>) -> Option<Vec<Value>> {
    let text = |raw: &[u8]| {
        let mut text = String::new();
        print_fixed(data_type, raw, &mut text);
        text
    };
    let value = match (data_type.inner(), value) {
        (_, Raw::Null) => Value::Null,
        (DataType::Float32, Raw::Fixed(raw)) => {
            return Some(doubles(raw).into_iter().map(Value::Real).collect());
        }
        (_, Raw::Bit(bit)) => Value::Integer(bit.into()),
        (_, Raw::Text(bytes)) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        (DataType::Float64, Raw::Fixed(raw)) => Value::Real(text(raw).parse().ok()?),
        // SQLite has no larger integers: such keys are in columns of text.
        (plain, Raw::Fixed(raw)) if plain.is_integer() => {
            let text = text(raw);
            text.parse().map_or(Value::Text(text), Value::Integer)
        }
        (_, Raw::Fixed(raw)) => Value::Text(text(raw)),
        (_, value @ Raw::Items(_)) => {
            let mut text = String::new();
            print(data_type, &value, Style::Quoted, &mut text);
            Value::Text(text)
        }
    };
    Some(vec![value])
}

/// Values of SQLite carry their own types, whatever their column says.
fn push(rows: &mut Rows, column: usize, value: ValueRef<'_>) -> Result<(), DictError> {
    match value {
        ValueRef::Null => rows.push_parsed(column, None),
        ValueRef::Integer(value) => match rows.data_type(column).inner() {
            DataType::Int64 => {
                rows.column(column).push_fixed(&value.to_le_bytes());
                Ok(())
            }
            DataType::UInt64 if value >= 0 => {
                rows.column(column).push_fixed(&value.to_le_bytes());
                Ok(())
            }
            _ => rows.push_parsed(column, Some(&value.to_string())),
        },
        ValueRef::Real(value) => match rows.data_type(column).inner() {
            DataType::Float64 => {
                rows.column(column).push_fixed(&value.to_le_bytes());
                Ok(())
            }
            _ => rows.push_parsed(column, Some(&value.to_string())),
        },
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => rows.push_bytes(column, bytes),
    }
}
