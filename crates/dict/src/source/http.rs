//! HTTP(URL, FORMAT ..): keys are posted, rows come back; all rows by GET. ClickHouse's own protocol, which
//! `granary server` answers too.

use super::format::{pass_rows, read_rows, write_keys};
use super::rows::Rows;
use super::web::{self, Client};
use super::{Source, Take};
use crate::config::HttpConfig;
use crate::definition::Structure;
use crate::error::DictError;
use crate::types::DataType;
use arrow::array::{ArrayRef, RecordBatch};
use std::time::Duration;

/// One connection.
pub(super) struct Http {
    client: Client,
    config: HttpConfig,
    structure: Structure,
    keys: Vec<(String, DataType)>,
}

impl Http {
    pub fn new(config: &HttpConfig, structure: &Structure, patience: Duration) -> Result<Http, DictError> {
        let headers = config.headers.iter().map(|header| (header.name.as_str(), header.value.clone()));
        let headers = headers.chain(config.credentials.as_ref().map(web::basic));
        let client = Client::new(config.whole_url(), headers, patience)
            .map_err(|e| e.within("SOURCE(HTTP): HEADERS"))?;
        let keys = structure.key_columns().into_iter().map(|key| (key.name, key.data_type)).collect();
        Ok(Http { client, config: config.clone(), structure: structure.clone(), keys })
    }

    fn rows(&self, answer: &[u8]) -> Result<Vec<RecordBatch>, DictError> {
        let mut rows = Rows::new(&self.structure);
        read_rows(self.config.format, answer, &mut rows)?;
        Ok(vec![rows.finish(&[])?])
    }
}

impl Source for Http {
    fn load(&mut self, keys: &[ArrayRef]) -> Result<Vec<RecordBatch>, DictError> {
        let body = write_keys(self.config.format, &self.keys, keys)?;
        self.rows(&self.client.post(&body)?)
    }

    fn load_all(&mut self, take: &mut Take<'_>) -> Result<(), DictError> {
        pass_rows(self.config.format, self.client.get()?, Rows::new(&self.structure), take)
    }
}
