//! Whether dates and times are in the range of their type: Arrow's reach further than ClickHouse's.

use crate::error::{Code, DictError};
use crate::types::DataType;
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType as Arrow, Int64Type};
use std::sync::Arc;

impl DataType {
    /// Looks at the values of an array of this type, which others wrote.
    ///
    /// # Errors
    /// `VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE` for a date or a time that this type does not have.
    pub(crate) fn check_range(&self, array: &ArrayRef) -> Result<(), DictError> {
        let data_type = self.inner();
        match data_type {
            DataType::Array(_) | DataType::Map(_) | DataType::Nested(_) => {
                let items = match array.as_map_opt() {
                    Some(map) => Arc::new(map.entries().clone()),
                    None => Arc::clone(array.as_list::<i32>().values()),
                };
                data_type.item().check_range(&items)
            }
            DataType::Tuple(_) => {
                let columns = array.as_struct().columns().iter();
                let mut elements = data_type.elements().iter().zip(columns);
                elements.try_for_each(|(element, column)| element.data_type.check_range(column))
            }
            DataType::Date | DataType::Date32 | DataType::DateTime { .. } | DataType::DateTime64 { .. } => {
                within_extremes(array, data_type)
            }
            _ => Ok(()),
        }
    }
}

fn within_extremes(array: &ArrayRef, data_type: &DataType) -> Result<(), DictError> {
    let number = |raw: &[u8]| i64::from_le_bytes(raw[..8].try_into().expect("there are eight bytes"));
    let [least, greatest] = data_type.extremes().expect("times are in an order").map(|raw| number(&raw));
    let numbers = cast(array, &Arrow::Int64).map_err(super::from_arrow::failed)?;
    match numbers.as_primitive::<Int64Type>().iter().flatten().find(|n| !(least..=greatest).contains(n)) {
        None => Ok(()),
        Some(outside) => Err(DictError::new(
            Code::ValueIsOutOfRangeOfDataType,
            format!("Value {outside} is out of the range of {data_type}, which is [{least}, {greatest}]"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, Date32Array, TimestampMillisecondArray, TimestampSecondArray};

    fn check(data_type: &str, array: impl Array + 'static) -> Result<(), DictError> {
        let data_type = DataType::parse(data_type).unwrap();
        data_type.check_range(&data_type.adopt(&arrow::array::make_array(array.to_data()))?)
    }

    #[test]
    fn what_a_type_does_not_have_is_refused() {
        check("Nullable(Date)", Date32Array::from(vec![Some(0), None, Some(65_535)])).unwrap();
        check("Date32", Date32Array::from(vec![-25_567, 120_529])).unwrap();
        check("DateTime('Asia/Tokyo')", TimestampSecondArray::from(vec![0, i64::from(u32::MAX)])).unwrap();
        check("DateTime64(3)", TimestampMillisecondArray::from(vec![-2_208_988_800_000])).unwrap();
        for (data_type, outside) in [("Date", -7154), ("Date", 65_536), ("Date32", -25_568)] {
            let error = check(data_type, Date32Array::from(vec![1, outside])).unwrap_err();
            assert_eq!(error.code(), 321);
            assert!(error.message().contains(&format!("{outside} is out of the range of {data_type}")));
        }
        for (data_type, outside) in
            [("DateTime", -1), ("DateTime", 7_258_118_400), ("DateTime64(0)", i64::MAX)]
        {
            check(data_type, TimestampSecondArray::from(vec![1, outside])).unwrap_err();
        }
    }
}
