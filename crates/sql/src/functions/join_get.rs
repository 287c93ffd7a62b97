//! `joinGet(table, 'column', key, ..)` and `joinGetOrNull`: a row of a table of ENGINE = Join, by its key.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, new_null_array};
use datafusion::arrow::compute::interleave;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::default_value;
use super::dictionary::constants;
use super::exact::exact;
use super::numbers::{rows, shaped};
use super::planner::constant_text;
use crate::catalogue::{Catalogue, JoinKeys, LocalTable};
use crate::error::Error;

/// What stands for a key that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Otherwise {
    Default,
    Null,
}

/// The functions.
pub const FUNCTIONS: [(&str, Otherwise); 2] =
    [("joinGet", Otherwise::Default), ("joinGetOrNull", Otherwise::Null)];

/// One of them.
#[derive(Debug)]
pub struct JoinGet {
    name: &'static str,
    otherwise: Otherwise,
    catalogue: Arc<Catalogue>,
    signature: Signature,
}

impl PartialEq for JoinGet {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.catalogue, &other.catalogue)
    }
}

impl Eq for JoinGet {}

impl Hash for JoinGet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// What a call is about.
struct Call {
    table: Arc<LocalTable>,
    keys: JoinKeys,
    column: usize,
}

impl JoinGet {
    pub fn new(name: &'static str, otherwise: Otherwise, catalogue: Arc<Catalogue>) -> Self {
        Self { name, otherwise, catalogue, signature: Signature::variadic_any(Volatility::Stable) }
    }

    fn resolve(&self, constants: &[Option<&ScalarValue>]) -> Result<Call> {
        let text = |place: usize| constants.get(place).copied().flatten();
        let (Some(table), Some(column)) = (
            text(0).and_then(|name| constant_text(Some(name))),
            text(1).and_then(|name| constant_text(Some(name))),
        ) else {
            let message = format!("Function {} takes a table, the name of a column and keys", self.name);
            return Err(Error::illegal_type(message).into());
        };
        let (database, name) = table.split_once('.').unwrap_or(("", table));
        let local = self.catalogue.local_table(database, name)?;
        let Some(keys) = local.join_keys.clone().filter(|keys| keys.is_any) else {
            let message = format!("Table {table} should have engine type Join(ANY, LEFT, ..)");
            return Err(Error::incompatible_type_of_join(message).into());
        };
        if constants.len() != keys.columns.len() + 2 {
            let (given, wanted) = (constants.len(), keys.columns.len() + 2);
            let message = format!(
                "Number of arguments for function {} doesn't match: passed {given}, should be {wanted}",
                self.name
            );
            return Err(Error::wrong_argument_count(message).into());
        }
        let column = local
            .schema()
            .index_of(column)
            .map_err(|_| Error::no_such_column(format!("There is no column {column} in table {table}")))?;
        Ok(Call { table: local, keys, column })
    }
}

impl ScalarUDFImpl for JoinGet {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("the type of {} needs its constant arguments", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let call = self.resolve(args.scalar_arguments)?;
        let field = call.table.schema().field(call.column).clone();
        let nullable = field.is_nullable() || self.otherwise == Otherwise::Null;
        Ok(Arc::new(field.with_nullable(nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Call { table, keys, column } = self.resolve(&constants(&args.args))?;
        let (schema, batches) = (table.schema(), table.snapshot());
        let count = rows(&args.args[2..], args.number_rows);
        let key = |(place, &column): (usize, &usize)| -> Result<ArrayRef> {
            let given = args.args[place + 2].to_array(count)?;
            let wanted: &Field = schema.field(column);
            exact(&args.arg_fields[place + 2], &given, wanted)
        };
        let wanted = keys.columns.iter().enumerate().map(key).collect::<Result<Vec<_>>>()?;
        let converter = keys.converter(&schema)?;
        let found = keys.find(&converter, &batches)?;
        let data_type = schema.field(column).data_type();
        let missing = match self.otherwise {
            Otherwise::Null => new_null_array(data_type, 1),
            Otherwise::Default if schema.field(column).is_nullable() => new_null_array(data_type, 1),
            Otherwise::Default => default_value(data_type)?.to_array()?,
        };
        let mut columns: Vec<&dyn Array> =
            batches.iter().map(|batch| batch.column(column).as_ref()).collect();
        columns.push(missing.as_ref());
        let places: Vec<(usize, usize)> = converter
            .convert_columns(&wanted)?
            .iter()
            .map(|key| found.get(key.as_ref()).copied().unwrap_or((batches.len(), 0)))
            .collect();
        shaped(interleave(&columns, &places)?, &args.args[2..])
    }
}
