//! HTTP(URL, FORMAT ..): keys are posted, rows come back; all rows by GET. ClickHouse's own protocol, which
//! `granary server` answers too.

use crate::definition::Structure;
use crate::error::DictError;
use crate::source::format::names::Format;
use crate::source::format::{pass_rows, read_rows, write_keys};
use crate::source::rows::Rows;
use crate::source::web::Client;
use crate::source::{BatchSink, Source};
use crate::types::DataType;
use arrow::array::{ArrayRef, RecordBatch};
use std::time::Duration;

/// One connection.
pub(super) struct Http {
    client: Client,
    format: Format,
    structure: Structure,
    keys: Vec<(String, DataType)>,
}

impl Http {
    pub fn new(
        url: &str,
        headers: &[(String, String)],
        format: Format,
        structure: &Structure,
        timeout: Duration,
    ) -> Result<Http, DictError> {
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let client =
            Client::new(url.to_string(), headers, timeout).map_err(|e| e.within("SOURCE(HTTP): HEADERS"))?;
        let keys = structure.key_columns().into_iter().map(|key| (key.name, key.data_type)).collect();
        Ok(Http { client, format, structure: structure.clone(), keys })
    }

    fn rows(&self, answer: &[u8]) -> Result<Vec<RecordBatch>, DictError> {
        let mut rows = Rows::new(&self.structure);
        read_rows(self.format, answer, &mut rows)?;
        Ok(vec![rows.finish(&[])?])
    }
}

impl Source for Http {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let body = write_keys(self.format, &self.keys, keys)?;
        self.rows(&self.client.post(&body)?)
    }

    fn load_all(&mut self, sink: &mut BatchSink<'_>) -> Result<(), DictError> {
        pass_rows(self.format, self.client.get()?, Rows::new(&self.structure), sink)
    }
}
