//! Arrow arrays of lists, maps and structs, whose items and elements are made into ours.

use super::column::{list_of, tuple_of};
use super::from_arrow::failed;
use crate::error::{Code, DictError};
use crate::types::{DataType, Element};
use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::DataType as Arrow;
use std::sync::Arc;

/// Arrays or maps of ours. A map is an array of structs of two, and the other way round.
pub(super) fn lists(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, DictError> {
    let theirs = match array.data_type() {
        Arrow::LargeList(items) | Arrow::FixedSizeList(items, _) => {
            cast(array, &Arrow::List(Arc::clone(items))).map_err(failed)?
        }
        _ => Arc::clone(array),
    };
    let (offsets, items) = match theirs.as_map_opt() {
        Some(map) => (map.offsets(), Arc::new(map.entries().clone()) as ArrayRef),
        None => (theirs.as_list::<i32>().offsets(), Arc::clone(theirs.as_list::<i32>().values())),
    };
    // Items of other rows are not looked at.
    let (first, last) = (offsets[0] as usize, offsets[theirs.len()] as usize);
    let items = data_type.item().adopt_part(&items.slice(first, last - first))?;
    let lengths = offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    let offsets = OffsetBuffer::from_lengths(lengths);
    list_of(data_type, offsets, items, theirs.nulls().cloned()).map_err(failed)
}

/// Tuples of ours: fields are found by their names if all of them are there, and by their places otherwise.
pub(super) fn tuples(theirs: &StructArray, data_type: &DataType) -> Result<ArrayRef, DictError> {
    let elements = data_type.elements();
    let by_name = |element: &Element| theirs.column_by_name(element.name.as_deref()?);
    let columns: Vec<&ArrayRef> = match elements.iter().map(by_name).collect() {
        Some(columns) => columns,
        None => theirs.columns().iter().collect(),
    };
    if columns.len() != elements.len() {
        let text = format!("A struct of {} fields is no {data_type}", columns.len());
        return Err(DictError::new(Code::TypeMismatch, text));
    }
    let columns = elements.iter().zip(columns).map(|(element, column)| element.data_type.adopt_part(column));
    tuple_of(data_type, columns.collect::<Result<_, _>>()?).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{StringArray, new_null_array};
    use arrow::datatypes::Field;

    fn of_texts<const N: usize>(data_type: &str, texts: [&str; N]) -> ArrayRef {
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        DataType::parse(data_type).unwrap().adopt(&texts).unwrap()
    }

    #[test]
    fn maps_and_arrays_of_pairs_become_each_other() {
        let pairs = of_texts("Array(Tuple(String, Int64))", ["[('b',2),('a',1),('b',3)]", "[]", "[('c',4)]"]);
        let map = of_texts("Map(String, UInt8)", ["{'b':2,'a':1,'b':3}", "{}", "{'c':4}"]);
        let to = |data_type: &str, array: &ArrayRef| DataType::parse(data_type).unwrap().adopt(array);
        assert_eq!(&to("Map(String, UInt8)", &pairs).unwrap(), &map);
        assert_eq!(&to("Array(Tuple(String, Int64))", &map).unwrap(), &pairs);
        assert_eq!(&to("Map(String, UInt8)", &pairs.slice(1, 2)).unwrap(), &map.slice(1, 2));
        let texts = of_texts("Map(String, String)", ["{'b':'2','a':'1','b':'3'}", "{}", "{'c':'4'}"]);
        assert_eq!(&to("Map(String, UInt8)", &texts).unwrap(), &map);
        assert!(to("Map(String, Int8)", &of_texts("Map(String, UInt8)", ["{'a':200}"])).is_err());
        assert!(to("Map(String, UInt8)", &of_texts("Array(UInt8)", ["[1]"])).is_err());
    }

    #[test]
    fn fields_are_found_by_name_or_by_place() {
        let theirs = of_texts("Nested(b String, a UInt8, c UInt8)", ["[('x',1,2)]"]);
        let to = |data_type: &str| DataType::parse(data_type).unwrap().adopt(&theirs);
        let by_name = "Nested(a UInt8, b String)";
        assert_eq!(&to(by_name).unwrap(), &of_texts(by_name, ["[(1,'x')]"]));
        let by_place = "Array(Tuple(String, UInt8, UInt8))";
        assert_eq!(&to(by_place).unwrap(), &of_texts(by_place, ["[('x',1,2)]"]));
        assert_eq!(to("Nested(a UInt8, z String)").unwrap_err().code(), 53);
    }

    #[test]
    fn null_is_no_tuple_and_no_key() {
        let pair = DataType::parse("Array(Tuple(UInt8, UInt8))").unwrap();
        let Arrow::List(item) = pair.to_arrow() else { panic!("it is one") };
        for theirs in [item.data_type().clone(), Arrow::Utf8] {
            let nulls = new_null_array(&theirs, 1);
            let field = Field::new("item", theirs, true);
            let lists =
                arrow::array::ListArray::new(field.into(), OffsetBuffer::from_lengths([1]), nulls, None);
            let lists: ArrayRef = Arc::new(lists);
            assert!(pair.adopt(&lists).is_err());
            assert!(DataType::parse("Map(UInt8, UInt8)").unwrap().adopt(&lists).is_err());
        }
        let null_key = of_texts("Array(Tuple(Nullable(UInt8), UInt8))", ["[(NULL,1)]"]);
        assert!(DataType::parse("Map(UInt8, UInt8)").unwrap().adopt(&null_key).is_err());
        assert!(DataType::parse("Array(Tuple(UInt8, UInt8))").unwrap().adopt(&null_key).is_err());
    }
}
