//! Files as tables, by their formats.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::execution::context::SessionContext;
use datafusion::prelude::ParquetReadOptions;
use granary_dialect::{Error, Result};
use granary_dict::TextFormat;

use super::provider::Provider;
use super::text::{Compression, HeaderRow, TextTable};
use crate::settings::configuration;

/// The formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// The first row is taken for a header if it has texts only and a column below has something else.
    Csv,
    /// The first row has the names of the columns.
    CsvWithNames,
    /// Tabs between values, escapes with backslashes; the first row is taken for a header as with CSV.
    TabSeparated,
    /// The first row has the names of the columns.
    TabSeparatedWithNames,
    /// Parquet, by the schema in its footer.
    Parquet,
}

impl FromStr for InputFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "csv" => InputFormat::Csv,
            "csvwithnames" => InputFormat::CsvWithNames,
            "tabseparated" | "tsv" => InputFormat::TabSeparated,
            "tabseparatedwithnames" | "tsvwithnames" => InputFormat::TabSeparatedWithNames,
            "parquet" => InputFormat::Parquet,
            _ => {
                let known = "CSV, CSVWithNames, TabSeparated, TabSeparatedWithNames and Parquet";
                return Err(Error::unknown_format(format!("Cannot read format {name}; known are {known}")));
            }
        })
    }
}

impl InputFormat {
    /// The format that a file's name tells; a `.gz` after it is ignored.
    pub fn of(path: &Path) -> Result<Self> {
        let (name, _) = unpacked_name(path);
        match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "csv" => Ok(InputFormat::Csv),
            "tsv" => Ok(InputFormat::TabSeparated),
            "parquet" | "pq" => Ok(InputFormat::Parquet),
            _ => Err(Error::unknown_format(format!(
                "Cannot tell the format of {} from its name; say file('{}', 'CSVWithNames')",
                path.display(),
                path.display()
            ))),
        }
    }
}

/// A file's name in lower case without `.gz`, and its compression.
fn unpacked_name(path: &Path) -> (String, Compression) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
    match name.strip_suffix(".gz") {
        Some(inner) => (inner.to_owned(), Compression::Gzip),
        None => (name, Compression::None),
    }
}

/// A file as a table. Without a format the file's name tells it.
pub async fn open(path: &Path, format: Option<InputFormat>) -> Result<Arc<dyn TableProvider>> {
    let format = match format {
        Some(format) => format,
        None => InputFormat::of(path)?,
    };
    if !path.exists() {
        return Err(Error::cannot_open_file(format!("File {} does not exist", path.display())));
    }
    let (text_format, header) = match format {
        InputFormat::Csv => (TextFormat::Csv, HeaderRow::Guessed),
        InputFormat::CsvWithNames => (TextFormat::Csv, HeaderRow::Given),
        InputFormat::TabSeparated => (TextFormat::TabSeparated, HeaderRow::Guessed),
        InputFormat::TabSeparatedWithNames => (TextFormat::TabSeparated, HeaderRow::Given),
        InputFormat::Parquet => return open_parquet(path).await,
    };
    let (_, compression) = unpacked_name(path);
    Ok(Provider::of(TextTable::open(path, text_format, compression, header)?))
}

async fn open_parquet(path: &Path) -> Result<Arc<dyn TableProvider>> {
    let absolute = std::path::absolute(path).map_err(|e| Error::cannot_open_file(e.to_string()))?;
    let Some(text) = absolute.to_str() else {
        return Err(Error::cannot_open_file(format!("File name {} is not UTF-8", path.display())));
    };
    let extension =
        absolute.extension().and_then(|e| e.to_str()).map(|e| format!(".{e}")).unwrap_or_default();
    let options = ParquetReadOptions::default().file_extension(&extension);
    // Only to read the file's schema: a query over the table brings its own context.
    let context = SessionContext::new_with_config(configuration());
    Ok(context.read_parquet(text, options).await?.into_view())
}
