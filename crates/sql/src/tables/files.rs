//! CSV and Parquet files as tables.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::execution::context::SessionContext;
use datafusion::prelude::{CsvReadOptions, ParquetReadOptions};

use crate::error::{Error, Result};
use crate::limits::CSV_INFER_ROWS;
use crate::session::configuration;

/// The formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// CSV; the first line is taken for a header if no field of it is a number.
    Csv,
    CsvWithNames,
    TabSeparated,
    TabSeparatedWithNames,
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
    /// The format that a file's name tells.
    pub fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        match extension.as_str() {
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

    fn delimiter(self) -> u8 {
        match self {
            InputFormat::TabSeparated | InputFormat::TabSeparatedWithNames => b'\t',
            _ => b',',
        }
    }
}

/// A file as a table.
pub async fn open(path: &Path, format: InputFormat) -> Result<Arc<dyn TableProvider>> {
    if !path.exists() {
        return Err(Error::cannot_open_file(format!("File {} does not exist", path.display())));
    }
    let absolute = std::path::absolute(path).map_err(|e| Error::cannot_open_file(e.to_string()))?;
    let Some(text) = absolute.to_str() else {
        return Err(Error::cannot_open_file(format!("File name {} is not UTF-8", path.display())));
    };
    // Only to look at the file: whoever runs a query over the table brings a context.
    let context = SessionContext::new_with_config(configuration());
    let extension =
        absolute.extension().and_then(|e| e.to_str()).map(|e| format!(".{e}")).unwrap_or_default();
    if format == InputFormat::Parquet {
        let options = ParquetReadOptions::default().file_extension(&extension);
        return Ok(context.read_parquet(text, options).await?.into_view());
    }
    let named = match format {
        InputFormat::CsvWithNames | InputFormat::TabSeparatedWithNames => true,
        _ => looks_like_header(path, format.delimiter())?,
    };
    let options = CsvReadOptions::new()
        .has_header(named)
        .delimiter(format.delimiter())
        .schema_infer_max_records(CSV_INFER_ROWS)
        .file_extension(&extension);
    let mut frame = context.read_csv(text, options).await?;
    if !named {
        // ClickHouse calls unnamed columns c1, c2, ...
        let columns: Vec<_> = frame.schema().columns();
        for (i, column) in columns.iter().enumerate() {
            frame = frame.with_column_renamed(format!("\"{}\"", column.name()), &format!("c{}", i + 1))?;
        }
    }
    Ok(frame.into_view())
}

/// Whether the first line names the columns: no field of it is a number, or the second line has one.
fn looks_like_header(path: &Path, delimiter: u8) -> Result<bool> {
    let file =
        std::fs::File::open(path).map_err(|e| Error::cannot_open_file(format!("{}: {e}", path.display())))?;
    let mut line = String::new();
    BufReader::new(file)
        .read_line(&mut line)
        .map_err(|e| Error::cannot_open_file(format!("{}: {e}", path.display())))?;
    let fields = line.trim_end().split(char::from(delimiter)).map(|field| field.trim_matches('"'));
    Ok(!line.trim().is_empty()
        && fields.into_iter().all(|field| !field.is_empty() && field.parse::<f64>().is_err()))
}
