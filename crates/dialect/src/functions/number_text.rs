//! A text compared with numbers, in `id = '5'` and `id IN ('5', '6')`: all of it must be a number of their type. Arrow
//! would ignore blanks, and Float64 has other digits than Float32. Compared with days it must be a day, without a time,
//! which CAST would cut off.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Date32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use granary_dict::days_written;

use super::exact::exact;
use super::numbers::{rows, shaped};
use crate::error::Error;
use crate::reword::no_number;
use crate::types::is_bounded;

/// A text as a number or a day. No query can write the function's name.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NumberText {
    wanted: ReadAs,
    signature: Signature,
}

/// The type that a text is read as: one of Arrow's numbers, or days.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ReadAs {
    data_type: DataType,
    /// Whether the days are those of a Date, which takes the nearest day in its range.
    is_bounded: bool,
}

/// A text as a value of the field's type: a number of a type that Arrow has, or a day. A literal is converted at once.
///
/// # Errors
/// TYPE_MISMATCH, CANNOT_PARSE_NUMBER.
pub fn number_of(text: Expr, wanted: &Field) -> Result<Expr> {
    let wanted = ReadAs { data_type: wanted.data_type().clone(), is_bounded: is_bounded(wanted) };
    if let Expr::Literal(value, _) = &text {
        let number = read(&value.to_array()?, &wanted)?;
        return Ok(lit(ScalarValue::try_from_array(&number, 0)?));
    }
    let signature = Signature::any(1, Volatility::Immutable);
    Ok(ScalarUDF::from(NumberText { wanted, signature }).call(vec![text]))
}

/// Converts texts to numbers.
fn read(texts: &ArrayRef, wanted: &ReadAs) -> Result<ArrayRef> {
    let ReadAs { data_type: wanted, is_bounded } = wanted;
    let (field, number) = (Field::new("", DataType::Utf8, true), Field::new("", wanted.clone(), true));
    let texts = cast(texts, &DataType::Utf8)?;
    if wanted == &DataType::Date32 {
        let name = if *is_bounded { "Date" } else { "Date32" };
        let day = |text: &str| {
            let day = days_written(text).ok_or_else(|| no_number(text, name))?;
            Ok::<_, Error>(if *is_bounded { day.clamp(0, u16::MAX.into()) } else { day })
        };
        let days =
            texts.as_string::<i32>().iter().map(|text| Ok(text.map(day).transpose()?.map(|day| day as i32)));
        return Ok(Arc::new(days.collect::<Result<Date32Array>>()?));
    }
    let error = match exact(&field, &texts, &number) {
        Ok(numbers) => return Ok(numbers),
        Err(error) => error,
    };
    let is_wrong = |row: &usize| exact(&field, &texts.slice(*row, 1), &number).is_err();
    match (0..texts.len()).find(is_wrong) {
        Some(row) => Err(no_number(texts.as_string::<i32>().value(row), &wanted.to_string()).into()),
        None => Err(error),
    }
}

impl ScalarUDFImpl for NumberText {
    fn name(&self) -> &str {
        "text/number"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.wanted.data_type.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), self.wanted.data_type.clone(), args.arg_fields[0].is_nullable())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let texts = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        shaped(read(&texts, &self.wanted)?, &args.args)
    }
}
