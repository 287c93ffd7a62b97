//! `file(path)`: the content of one of the user files.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use granary_dialect::Error;
use granary_dialect::functions::{arguments, rows, shaped};

use crate::catalogue::Catalogue;
use crate::limits::FILE_BYTES_MAX;

/// The function.
#[derive(Debug)]
pub struct ReadFile {
    catalogue: Arc<Catalogue>,
    signature: Signature,
}

impl PartialEq for ReadFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.catalogue, &other.catalogue)
    }
}

impl Eq for ReadFile {}

impl std::hash::Hash for ReadFile {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ReadFile {
    pub fn new(catalogue: Arc<Catalogue>) -> Self {
        Self { catalogue, signature: arguments::any(Volatility::Volatile) }
    }

    fn read(&self, path: &str) -> Result<String> {
        let path = self.catalogue.query_file(path.as_ref())?;
        let absent = |_| Error::file_doesnt_exist(format!("File {} doesn't exist", path.display()));
        let metadata = std::fs::metadata(&path).map_err(absent)?;
        if !metadata.is_file() {
            return Err(Error::bad_arguments(format!("{} is not a file", path.display())).into());
        }
        if metadata.len() > FILE_BYTES_MAX as u64 {
            let message = format!("File {} is longer than {FILE_BYTES_MAX} bytes", path.display());
            return Err(Error::bad_arguments(message).into());
        }
        let bytes = std::fs::read(&path)
            .map_err(|error| Error::cannot_open_file(format!("Cannot read {}: {error}", path.display())))?;
        let text = String::from_utf8(bytes);
        Ok(text.map_err(|_| Error::bad_arguments(format!("File {} is not UTF-8", path.display())))?)
    }
}

impl ScalarUDFImpl for ReadFile {
    fn name(&self) -> &str {
        "file"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        arguments::check_count(self.name(), given.len(), 1..=1)?;
        match given {
            [text] if text.is_string() => Ok(DataType::Utf8),
            _ => Err(Error::not_implemented("file is only implemented for types String").into()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let paths = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        let paths: ArrayRef = cast(&paths, &DataType::Utf8)?;
        let mut left = i32::MAX as usize;
        let read = |path: Option<&str>| -> Result<Option<String>> {
            let Some(path) = path else { return Ok(None) };
            let text = self.read(path)?;
            left = left.checked_sub(text.len()).ok_or_else(|| {
                Error::too_large_string_size("The files that are read at once are more than 2 GiB")
            })?;
            Ok(Some(text))
        };
        let texts: StringArray = paths.as_string::<i32>().iter().map(read).collect::<Result<_>>()?;
        shaped(Arc::new(texts), &args.args)
    }
}
